"""The list of a run's cases as a page of rows: filtered in the language of reports, sorted, paged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_rageval.compare.case_filter import filtered_keys
from pytest_rageval.errors import SettingsError
from pytest_rageval.page.run_cases import ListedCase
from pytest_rageval.web.opened_runs import OpenedRun, run_of

ROWS = 50
"""Cases on a page of the list."""
NUMBERS = ("latency", "drop", "level")


class CaseQuery(NamedTuple):
    """What an address asks of the list: a filter, an order (a metric, `id`, `latency`; `-` turns it), a page."""

    q: str = ""
    sort: str = ""
    page: int = 1


class CasePage(NamedTuple):
    """A page of the list.

    cases    those of this page
    order    numbers of all cases of the filter, in its order
    problem  what is wrong with filter or order; then there are no cases
    """

    query: CaseQuery
    cases: Sequence[ListedCase]
    order: Sequence[int]
    problem: str = ""

    @property
    def pages(self) -> int:
        return max(1, -(-len(self.order) // ROWS))

    @property
    def first(self) -> int:
        """The place of the first case in the order, counted from 1."""
        return (self.query.page - 1) * ROWS + 1


def case_page(opened: OpenedRun, query: CaseQuery) -> CasePage:
    """The cases that an address asks for; of a page beyond the last one, the last."""
    try:
        order = case_order(opened, query)
    except SettingsError as error:
        return CasePage(query._replace(page=1), (), (), str(error))
    last = max(1, -(-len(order) // ROWS))
    shown = query._replace(page=min(max(query.page, 1), last))
    start = (shown.page - 1) * ROWS
    return CasePage(shown, [opened.page.cases[number] for number in order[start : start + ROWS]], order)


def case_order(opened: OpenedRun, query: CaseQuery) -> Sequence[int]:
    """Numbers of the cases that meet a filter, in order; SettingsError where one of the two means nothing."""
    cases = opened.page.cases
    numbers: Sequence[int] = range(len(cases))
    if query.q.strip():
        keys = filtered_keys(run_of(opened), query.q, "filter")
        numbers = [number for number in numbers if cases[number].key in keys]
    return _sorted(opened, numbers, query.sort) if query.sort else numbers


def _sorted(opened: OpenedRun, numbers: Sequence[int], sort: str) -> Sequence[int]:
    """Cases without a value come last, whichever way."""
    cases, name, is_down = opened.page.cases, sort.removeprefix("-"), sort.startswith("-")
    if name == "id":
        return sorted(numbers, key=lambda number: cases[number].id, reverse=is_down)
    values = {number: _value(cases[number], name) for number in numbers}
    if not any(value is not None for value in values.values()) and name not in (*NUMBERS, *sort_names(opened)):
        raise SettingsError(f"sort: {name!r} is nothing to sort by; there are id, {', '.join(NUMBERS)} and the metrics")
    sign = -1 if is_down else 1
    return sorted(numbers, key=lambda number: (values[number] is None, sign * (values[number] or 0.0), number))


def sort_names(opened: OpenedRun) -> list[str]:
    """Metrics that some case has a score of."""
    return sorted({name for case in opened.page.cases for name in case.row.scores})


def _value(case: ListedCase, name: str) -> float | None:
    if name == "latency":
        return case.row.latency.get("total_ms")
    if name in NUMBERS:
        value: float = getattr(case, name)
        return value
    if name in case.row.scores:
        return case.row.scores[name]
    return next((score for metric, score in case.row.scores.items() if metric.partition("@")[0] == name), None)
