"""A run or a comparison for a notebook: plain tables without style or script, of limited size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.render.html.case_view import case_views
from pytest_rageval.render.html.environment import rendered
from pytest_rageval.render.html.first_screen import moves, tiles
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.views.compared_metrics import METRIC_COLUMNS

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
    first = cases[:MOST_CASES]
    views = chain(case_views(page, first), repeat(None))  # without records there are no views
    shown = list(zip(first, views, strict=False))
    measured_tiles = [tile for tile in tiles(page) if tile.n is not None]
    problems = [problem["said"] for problem in (page.comparison or {}).get("problems", ())]
    while True:
        html = rendered(
            "notebook.html",
            page=page,
            title=title,
            cases=shown,
            left_out=len(cases) - len(shown),
            tiles=measured_tiles,
            moves=moves(page),
            metric_columns=METRIC_COLUMNS,
            problems=problems,
            most=LONGEST_TEXT,
            most_of_name=LONGEST_NAME,
            most_chunks=MOST_CHUNKS,
        )
        if not shown or len(html.encode()) <= MOST_BYTES:
            return html
        shown = shown[: len(shown) // 2]
