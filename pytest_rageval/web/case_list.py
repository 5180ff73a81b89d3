"""The list of a run's cases as an address asks for it: filter, order, page, and the way from case to case."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from pytest_rageval.comparison.filter_language import FilterError
from pytest_rageval.config.project import Project
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.runs.disk.reader import StoredRun
from pytest_rageval.text import printable
from pytest_rageval.web.index.case_query import CaseRow, Neighbours, case_keys, case_rows_page, neighbours
from pytest_rageval.web.index.case_tables import IndexedCases, open_cases, open_compared_cases
from pytest_rageval.web.index.run_index import RunIndex

T = TypeVar("T")
ROWS = 50
"""Cases on a page of the list."""


class CaseQuery(NamedTuple):
    """What an address asks of the list: a filter, an order (a metric, `id`, `latency`; `-` turns it), a page."""

    q: str = ""
    sort: str = ""
    page: int = 1


@dataclass(frozen=True)
class CasePage:
    """A page of the list: `left` cases meet the filter. `problem`: what filter or order mean nothing; then no rows."""

    query: CaseQuery
    rows: Sequence[CaseRow]
    left: int
    total: int
    metrics: Sequence[str]
    problem: str = ""

    @property
    def pages(self) -> int:
        return max(1, -(-self.left // ROWS))

    @property
    def first(self) -> int:
        """The place of the first row in the order, counted from 1."""
        return (self.query.page - 1) * ROWS + 1


class CaseList:
    """The cases of one run, finished or not; SettingsError where a file of the run is damaged.

    against  the page on which it is compared with a run that was chosen
    """

    def __init__(self, index: RunIndex, run: StoredRun, project: Project, against: PageRun | None = None) -> None:
        self._index = index
        before = against.before if against is not None else None
        if against is None or before is None:
            self._opened: Callable[[], IndexedCases] = lambda: open_cases(index, run, project.baseline_file)
        else:
            self._opened = lambda: open_compared_cases(index, against, before.name)
        self._table = self._opened()

    def _ask(self, question: Callable[[sqlite3.Connection, IndexedCases], T]) -> T:
        """What the tables of the cases answer. Those of a run that goes on are replaced now and then: then the next."""
        try:
            return self._index.read(lambda connection: question(connection, self._table))
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            self._table = self._opened()
            return self._index.read(lambda connection: question(connection, self._table))

    def page(self, query: CaseQuery) -> CasePage:
        """The cases that an address asks for; of a page beyond the last one, the last."""
        try:
            found = self._ask(
                lambda connection, table: case_rows_page(
                    connection, table, query.q, query.sort, page=query.page, size=ROWS
                )
            )  # fmt: skip
        except FilterError as error:
            table = self._table
            return CasePage(query._replace(page=1), (), 0, table.cases, table.metrics, str(error))
        last = max(1, -(-found.left // ROWS))
        if query.page > last:
            return self.page(query._replace(page=last))
        return CasePage(query, found.rows, found.left, found.total, self._table.metrics)

    def key_of(self, shown: str) -> str:
        """The key of a case as an address holds it, which has no control characters; as it stands where none is so."""
        keys = self._ask(case_keys)
        return shown if shown in keys else next((key for key in keys if printable(key) == shown), shown)

    def neighbours(self, key: str, query: CaseQuery) -> Neighbours:
        """The cases before and after one; none where the filter means nothing any more: the list says what is wrong."""
        try:
            return self._ask(lambda connection, table: neighbours(connection, table, key, query.q, query.sort))
        except FilterError:
            return Neighbours(None, 0, None, None)
