"""Parts of another plugin's table of tests, such as pytest-html's: columns, cells and details, as escaped HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pytest_rageval.render.html.case_view import case_views
from pytest_rageval.render.html.environment import environment
from pytest_rageval.render.html.first_screen import tiles
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.render.html.run_cases import ListedCase
from pytest_rageval.runs.aggregate import normalised
from pytest_rageval.text import printable, score_text

MOST_ROWS = 2_000
"""Cases in the table, worst first: a browser takes minutes to build one of many thousand rows."""
MOST_SCORES = 4
UNSCORED = -1.0
"""The sort key of a case without a score."""


class Column(NamedTuple):
    """One of our columns. `metric`: None for the category."""

    field: str
    name: str
    metric: str | None


class TablePart(NamedTuple):
    """The row of one case: a cell and a sort key for each column, and the details."""

    cells: tuple[str, ...]
    sorted_by: dict[str, str | float]
    details: str


class CaseTable:
    """The cases of a run for another plugin's table."""

    def __init__(self, page: PageRun) -> None:
        self._page = page
        self._macros: Any = environment().get_template("test_table.html").module
        names = [tile.metric for tile in tiles(page) if tile.n is not None]
        per_case = [name for name in names if not page.metrics["metrics"][name]["run_level"]][:MOST_SCORES]
        scores = (Column(f"rageval_{number}", name, name) for number, name in enumerate(per_case))
        self.columns: Sequence[Column] = (Column("rageval_category", "Category", None), *scores)

    @property
    def cases(self) -> Sequence[ListedCase]:
        """Return the cases of the table, worst first."""
        return self._page.cases[:MOST_ROWS]

    def heads(self) -> list[str]:
        return [printable(str(self._macros.head(column.field, column.name)).strip()) for column in self.columns]

    def blank_cells(self) -> list[str]:
        """Return the cells of a test that is not a case."""
        return [self._cell(column.field, "", None) for column in self.columns]

    @property
    def unsorted(self) -> dict[str, str | float]:
        """Return the sort keys of a test that is not a case."""
        return {column.field: "" if column.metric is None else UNSCORED for column in self.columns}

    def parts(self) -> Iterator[tuple[str, TablePart]]:
        """Yield key and part of each case of the table that has a record."""
        cases = self.cases
        for case, view in zip(cases, case_views(self._page, cases), strict=False):  # no views without records
            if view is not None:
                yield case.key, self._part(case, printable(self._macros.details(view)))

    def summary(self, link: str | None) -> str:
        """Return the verdict of the run, and where all of its cases are."""
        return printable(self._macros.summary(self._page, link, len(self.cases)))

    def _part(self, case: ListedCase, details: str) -> TablePart:
        cells: list[str] = []
        sorted_by: dict[str, str | float] = {}
        for field, _, metric in self.columns:
            share = None if metric is None else self._share(case, metric)
            if metric is None:
                text = sorted_by[field] = ", ".join(case.row.groups["category"])
            elif share is None:
                text, sorted_by[field] = "–", UNSCORED
            else:
                text, sorted_by[field] = score_text(case.row.scores[metric]), case.row.scores[metric]
            cells.append(self._cell(field, text, share))
        return TablePart(tuple(cells), sorted_by, details)

    def _share(self, case: ListedCase, metric: str) -> float | None:
        """Return a score as a share of its scale, in [0, 1]; None if the case has none."""
        if metric not in case.row.scores:
            return None
        share = normalised(case.row.scores[metric], self._page.metrics["metrics"][metric]["scale"], "higher")
        return min(max(share, 0.0), 1.0)

    def _cell(self, field: str, text: str, share: float | None) -> str:
        return printable(str(self._macros.cell(field, text, share)).strip())
