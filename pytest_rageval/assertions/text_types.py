"""Assertions about the words of an answer."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from pytest_rageval.assertions.assertion_type import (
    SHOWN,
    AssertionType,
    Checked,
    CheckedAnswer,
    ThresholdRule,
    assertion_type,
)
from pytest_rageval.assertions.edit_distance import edit_distance
from pytest_rageval.assertions.patterns import is_found
from pytest_rageval.assertions.values import COUNT, PATTERN, STRING, TEXT, TEXTS, text_of
from pytest_rageval.io.messages import shown_value
from pytest_rageval.model.assertion import Assertion
from pytest_rageval.text import counted, cut

DEFAULT_EDITS = 5
MOST_EDITS = 200
"""The largest threshold of `levenshtein`: its time grows with the threshold and the length of the value."""


def _plain(text: str) -> str:
    """Return a text in Unicode's NFC, so that the same letters are equal however they are composed."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _folded(text: str) -> str:
    return _plain(text).casefold()


def _found(text: str, values: Iterable[str]) -> list[str]:
    return [value for value in values if value in text]


def _context(text: str, value: str) -> str:
    """Return the text around the first place of a value, on one line."""
    at = text.find(value)
    start = max(0, at - SHOWN // 3)
    around = " ".join(text[start : at + len(value) + SHOWN // 3].split())
    return f'"…{cut(around, 2 * SHOWN)}…"'


def _in_text(text: str, values: list[str], answer: CheckedAnswer) -> Checked:
    """Check that a text has all values; say which are missing, or where the first one stands."""
    missing = [value for value in values if value not in text]
    if missing:
        named = ", ".join(shown_value(value) for value in missing)
        return Checked(holds=False, received=f"{named} is not in the answer {answer.excerpt}")
    return Checked(holds=True, received=f"it stands in {_context(text, values[0])}")


def _any_in_text(text: str, values: list[str], answer: CheckedAnswer) -> Checked:
    found = _found(text, values)
    if found:
        return Checked(holds=True, received=f"{shown_value(found[0])} stands in {_context(text, found[0])}")
    return Checked(holds=False, received=f"none of them is in the answer {answer.excerpt}")


def _values(assertion: Assertion) -> list[str]:
    value = assertion.value
    listed = value if isinstance(value, list | tuple) else [value]
    return [_plain(text_of(each)) for each in listed]


def _folded_values(assertion: Assertion) -> list[str]:
    return [value.casefold() for value in _values(assertion)]


@assertion_type(TEXT)
def contains(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The answer contains the value; upper and lower case differ.

    Letters are compared in Unicode's NFC. `14` contains `4`: use a `regex` to tell them apart.
    """
    return _in_text(_plain(answer.text), _values(assertion), answer)


@assertion_type(TEXT)
def icontains(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The answer contains the value; upper and lower case are equal."""
    return _in_text(_folded(answer.text), _folded_values(assertion), answer)


@assertion_type(TEXTS)
def contains_any(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The answer contains at least one of the values; upper and lower case differ."""
    return _any_in_text(_plain(answer.text), _values(assertion), answer)


@assertion_type(TEXTS)
def contains_all(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The answer contains all of the values; upper and lower case differ."""
    return _in_text(_plain(answer.text), _values(assertion), answer)


@assertion_type(TEXTS)
def icontains_any(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The answer contains at least one of the values; upper and lower case are equal."""
    return _any_in_text(_folded(answer.text), _folded_values(assertion), answer)


@assertion_type(TEXTS)
def icontains_all(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The answer contains all of the values; upper and lower case are equal."""
    return _in_text(_folded(answer.text), _folded_values(assertion), answer)


@assertion_type(TEXT)
def starts_with(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The answer starts with the value, after white space; upper and lower case differ."""
    text = _plain(answer.text).lstrip()
    holds = text.startswith(_plain(text_of(assertion.value)).lstrip())
    return Checked(holds, received=f"it starts {answer.excerpt}")


@assertion_type(PATTERN)
def regex(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The pattern matches anywhere in the answer; `(?i)` ignores case.

    Look-around and backreferences are not supported. A pattern has at most 1,000 characters, and 1,500 with its
    repetitions written out. An answer of more than 50,000 characters is an error of the case.
    """
    holds = is_found(assertion.value, answer.text)
    verdict = "matches" if holds else "does not match"
    return Checked(holds, received=f"it {verdict} in {answer.excerpt}")


@assertion_type(COUNT)
def word_count(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The answer has this number of words, or a number from `min` to `max`.

    Words are separated by white space, so Chinese and Japanese sentences count as few.
    """
    words = len(answer.text.split())
    value = assertion.value
    if isinstance(value, dict):
        least = value.get("min", 0)
        most = value.get("max", words)
        holds = least <= words <= most
    else:
        holds = words == value
    return Checked(holds, received=f"the answer has {counted(words, 'word')}")


@assertion_type(STRING, ThresholdRule("the most edits", high=MOST_EDITS, default=DEFAULT_EDITS, is_whole=True))
def levenshtein(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """At most `threshold` insertions, deletions and replacements of a character turn the answer into the value.

    White space at both ends does not count.
    """
    most = int(levenshtein.limit(assertion))
    edits = edit_distance(_plain(answer.text).strip(), _plain(assertion.value).strip(), most)
    if edits is None:
        return Checked(holds=False, received=f"it takes more than {counted(most, 'edit')} from {answer.excerpt}")
    return Checked(holds=True, received=f"it takes {counted(edits, 'edit')} from {answer.excerpt}")


TYPES: tuple[AssertionType, ...] = (
    contains,
    icontains,
    contains_any,
    contains_all,
    icontains_any,
    icontains_all,
    starts_with,
    regex,
    word_count,
    levenshtein,
)
