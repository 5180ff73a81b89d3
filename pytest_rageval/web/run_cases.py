"""The cases of one run in the browser: their filter, their order, their pages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Annotated, NamedTuple

from fastapi import Depends, Query

from pytest_rageval.comparison.case_filter import CaseFilter, FilterError
from pytest_rageval.comparison.case_list import CaseList
from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.errors import SettingsError
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.render.html.report_page import ReportStart, page_start
from pytest_rageval.render.html.sections import Sections, report_sections
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import printable
from pytest_rageval.web.results_table import ResultsTable, ShownCell

MOST_TERMS = 100
"""Terms of a filter at most: each one checks each case."""
ROWS = 50
"""Cases on a page of the list."""
MOST_IN_MENU = 100
AT_ONCE = 20_000
"""Maximum number of cases of a run whose sections are on its page from the start."""
ANY = "*"
"""The value of a menu that takes its term out of the filter."""
_TERM_OF = r'(?:^|(?<=\s)){}:(?:"(?:[^"\\]|\\.)*"|[^\s"]+)'

Filter = Annotated[str, Query(max_length=2_000)]
Order = Annotated[str, Query(max_length=200)]
Menu = Annotated[str | None, Query(max_length=400)]


class CaseQuery(NamedTuple):
    """A filter, an order (a metric, `id`, `latency_ms`; `-` reverses it), a page, columns."""

    q: str = ""
    sort: str = ""
    page: int = 1
    col: Sequence[str] = ()

    @property
    def asked(self) -> dict[str, object]:
        """Return the parameters of an address that asks the same."""
        page = self.page if self.page > 1 else None
        return {"q": self.q, "sort": self.sort, "page": page, "col": [*self.col] or None}


def _query(
    q: Filter = "",
    sort: Order = "",
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    col: Annotated[list[str] | None, Query()] = None,
    outcome: Menu = None,
    category: Menu = None,
    tag: Menu = None,
) -> CaseQuery:
    """Return the query of an address. A menu adds, replaces or removes a term of the filter."""
    for word, value in (("outcome", outcome), ("category", category), ("tag", tag)):
        if not value:
            continue
        # One term a menu: two of them would find nothing.
        q = re.sub(_TERM_OF.format(word), " ", q).strip()
        if value != ANY:
            quoted = json.dumps(value, ensure_ascii=False) if re.search(r'[\s",]', value) else value
            q = f"{q} {word}:{quoted}".strip()
    return CaseQuery(q, sort, page, tuple(col or ()))


TheQuery = Annotated[CaseQuery, Depends(_query)]
"""A route parameter: what is asked of a list of cases."""


@dataclass(frozen=True)
class CasePage:
    """A page of the list: `left` cases pass the filter; without rows if that has a `problem`."""

    cases: RunCases
    query: CaseQuery
    rows: Sequence[ListedCase] = ()
    left: int = 0
    problem: str = ""

    @property
    def total(self) -> int:
        return len(self.cases.listed.cases)

    @property
    def pages(self) -> int:
        return max(1, math.ceil(self.left / ROWS))

    @property
    def first(self) -> int:
        """Return the position of the first row in the order, counted from 1."""
        return (self.query.page - 1) * ROWS + 1

    @cached_property
    def columns(self) -> list[str]:
        return self.cases.table.columns(self.query.col)

    @cached_property
    def cells(self) -> Mapping[str, Sequence[ShownCell]]:
        """Return the cells of each case; none if its records were edited, or only its scores are kept."""
        try:
            return self.cases.table.rows([case.key for case in self.rows], self.columns)
        except (SettingsError, LookupError, TypeError, AttributeError):
            return {}

    @property
    def chosen(self) -> dict[str, str]:
        """Return the values of the menus that stand in the filter."""
        chosen = {}
        for word in self.cases.menus:
            term = re.search(_TERM_OF.format(word), self.query.q)
            if term is not None:
                chosen[word] = term[0].partition(":")[2].strip('"')
        return chosen


class Neighbours(NamedTuple):
    """The position of a case among the `left` that pass the filter, from 1, and the adjacent keys."""

    position: int | None
    left: int
    previous: str | None = None
    next: str | None = None


@dataclass(frozen=True)
class RunCases:
    """The cases of one run, finished or not, the worst first; `report` is None without aggregates."""

    listed: CaseList
    run: StoredRun
    report: PageRun | None = None

    @cached_property
    def start(self) -> ReportStart:
        """Return the report's first screen and list of cases."""
        assert self.report is not None  # because only a finished run has one
        return page_start(self.report)

    @cached_property
    def sections(self) -> Sections:
        """Return the report's sections; prepare the search too, which may follow."""
        assert self.report is not None  # because only a finished run has one
        _ = self._filter.texts
        return report_sections(self.report)

    @property
    def are_sections_late(self) -> bool:
        """Return True if the sections take so long that a page shows its cases before them."""
        return len(self.listed.cases) > AT_ONCE

    @property
    def is_partial(self) -> bool:
        """Return True unless all cases of the run ended."""
        return self.report is None or self.report.metrics["partial"]

    @cached_property
    def table(self) -> ResultsTable:
        """Return the table of the results."""
        return ResultsTable(self.run, self.listed)

    @cached_property
    def menus(self) -> Mapping[str, Sequence[str]]:
        """Return the values of the menus beside the filter."""
        cases = self.listed.cases
        # `map` and `chain` rather than loops: a run may have 100,000 cases.
        outcomes = set(map(attrgetter("outcome"), cases))
        categories = set(map(attrgetter("category"), cases)) - {""}
        tags = set(chain.from_iterable(map(attrgetter("tags"), cases)))
        found = {"outcome": outcomes, "category": categories, "tag": tags}
        return {word: sorted(names)[:MOST_IN_MENU] for word, names in found.items()}

    @cached_property
    def _case_of(self) -> Mapping[str, ListedCase]:
        """Return the cases by their keys as addresses write them."""
        return {printable(case.key): case for case in self.listed.cases}

    def case(self, key: str) -> ListedCase | None:
        """Return the case with this key; links write it without control characters, a script may write it as it is."""
        return self._case_of.get(printable(key))

    def page(self, query: CaseQuery) -> CasePage:
        """Return the requested page of cases, or the last page if the number is beyond it."""
        try:
            found = self.matching(query.q, query.sort)
        except FilterError as error:
            return CasePage(self, query._replace(page=1), problem=str(error))
        last = max(1, math.ceil(len(found) / ROWS))
        number = min(query.page, last)
        rows = found[ROWS * (number - 1) : ROWS * number]
        return CasePage(self, query._replace(page=number), rows, len(found))

    def neighbours(self, key: str, query: CaseQuery) -> Neighbours:
        """Return the cases before and after a case; none if the filter is invalid."""
        try:
            keys = [case.key for case in self.matching(query.q, query.sort)]
        except FilterError:
            keys = []
        # A case that was opened may have left the filter since.
        if key not in keys:
            return Neighbours(None, len(keys))
        place = keys.index(key)
        previous = keys[place - 1] if place > 0 else None
        following = keys[place + 1] if place + 1 < len(keys) else None
        return Neighbours(place + 1, len(keys), previous, following)

    def matching(self, query: str = "", sort: str = "") -> Sequence[ListedCase]:
        """Return the cases that pass a filter, in order; raise FilterError if one is invalid."""
        numbers = self._filter.numbers(query, MOST_TERMS) if query else range(len(self.listed.cases))
        return [self.listed.cases[number] for number in self._sorted(numbers, sort)]

    def keys(self, query: str, sort: str = "") -> list[str]:
        """Return the keys of `matching`; raise SettingsError if filter or order is invalid."""
        try:
            return [case.key for case in self.matching(query, sort)]
        except FilterError as error:
            raise SettingsError(str(error)) from None

    @cached_property
    def _filter(self) -> CaseFilter:
        return CaseFilter(self.listed)

    def _sorted(self, left: Sequence[int], sort: str) -> Sequence[int]:
        """Sort by an operation, id or a metric, cases without a value last; else the worst first."""
        if not sort:
            return left
        name = sort.removeprefix("-")
        is_turned = sort.startswith("-")
        if name == "id":
            return sorted(left, key=lambda number: printable(self.listed.cases[number].id), reverse=is_turned)
        column = self._filter.column(name)
        if column is None:
            known = ", ".join([*self._filter.measured, *self.table.metrics])
            raise FilterError(f"{name!r} is nothing to sort by; there are id, {known}")
        measured = {number: value for number in left if (value := column[number]) is not None}
        in_order = sorted(measured, key=measured.__getitem__, reverse=is_turned)
        # Last in both directions: what has no value is neither best nor worst.
        without_value = [number for number in left if number not in measured]
        return [*in_order, *without_value]
