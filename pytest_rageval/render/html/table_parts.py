"""Parts of another plugin's table of tests, such as pytest-html's: columns, cells and details, as escaped HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.render.html.case_view import case_views
from pytest_rageval.render.html.environment import environment
from pytest_rageval.render.html.first_screen import tiles
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.runs.aggregate import normalised
from pytest_rageval.text import printable, score_text

MOST_ROWS = 2_000
"""Cases in the table, worst first: a browser takes minutes to build one of many thousand rows."""
MOST_SCORES = 4
CATEGORY = "rageval_category"
"""The column of the category."""
UNSCORED = -1.0
"""The sort key of a case without a score."""


class TablePart(NamedTuple):
    """The row of one case."""

    cells: list[str]
    """A cell for each column."""
    sorted_by: dict[str, str | float]
    """A sort key for each column."""
    details: str


class CaseTable:
    """The cases of a run for another plugin's table. `metrics`: the columns after the category."""

    def __init__(self, page: PageRun) -> None:
        self._page = page
        self._macros: Any = environment().get_template("test_table.html").module
        names = [tile.name for tile in tiles(page) if tile.n is not None]
        per_case = [name for name in names if not page.metrics["metrics"][name]["run_level"]]
        columns = {f"rageval_{number}": name for number, name in enumerate(per_case[:MOST_SCORES])}
        self.metrics: Mapping[str, str] = columns

    @property
    def cases(self) -> Sequence[ListedCase]:
        """Return the cases of the table, worst first."""
        return self._page.cases[:MOST_ROWS]

    def heads(self) -> list[str]:
        titles = {CATEGORY: "Category", **self.metrics}
        return [printable(str(self._macros.head(column, title)).strip()) for column, title in titles.items()]

    def blank_cells(self) -> list[str]:
        """Return the cells of a test that is not a case."""
        return [self._cell(column, "", None) for column in (CATEGORY, *self.metrics)]

    @property
    def unsorted(self) -> dict[str, str | float]:
        """Return the sort keys of a test that is not a case."""
        return {CATEGORY: "", **dict.fromkeys(self.metrics, UNSCORED)}

    def parts(self) -> Iterator[tuple[str, TablePart]]:
        """Yield key and part of each case of the table that has a record."""
        cases = self.cases
        for number, view in enumerate(case_views(self._page, cases)):
            if view is not None:
                yield cases[number].key, self._part(number, printable(self._macros.details(view)))

    def summary(self, link: str | None) -> str:
        """Return the verdict of the run, and where all of its cases are."""
        return printable(self._macros.summary(self._page, link, len(self.cases)))

    def _part(self, number: int, details: str) -> TablePart:
        category = self._page.cases[number].category
        cells = [self._cell(CATEGORY, category, None)]
        sorted_by = self.unsorted | {CATEGORY: category}
        for column, metric in self.metrics.items():
            scores = self._page.listed.scores.get(metric)
            score = None if scores is None else scores[number]
            share = None
            unit = self._page.metrics["metrics"].get(metric, {}).get("unit")
            if score is not None:
                if unit is None:
                    scale = self._page.metrics["metrics"][metric]["scale"]
                    # A metric of the project's own may leave its scale; a bar cannot.
                    share = min(max(normalised(score, scale, "higher"), 0.0), 1.0)
                sorted_by[column] = score
            cells.append(self._cell(column, score_text(score, unit), share))
        return TablePart(cells, sorted_by, details)

    def _cell(self, column: str, text: str, share: float | None) -> str:
        return printable(str(self._macros.cell(column, text, share)).strip())
