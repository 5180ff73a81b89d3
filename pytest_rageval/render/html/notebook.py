"""A run or a comparison for a notebook: plain tables without style or script, of limited size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.render.html.case_view import case_views
from pytest_rageval.render.html.environment import rendered
from pytest_rageval.render.html.first_screen import moves, tiles
from pytest_rageval.render.html.metric_rows import MetricRow
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.render.html.variables import variables
from pytest_rageval.views.case_content import CaseView
from pytest_rageval.views.compared_metrics import METRIC_COLUMNS, ComparedMetric, MetricColumn

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


@dataclass(frozen=True, kw_only=True)
class NotebookContext:
    """What the output of a cell gets."""

    page: PageRun
    """The run with the data of its report."""
    title: str
    """The heading of the cases."""
    cases: Sequence[tuple[ListedCase, CaseView | None]]
    """The cases that are shown, each with its view; None without a record."""
    left_out: int
    """The number of cases that are not shown."""
    tiles: Sequence[MetricRow]
    """The main metrics."""
    moves: Sequence[ComparedMetric]
    """The metrics that moved; empty without a comparison."""
    problems: Sequence[str]
    """Why the runs cannot be compared."""
    metric_columns: Sequence[MetricColumn] = METRIC_COLUMNS
    """The figures of a metric that moved."""
    most: int = LONGEST_TEXT
    """The characters of a text that are shown."""
    most_of_name: int = LONGEST_NAME
    """The characters of a name that are shown."""
    most_chunks: int = MOST_CHUNKS
    """The chunks of a case that are shown."""


def _sized(page: PageRun, cases: Sequence[ListedCase], title: str) -> str:
    """Return the output with as many of the cases as fit."""
    first = cases[:MOST_CASES]
    views = chain(case_views(page, first), repeat(None))  # without records there are no views
    shown = list(zip(first, views, strict=False))
    measured_tiles = [tile for tile in tiles(page) if tile.n is not None]
    problems = [problem["said"] for problem in (page.comparison or {}).get("problems", ())]
    while True:
        context = NotebookContext(
            page=page,
            title=title,
            cases=shown,
            left_out=len(cases) - len(shown),
            tiles=measured_tiles,
            moves=moves(page),
            problems=problems,
        )
        html = rendered("notebook.html", **variables(context))
        if not shown or len(html.encode()) <= MOST_BYTES:
            return html
        # By halves: each try renders the page once more.
        shown = shown[: len(shown) // 2]
