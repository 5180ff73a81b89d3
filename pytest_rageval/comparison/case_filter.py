"""Filters over the cases of a stored run, by the language of `filter_language`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.comparison.case_list import CaseList, ListedCase, changes_of, list_cases
from pytest_rageval.comparison.filter_language import (
    DECIMALS,
    DROP,
    GROUPS,
    LATENCY,
    LEVEL,
    Condition,
    FilterError,
    FilterVocabulary,
    HasFallen,
    HasId,
    HasText,
    IsOneOf,
    read_filter,
    read_terms,
)
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.columns import Column
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import printable

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
}
_WHOLE = (0, 1)


def filtered_keys(run: StoredRun, expression: str, option: str) -> frozenset[str]:
    """Return the keys of a finished run's cases that meet all terms; SettingsError names the `option` and the term."""
    comparison = run.finished_metrics.get("comparison")
    listed = list_cases(side_of_run(run), changes_of(comparison), is_compared=comparison is not None)
    try:
        if not any(read_terms(expression)):
            raise FilterError("no term, expected some as in outcome:failed or recall_any<1")
        numbers = CaseFilter(listed).numbers(expression)
    except FilterError as error:
        raise SettingsError(f"{option}: {expression!r}: {error}") from None
    return frozenset(listed.cases[number].key for number in numbers)


@dataclass(frozen=True)
class CaseFilter:
    """The engine of filters over a list of cases."""

    listed: CaseList

    def numbers(self, expression: str, most_terms: int | None = None) -> Sequence[int]:
        """Return the numbers of the cases that meet all terms; FilterError for a term without a meaning."""
        filters = read_filter(expression, self.vocabulary)
        if most_terms is not None and len(filters) > most_terms:
            raise FilterError(f"the filter has {len(filters)} terms, more than {most_terms}")
        left: Sequence[int] = range(len(self.listed.cases))
        for asked in filters:
            holds = self._test(asked.condition)
            left = [number for number in left if holds(number) != asked.is_negated]
        return left

    def column(self, name: str) -> Column:
        """Return the values that are compared with a number: latency, drop, level, or the scores of a metric."""
        if name in self.vocabulary.numbers:
            return all_rounded(getattr(case, name) for case in self.listed.cases)
        return all_rounded(self.listed.scores[name])

    @cached_property
    def vocabulary(self) -> FilterVocabulary:
        """Return the meanings of filter words for these cases."""
        listed = self.listed
        values = {
            word: set(map(printable, {value for case in listed.cases for value in self._values(case, word)}))
            for word in ("outcome", "changed", *GROUPS, "file", "layer", "doubt")
        }
        numbers = (LATENCY,) if listed.falls is None else (LATENCY, DROP, LEVEL)
        return FilterVocabulary(
            printable(listed.run_id), values, listed.scores, numbers, listed.falls, is_compared=listed.is_compared
        )

    @cached_property
    def _texts(self) -> list[str]:
        """Return the texts of each case for the search: each on a line, in lower case."""
        fields = ((case.id, case.question, case.answer, case.place, case.why) for case in self.listed.cases)
        return [printable("\n".join(" ".join((text or "").split()) for text in each)).lower() for each in fields]

    def _values(self, case: ListedCase, word: str) -> Sequence[str]:
        """Return the case's values for a word that is compared as a whole."""
        match word:
            case "tag":
                return case.tags
            case "layer":
                return self.listed.layers(case)
            case "changed":
                return (case.change,)
            case _:
                value: str = getattr(case, word)
                return (value,)

    def _test(self, condition: Condition) -> Callable[[int], bool]:
        """Return a function that tells of a case by its number whether it meets the condition."""
        cases = self.listed.cases
        match condition:
            case HasText(text):
                return lambda number: text in self._texts[number]
            case HasId(text):
                return lambda number: text in printable(cases[number].id)
            case IsOneOf(word, values):
                return lambda number: not values.isdisjoint(map(printable, self._values(cases[number], word)))
            case HasFallen(metric):
                return {fall.number for fall in (self.listed.falls or {})[metric]}.__contains__
            case _:
                column, compare, limit = self.column(condition.name), COMPARISONS[condition.sign], condition.limit
                return lambda number: (value := column[number]) is not None and compare(value, limit)


def all_rounded(numbers: Iterable[float | None]) -> list[float | None]:
    """Round numbers for comparisons; skip 0 and 1, which most scores are: rounding one takes eight times as long."""
    return [number if number is None or number in _WHOLE else round(number, DECIMALS) for number in numbers]
