"""The list of a run's cases: filter, order, pages, and the neighbours of a case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.case_filter import (
    FilteredCase,
    decided_changes,
    layers_of,
    meets,
    searched_text,
    vocabulary_of,
    why_text,
)
from pytest_rageval.comparison.filter_language import DROP, LATENCY, LEVEL, FilterError, FilterVocabulary, read_filter
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.render.html.run_cases import Flips, FullTexts, ListedCase, listed_cases
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.stored_plan import registry_of
from pytest_rageval.text import printable

LONGEST, MOST_TERMS = 4_000, 100
"""Maximum characters and terms of a filter: each term checks each case."""
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
class CaseList:
    """The cases of one run, finished or not, the worst first.

    full_texts   questions and answers; a filter searches the shortened texts of cases without one
    falls        the metrics that fell, by the case's number in the list
    layer_of     the layer of each metric
    is_compared  whether changes and falls are known
    """

    run_id: str
    cases: Sequence[ListedCase]
    full_texts: FullTexts
    layer_of: Mapping[str, str]
    falls: Mapping[int, Sequence[str]] = field(default_factory=dict)
    is_compared: bool = False

    def page(self, query: CaseQuery) -> CasePage:
        """Return the requested page of cases, or the last page if the number is beyond it."""
        try:
            found = self.matching(query.q, query.sort)
        except FilterError as error:
            return CasePage(query._replace(page=1), (), 0, len(self.cases), self.metrics, str(error))
        number = max(1, min(query.page, -(-len(found) // ROWS)))
        rows = found[ROWS * (number - 1) : ROWS * number]
        return CasePage(query._replace(page=number), rows, len(found), len(self.cases), self.metrics)

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
        keys = [case.key for case in self.cases]
        return shown if shown in keys else next((key for key in keys if printable(key) == shown), shown)

    def matching(self, query: str = "", sort: str = "") -> Sequence[ListedCase]:
        """Return the cases that pass a filter, in order, or raise FilterError if filter or order is invalid."""
        return self._sorted(self._matching_numbers(query), sort)

    @cached_property
    def metrics(self) -> list[str]:
        """Return the names of the metrics that have a score in any case."""
        return sorted(set().union(*(case.row.scores for case in self.cases)))

    def _matching_numbers(self, query: str) -> Sequence[int]:
        """Return the numbers of the cases that pass a filter."""
        if len(query) > LONGEST:
            raise FilterError(f"the filter is longer than {LONGEST:,} characters")
        filters = read_filter(query, self._vocabulary) if query else []
        if len(filters) > MOST_TERMS:
            raise FilterError(f"the filter has {len(filters)} terms, more than {MOST_TERMS}")
        left: Sequence[int] = range(len(self.cases))
        for asked in filters:
            left = [number for number in left if meets(self._filtered[number], asked)]
        return left

    def _sorted(self, left: Sequence[int], sort: str) -> Sequence[ListedCase]:
        """Sort by `latency`, `-latency`, `id` or a metric, cases without a value last; by default the worst first."""
        if not sort:
            return [self.cases[number] for number in left]
        name, is_turned = sort.removeprefix("-"), sort.startswith("-")
        if name == "id":
            return sorted((self.cases[number] for number in left), key=_shown_id, reverse=is_turned)
        known = name if name in _NUMBERS else self._vocabulary.metric(name)
        if known is None:
            there = ", ".join([*_NUMBERS, *self.metrics])
            raise FilterError(f"{name!r} is nothing to sort by; there are id, {there}")
        values = {number: self._filtered[number].number(known) for number in left}
        measured = {number: value for number, value in values.items() if value is not None}
        order = sorted(measured, key=measured.__getitem__, reverse=is_turned)
        return [self.cases[number] for number in (*order, *(number for number in left if number not in measured))]

    @cached_property
    def _filtered(self) -> Sequence[FilteredCase]:
        return [self._filtered_case(number, case) for number, case in enumerate(self.cases)]

    def _filtered_case(self, number: int, case: ListedCase) -> FilteredCase:
        question, answer = self.full_texts.get(case.key) or (case.texts.question, case.texts.answer)
        text = searched_text((case.id, question, answer, why_text(case.row), case.texts.place))
        layers = layers_of(case.row, self.layer_of)
        return FilteredCase(case.row, case.change, layers, text, self.falls.get(number, ()), case.drop, case.level)

    @cached_property
    def _vocabulary(self) -> FilterVocabulary:
        return vocabulary_of(
            self.run_id,
            self._filtered,
            self.is_compared,
            _NUMBERS,
            {*(name for fell in self.falls.values() for name in fell)},
        )


_NUMBERS = (LATENCY, DROP, LEVEL)


def _shown_id(case: ListedCase) -> str:
    return printable(case.id)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def cases_of_page(page: PageRun, full_texts: FullTexts) -> CaseList:
    """Return the cases of a page that was read. If the other run is missing, use the changes recorded at the end."""
    metrics, cases, is_compared = page.metrics, page.cases, page.compared is not None
    decided = metrics.get("comparison")
    if page.before is None and decided and decided["compared"]:
        changes, is_compared = decided_changes(metrics), True
        changed = (case._replace(change=changes.get(case.key, case.change)) for case in cases)
        cases = sorted(changed, key=lambda case: case.severity)
    layers = {name: metric["layer"] for name, metric in metrics["metrics"].items()}
    return CaseList(printable(page.run_id), cases, full_texts, layers, _falls(page.falls), is_compared)


def _falls(falls: Mapping[str, Iterable[Any]]) -> dict[int, list[str]]:
    by_case: dict[int, list[str]] = {}
    for metric, fallen in falls.items():
        for fall in fallen:
            by_case.setdefault(fall.number, []).append(metric)
    return by_case


def recorded_cases(run: StoredRun) -> CaseList:
    """Return the recorded cases of a run without aggregates, without a comparison."""
    registry, full_texts = registry_of(run), FullTexts()
    names = (str(name) for name in run.config.get("metrics", ()))
    metrics = {name: registry[bare] for name in names if (bare := name.partition("@")[0]) in registry}
    scales = {name: {"scale": metric.scale, "better": metric.better} for name, metric in metrics.items()}
    side = Side(run.run_id, {"metrics": scales, "volatile": {}}, None, run.config, run)
    cases = listed_cases(side, Flips(), None, {}, full_texts)
    return CaseList(printable(run.run_id), cases, full_texts, {name: metric.layer for name, metric in metrics.items()})
