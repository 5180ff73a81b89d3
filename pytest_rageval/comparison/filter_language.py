r"""The filter language of cases: `outcome:failed changed:worse -tag:slow mrr<0.5 "words"`, read into conditions.

    expression  terms separated by spaces; a case must meet all
    term        word sign value, or a value alone that is searched in the case's texts; `-` in front negates it
    sign        `:` is one of (several with commas) · `<` `<=` `>` `>=` `=` a number
    value       without spaces, or in quotation marks with \" and \\ for the two

The HTML report's script (`render/html/assets/cases.js`) reads the same language. Filters compare what the list of
cases shows: escaped control characters, scores with four decimals, whole milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.matching.dialects import DOUBTS, NO_DOUBT
from pytest_rageval.metrics.registry import LAYERS
from pytest_rageval.runs.aggregate import OUTCOMES

CHANGES = {"worse": "flipped_to_fail", "fixed": "flipped_to_pass", "unmeasured": "unmeasured", "new": "only_after"}
"""The changes of a case since the baseline, with the lists of metrics.json that name such cases; else `same`."""
UNCHANGED = "same"
GROUPS = ("category", "difficulty", "domain", "tag")
WORDS = ("outcome", "changed", *GROUPS, "file", "id", "layer", "doubt")
SIGNS = ("<", ">", "<=", ">=", "=")
LATENCY, DROP, LEVEL, FELL = "latency", "drop", "level", "fell"
DECIMALS = 4
"""The precision of scores, drops and levels in comparisons with a number."""
ALWAYS: Mapping[str, Collection[str]] = {
    "outcome": OUTCOMES,
    "changed": (*CHANGES, UNCHANGED),
    "layer": tuple(LAYERS),
    "doubt": (*DOUBTS, NO_DOUBT),
}
"""Values that are valid even if no case of the run has them."""
# Python and JavaScript agree on the whitespace and letters in this expression.
_TERM = re.compile(r'(-?)(?:([^\W\d][\w.@-]*?)(:|<=|>=|<|>|=))?("(?:[^"\\]|\\.)*"|[^\s\ufeff"]+)', re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class FilterError(ValueError):
    """A term without a meaning in this run; the message names it and suggests another."""


class Term(NamedTuple):
    """One term as written; `word` and `sign` are None for a value alone."""

    is_negated: bool
    word: str | None
    sign: str | None
    value: str


class HasText(NamedTuple):
    """Cases with these characters in id, question, answer, reason or place, ignoring upper and lower case."""

    text: str


class HasId(NamedTuple):
    """Cases with these characters in their id."""

    text: str


class IsOneOf(NamedTuple):
    """Cases with one of these values for a word of `WORDS`."""

    word: str
    values: frozenset[str]


class IsMeasured(NamedTuple):
    """Cases with a number that passes the comparison; `name` is a metric, or latency, drop or level."""

    name: str
    sign: str
    limit: float


class HasFallen(NamedTuple):
    """Cases that are worse in a metric than in the other run."""

    metric: str


Condition = HasText | HasId | IsOneOf | IsMeasured | HasFallen


class Filter(NamedTuple):
    """A condition and whether it is negated."""

    is_negated: bool
    condition: Condition


@dataclass(frozen=True, slots=True)
class FilterVocabulary:
    """The meanings of the language's words in one run.

    values       the values that its cases have, by word
    metrics      the metrics with a score of any case
    numbers      which of latency, drop and level are known
    fallen       the metrics in which a case fell; None if not known
    is_compared  whether the run was compared with another one
    """

    run_id: str
    values: Mapping[str, Collection[str]]
    metrics: Collection[str]
    numbers: Collection[str] = (LATENCY,)
    fallen: Collection[str] | None = None
    is_compared: bool = True

    def metric(self, written: str) -> str | None:
        """Return the metric of this name, or the first one with this name before its cut-off."""
        return _named(written, self.metrics)


def read_terms(expression: str) -> Iterator[Term]:
    """Yield the terms of an expression; skip what is no term, such as a single quotation mark."""
    for minus, word, sign, written in _TERM.findall(expression):
        value = re.sub(r"\\(.)", r"\1", written[1:-1], flags=re.DOTALL) if written.startswith('"') else written
        yield Term(bool(minus), word or None, sign or None, value)


def read_filter(expression: str, vocabulary: FilterVocabulary) -> list[Filter]:
    """Return the filters of an expression; raise FilterError if a term has no meaning."""
    return [Filter(term.is_negated, _condition(term, vocabulary)) for term in read_terms(expression)]


def _condition(term: Term, vocabulary: FilterVocabulary) -> Condition:
    if term.word is None or term.sign is None:
        return HasText(term.value.lower())
    if term.sign == ":" and term.word == "id":
        return HasId(term.value)
    if term.sign == ":" and term.word in WORDS:
        return _is_one_of(term.word, term.value, vocabulary)
    if term.sign == ":" and term.word == FELL and vocabulary.fallen is not None:
        return _has_fallen(term.value, vocabulary.fallen)
    return _is_measured(term.word, term.sign, term.value, vocabulary)


def _is_one_of(word: str, value: str, vocabulary: FilterVocabulary) -> IsOneOf:
    if word == "changed" and not vocabulary.is_compared:
        run = vocabulary.run_id
        raise FilterError(f"run {run} was compared with no baseline: nothing changed in it; leave changed: out")
    names = {*vocabulary.values.get(word, ()), *ALWAYS.get(word, ())}
    choices = (value,) if value in names else tuple(value.split(","))
    for choice in choices:
        if choice not in names:
            present = ", ".join(sorted(filter(None, vocabulary.values.get(word, ())))) or "none"
            raise FilterError(f"no case has {word} {choice!r}{did_you_mean(choice, names, f'; there are {present}')}")
    return IsOneOf(word, frozenset(choices))


def _has_fallen(value: str, fallen: Collection[str]) -> HasFallen:
    metric = _named(value, fallen)
    if metric is None:
        present = f"; cases fell in {', '.join(sorted(fallen)) or 'no metric'}"
        raise FilterError(f"no case fell in {value!r}{did_you_mean(value, fallen, present)}")
    return HasFallen(metric)


def _is_measured(word: str, sign: str, value: str, vocabulary: FilterVocabulary) -> IsMeasured:
    name = word if word in vocabulary.numbers else vocabulary.metric(word)
    if name is None:
        otherwise = f"; words: {', '.join([*WORDS, *vocabulary.numbers])}, or a metric"
        remedy = did_you_mean(word, {*WORDS, *vocabulary.metrics}, otherwise)
        raise FilterError(f"{word!r} is nothing to filter by{remedy}")
    if sign not in SIGNS or not _NUMBER.fullmatch(value):
        raise FilterError(f"'{word}{sign}{value}' needs a comparison with a number, as in {word}<0.5")
    return IsMeasured(name, sign, float(value))


def _named(written: str, names: Collection[str]) -> str | None:
    if written in names:
        return written
    return next((name for name in sorted(names) if name.partition("@")[0] == written), None)
