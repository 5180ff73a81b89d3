"""The list of a run's cases in the browser: pages of those that pass a filter, and the neighbours of a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from pytest_rageval.comparison.case_filter import CaseFilter
from pytest_rageval.comparison.case_list import (
    CaseList,
    ListedCase,
    changes_of,
    list_cases,
    recorded_side,
    worst_cases_first,
)
from pytest_rageval.comparison.filter_language import FilterError
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.stored_plan import registry_of
from pytest_rageval.text import printable

LONGEST, MOST_TERMS = 4_000, 100
"""Maximum characters and terms of a filter: each term checks each case."""
DESCRIBED = ("scale", "better", "layer")
ROWS = 50
"""Cases on a page of the list."""


class CaseQuery(NamedTuple):
    """The query of a list: a filter, an order (a metric, `id`, `latency`; `-` reverses it), a page number."""

    q: str = ""
    sort: str = ""
    page: int = 1


@dataclass(frozen=True)
class CasePage:
    """A page of the list: `left` cases pass the filter. `problem`: the error of the filter or order; then no rows."""

    query: CaseQuery
    rows: Sequence[ListedCase]
    left: int
    total: int
    metrics: Sequence[str]
    problem: str = ""

    @property
    def pages(self) -> int:
        return max(1, -(-self.left // ROWS))

    @property
    def first(self) -> int:
        """Return the position of the first row in the order, counted from 1."""
        return (self.query.page - 1) * ROWS + 1


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The position of a case, from 1, among the `left` filtered ones, and the adjacent keys; None at the ends.

    `position` is None if the filter excludes the case.
    """

    position: int | None
    left: int
    previous: str | None
    next: str | None


@dataclass(frozen=True)
class PagedCases:
    """The cases of one run, finished or not, the worst first."""

    listed: CaseList

    def page(self, query: CaseQuery) -> CasePage:
        """Return the requested page of cases, or the last page if the number is beyond it."""
        total = len(self.listed.cases)
        try:
            found = self.matching(query.q, query.sort)
        except FilterError as error:
            return CasePage(query._replace(page=1), (), 0, total, self.metrics, str(error))
        number = max(1, min(query.page, -(-len(found) // ROWS)))
        rows = found[ROWS * (number - 1) : ROWS * number]
        return CasePage(query._replace(page=number), rows, len(found), total, self.metrics)

    def neighbours(self, key: str, query: CaseQuery) -> Neighbours:
        """Return the cases before and after a case; none if the filter is invalid (the list shows the error)."""
        try:
            keys = [case.key for case in self.matching(query.q, query.sort)]
        except FilterError:
            return Neighbours(None, 0, None, None)
        if key not in keys:
            return Neighbours(None, len(keys), None, None)
        place = keys.index(key)
        before, after = keys[place - 1 : place], keys[place + 1 : place + 2]
        return Neighbours(place + 1, len(keys), *(next(iter(adjacent), None) for adjacent in (before, after)))

    def key_of(self, shown: str) -> str:
        """Return the key of a case from an address without control characters, or `shown` itself if no key matches."""
        keys = [case.key for case in self.listed.cases]
        return shown if shown in keys else next((key for key in keys if printable(key) == shown), shown)

    def matching(self, query: str = "", sort: str = "") -> Sequence[ListedCase]:
        """Return the cases that pass a filter, in order, or raise FilterError if filter or order is invalid."""
        if len(query) > LONGEST:
            raise FilterError(f"the filter is longer than {LONGEST:,} characters")
        numbers = self._filter.numbers(query, MOST_TERMS) if query else range(len(self.listed.cases))
        return [self.listed.cases[number] for number in self._sorted(numbers, sort)]

    @property
    def metrics(self) -> list[str]:
        """Return the names of the metrics that have a score in any case."""
        return sorted(self.listed.scores)

    @cached_property
    def _filter(self) -> CaseFilter:
        return CaseFilter(self.listed)

    def _sorted(self, left: Sequence[int], sort: str) -> Sequence[int]:
        """Sort by `latency`, `-latency`, `id` or a metric, cases without a value last; by default the worst first."""
        name, is_turned = sort.removeprefix("-"), sort.startswith("-")
        if not sort:
            return left
        if name == "id":
            return sorted(left, key=lambda number: printable(self.listed.cases[number].id), reverse=is_turned)
        words = self._filter.vocabulary
        known = name if name in words.numbers else words.metric(name)
        if known is None:
            there = ", ".join([*words.numbers, *self.metrics])
            raise FilterError(f"{name!r} is nothing to sort by; there are id, {there}")
        column = self._filter.column(known)
        measured = {number: value for number in left if (value := column[number]) is not None}
        order = sorted(measured, key=measured.__getitem__, reverse=is_turned)
        return [*order, *(number for number in left if number not in measured)]


def cases_of_page(page: PageRun) -> PagedCases:
    """Return the cases of a page that was read. If the other run is missing, use the changes recorded at the end."""
    listed, decided = page.listed, page.metrics.get("comparison")
    if page.before is None and decided and decided["compared"]:
        changes = changes_of(decided)
        changed = [case._replace(change=changes.get(case.key, case.change)) for case in listed.cases]
        listed = worst_cases_first(replace(listed, cases=changed, is_compared=True))
    return PagedCases(listed)


def recorded_cases(run: StoredRun) -> PagedCases:
    """Return the recorded cases of a run without aggregates, without a comparison."""
    registry = registry_of(run)
    names = (str(name) for name in run.config.get("metrics", ()))
    metrics = {name: registry[bare] for name in names if (bare := name.partition("@")[0]) in registry}
    described = {name: {part: getattr(metric, part) for part in DESCRIBED} for name, metric in metrics.items()}
    return PagedCases(list_cases(recorded_side(run, described), before=CaseColumns()))
