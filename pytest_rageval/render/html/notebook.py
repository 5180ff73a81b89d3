"""A run or a comparison for a notebook: plain tables without style or script, of limited size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.comparison.case_list import ListedCase
from pytest_rageval.render.html.case_view import case_views
from pytest_rageval.render.html.environment import on_one_line, rendered
from pytest_rageval.render.html.first_screen import moves, tiles
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.views.comparison import METRIC_COLUMNS

MOST_BYTES = 200_000
"""Size of one output: notebooks store outputs, and viewers cut or refuse large ones."""
MOST_CASES = 20
LONGEST_TEXT = 600
LONGEST_NAME = 200
MOST_CHUNKS = 5


def run_html(page: PageRun) -> str:
    """Return the verdict, the main metrics, and the first failing cases in full."""
    failing = [case for case in page.cases if case.is_failing]
    return _sized(page, failing, f"Failing cases ({len(failing)})")


def comparison_html(page: PageRun) -> str:
    """Return the output for a run that is compared: metrics that moved, and the cases that newly fail."""
    worse = [case for case in page.cases if case.change == "worse"]
    return _sized(page, worse, f"Newly failing cases ({len(worse)})")


def _sized(page: PageRun, cases: Sequence[ListedCase], title: str) -> str:
    """Return the output with as many of the cases as fit."""
    shown = list(_shown_cases(page, cases[:MOST_CASES]))
    html = _rendered(page, shown, title, len(cases))
    while shown and len(html.encode()) > MOST_BYTES:
        shown = shown[: len(shown) // 2]
        html = _rendered(page, shown, title, len(cases))
    return html


def _rendered(page: PageRun, shown: Sequence[Mapping[str, Any]], title: str, total: int) -> str:
    return rendered(
        "notebook.html",
        page=page,
        title=title,
        cases=shown,
        left_out=total - len(shown),
        tiles=[tile for tile in tiles(page) if tile.n is not None],
        moves=moves(page),
        metric_columns=METRIC_COLUMNS,
        problems=[on_one_line(problem["said"], LONGEST_TEXT) for problem in _problems(page)],
    )


def _problems(page: PageRun) -> Sequence[Mapping[str, Any]]:
    """Return the reasons why the two runs cannot be compared."""
    problems: Sequence[Mapping[str, Any]] = (page.comparison or {}).get("problems", ())
    return problems


def _shown_cases(page: PageRun, cases: Sequence[ListedCase]) -> Iterator[dict[str, Any]]:
    """Yield the content of each case, cut to the size of a notebook cell."""
    for case, view in zip(cases, case_views(page, cases), strict=False):  # no views without records
        question, answer = (view.question, view.answer) if view else (case.question, case.answer)
        yield {
            "id": on_one_line(case.id, LONGEST_NAME),
            "outcome": case.outcome,
            "why": [on_one_line(line, LONGEST_TEXT) for line in (view.why if view else [case.why])[:5]],
            "question": on_one_line(question, LONGEST_TEXT),
            "expected": [on_one_line(text, LONGEST_TEXT) for text in (view.expected[:3] if view else ())],
            "answer": on_one_line(answer, LONGEST_TEXT),
            "chunks": [
                (row.rank, on_one_line(row.mark, LONGEST_NAME), on_one_line(row.place, LONGEST_NAME))
                for row in (view.chunks[:MOST_CHUNKS] if view else ())
            ],
        }
