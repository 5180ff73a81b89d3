r"""Filters over a list of cases: `outcome:failed changed:worse -tag:slow mrr<0.5 "words"`.

    expression  terms separated by spaces; a case must meet all
    term        word sign value, or a value alone that is searched in the case's texts; `-` in front negates it
    sign        `:` is one of (several with commas) · `<` `<=` `>` `>=` `=` a number
    value       without spaces, or in quotation marks with \" and \\ for the two

The HTML report's script (`render/html/assets/cases.js`) reads the same language. Filters compare what the list of
cases shows: escaped control characters, scores with four decimals, whole milliseconds.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.comparison.case_changes import ANSWER_CHANGES, CHANGES, UNCHANGED, changes_of, new_causes_of
from pytest_rageval.comparison.case_list import CaseList, list_cases
from pytest_rageval.comparison.listed_case import FLAKY, STEADY, UNCHECKED, ListedCase
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.matching.dialects import DOUBTS, NO_DOUBT
from pytest_rageval.metrics.calls import OPERATION_UNITS
from pytest_rageval.metrics.registry import LAYERS
from pytest_rageval.model.case_fields import DESCRIPTIVE_NAMES
from pytest_rageval.runs.aggregate import OUTCOMES
from pytest_rageval.runs.causes import NO_CAUSE, TITLES
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
WORDS = (
    "outcome",
    "changed",
    *DESCRIPTIVE_NAMES,
    "tag",
    "file",
    "layer",
    "doubt",
    "cause",
    "flaky",
    "conversation",
    "turn",
    "unchecked",
    "answer",
)
"""Words that are compared as a whole."""
DECIMALS = 4
"""The precision of scores, drops and levels in comparisons with a number."""
ALWAYS: Mapping[str, Collection[str]] = {
    "outcome": OUTCOMES,
    "changed": (*CHANGES, UNCHANGED),
    "layer": tuple(LAYERS),
    "doubt": (*DOUBTS, NO_DOUBT),
    "cause": (*TITLES, NO_CAUSE),
    "flaky": (FLAKY, STEADY),
    "unchecked": tuple(UNCHECKED),
    "answer": ANSWER_CHANGES,
}
"""Values that are valid even if no case of the run has them."""
LONGEST = 4_000
"""Characters of an expression: a row of quotation marks takes a time that grows with its square."""
# Python and JavaScript agree on the whitespace and letters in this expression.
_TERM = re.compile(r'(-?)(?:([^\W\d][\w.@-]*?)(:|<=|>=|<|>|=))?("(?:[^"\\]|\\.)*"|[^\s\ufeff"]+)', re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = (0, 1)
Test = Callable[[int], bool]
"""Tells of a case by its number whether it meets a term."""


class FilterError(ValueError):
    """A term without a meaning in this run; the message names it and suggests another."""


class Term(NamedTuple):
    """One term as written; `word` and `sign` are empty for a value alone."""

    is_negated: bool
    word: str
    sign: str
    value: str


def read_terms(expression: str) -> Iterator[Term]:
    """Yield the terms of an expression; skip what is no term, such as a single quotation mark.

    Raise FilterError for an expression that is too long to be one.
    """
    if len(expression) > LONGEST:
        raise FilterError(f"the filter is longer than {LONGEST:,} characters")
    for minus, word, sign, written in _TERM.findall(expression):
        value = written
        if written.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", written[1:-1], flags=re.DOTALL)
        yield Term(bool(minus), word, sign, value)


def filtered_keys(run: StoredRun, expression: str, option: str) -> frozenset[str]:
    """Return the keys of a finished run's cases that meet all terms; SettingsError names the `option` and the term."""
    comparison = run.finished_metrics.get("comparison")
    listed = list_cases(
        side_of_run(run),
        changes_of(comparison),
        is_compared=comparison is not None,
        new_causes=new_causes_of(comparison),
    )
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
        terms = list(read_terms(expression))
        if most_terms is not None and len(terms) > most_terms:
            raise FilterError(f"the filter has {len(terms)} terms, more than {most_terms}")
        tests = [self._test(term) for term in terms]  # all, so that a bad term is an error even if no case is left
        left: Sequence[int] = range(len(self.listed.cases))
        for term, meets in zip(terms, tests, strict=True):
            left = [number for number in left if meets(number) != term.is_negated]
        return left

    def column(self, written: str) -> Column | None:
        """Return the values of an operation, drop, level, or the metric of this name, its cut-off left out or not."""
        if written in OPERATION_UNITS:
            return all_rounded(case.operations.get(written) for case in self.listed.cases)
        if written in self.measured:
            return all_rounded(getattr(case, written) for case in self.listed.cases)
        metric = _named(written, self.listed.scores)
        return None if metric is None else all_rounded(self.listed.scores[metric])

    @property
    def measured(self) -> tuple[str, ...]:
        """Return the numbers that are known besides the metrics."""
        operations = tuple(OPERATION_UNITS)
        return operations if self.listed.falls is None else (*operations, "drop", "level")

    def _test(self, term: Term) -> Test:
        word = term.word
        value = term.value
        if not word:
            text = value.lower()
            return lambda number: text in self.texts[number]
        if term.sign == ":" and word == "id":
            return lambda number: value in printable(self.listed.cases[number].id)
        if term.sign == ":" and word in WORDS:
            return self._is_one_of(word, value)
        if term.sign == ":" and word == "fell" and self.listed.falls is not None:
            return self._has_fallen(value)
        return self._is_measured(word, term.sign, value)

    def _is_one_of(self, word: str, value: str) -> Test:
        if word == "changed" and not self.listed.is_compared:
            run = printable(self.listed.run_id)
            raise FilterError(f"run {run} was compared with no baseline: nothing changed in it; leave changed: out")
        if word == "answer" and not self.listed.has_answers_before:
            run = printable(self.listed.run_id)
            raise FilterError(f"the answers of run {run} are compared with none here; leave answer: out")
        values = self._columns.get(word) or [self._values(case, word) for case in self.listed.cases]
        self._columns[word] = values
        shown = {each: printable(each) for each in set().union(*values)}
        present = {*shown.values()}
        names = {*present, *ALWAYS.get(word, ())}
        choices = {value} if value in names else {*value.split(",")}
        unknown = sorted(choices - names)
        if unknown:
            there = ", ".join(sorted(filter(None, present))) or "none"
            remedy = did_you_mean(unknown[0], names, f"; there are {there}")
            raise FilterError(f"no case has {word} {unknown[0]!r}{remedy}")
        meant = {each for each, written in shown.items() if written in choices}
        return lambda number: not meant.isdisjoint(values[number])

    def _has_fallen(self, value: str) -> Test:
        falls = self.listed.falls or {}
        metric = _named(value, falls)
        if metric is None:
            metrics = ", ".join(sorted(falls)) or "no metric"
            remedy = did_you_mean(value, falls, f"; cases fell in {metrics}")
            raise FilterError(f"no case fell in {value!r}{remedy}")
        fallen = {fall.number for fall in falls[metric]}
        return fallen.__contains__

    def _is_measured(self, word: str, sign: str, value: str) -> Test:
        column = self.column(word)
        if column is None:
            words = (*WORDS, "id")
            otherwise = f"; words: {', '.join([*words, *self.measured])}, or a metric"
            remedy = did_you_mean(word, {*words, *self.measured, *self.listed.scores}, otherwise)
            raise FilterError(f"{word!r} is nothing to filter by{remedy}")
        if sign not in COMPARISONS or not _NUMBER.fullmatch(value):
            raise FilterError(f"'{word}{sign}{value}' needs a comparison with a number, as in {word}<0.5")
        compare = COMPARISONS[sign]
        limit = float(value)

        def meets(number: int) -> bool:
            measured = column[number]
            return measured is not None and compare(measured, limit)

        return meets

    @cached_property
    def _columns(self) -> dict[str, list[Sequence[str]]]:
        """Return the values of words that were asked for before."""
        return {}

    @cached_property
    def texts(self) -> list[str]:
        """Return the texts of each case for the search: each on a line, in lower case."""
        texts: list[str] = []
        for case in self.listed.cases:
            fields = (case.id, case.question or "", case.answer or "", case.place, case.why)
            texts.append(_searched(fields).lower())
        return texts

    def _values(self, case: ListedCase, word: str) -> Sequence[str]:
        """Return the case's values for a word that is compared as a whole."""
        if word == "tag":
            return case.tags
        if word == "unchecked":
            return case.unchecked
        if word == "answer":
            return (case.answer_change,)
        if word == "layer":
            return self.listed.layers(case)
        if word == "changed":
            return (case.change,)
        if word in DESCRIPTIVE_NAMES:
            return (case.descriptions.get(word, ""),)
        return (getattr(case, word),)


def _searched(texts: Sequence[str]) -> str:
    """Return texts as a page shows them, each on a line without needless spaces."""
    joined = "\n".join(texts)
    # Most are so already: to see that for all together takes a third of the time of rewriting each.
    has_spare_space = "  " in joined or " \n" in joined or "\n " in joined
    is_on_lines = joined.count("\n") == len(texts) - 1
    if is_on_lines and not has_spare_space and joined.replace("\n", "").isprintable():
        return joined
    return printable("\n".join(" ".join(text.split()) for text in texts))


def all_rounded(numbers: Iterable[float | None]) -> list[float | None]:
    """Round numbers for comparisons; skip 0 and 1, which most scores are: rounding one takes eight times as long."""
    return [number if number is None or number in _WHOLE else round(number, DECIMALS) for number in numbers]


def _named(written: str, names: Collection[str]) -> str | None:
    """Return the metric of this name, or the first one with this name before its cut-off."""
    if written in names:
        return written
    return next((name for name in sorted(names) if name.partition("@")[0] == written), None)
