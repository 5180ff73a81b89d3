"""What values of assertions may be: texts, lists of texts, patterns, counts."""

from __future__ import annotations

import math
from typing import Any

from pytest_rageval.assertions.assertion_type import ValueRule
from pytest_rageval.assertions.patterns import pattern_problem
from pytest_rageval.io.messages import describe, shown_value

LONGEST_VALUE = 20_000
"""Characters of a value."""
MOST_VALUES = 1_000
"""Texts in a list."""


def text_of(value: Any) -> str:
    """Return a text or a number as text, a whole number without its point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _is_text(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, str | int | float)


def _text_problem(value: Any) -> str | None:
    if not _is_text(value):
        return f"is {describe(value)}, expected a string or a number"
    if isinstance(value, str):
        return length_problem(value)
    return None


def length_problem(value: str) -> str | None:
    """Return what is wrong with the length of a text."""
    if not value.strip():
        return "is blank; write what the answer is compared with"
    if len(value) > LONGEST_VALUE:
        return f"has {len(value):,} characters, more than {LONGEST_VALUE:,}; shorten it"
    return None


def _string_problem(value: Any) -> str | None:
    if not isinstance(value, str):
        return f"is {describe(value)}, expected a string"
    return length_problem(value)


def _texts_problem(value: Any) -> str | None:
    if not isinstance(value, list | tuple):
        return f"is {describe(value)}, expected a list of strings; for a single one write contains or icontains"
    if not value:
        return "is empty; name at least one text"
    if len(value) > MOST_VALUES:
        return f"has {len(value):,} members, more than {MOST_VALUES:,}"
    for number, each in enumerate(value):
        problem = _text_problem(each)
        if problem is not None:
            return f"[{number}] {problem}"
    return None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _count_problem(value: Any) -> str | None:
    if _is_count(value):
        return None
    expected = 'expected a whole number, or {"min": 10, "max": 50} with one of both or both'
    if not isinstance(value, dict) or not value or not value.keys() <= {"min", "max"}:
        return f"is {shown_value(value)}, {expected}"
    if not all(map(_is_count, value.values())):
        return f"is {shown_value(value)}, {expected}"
    if value.get("min", 0) > value.get("max", math.inf):
        return f"is {shown_value(value)}, whose min is above its max; exchange them"
    return None


def _pattern_problem(value: Any) -> str | None:
    return _string_problem(value) or pattern_problem(value)


_STRING = {"type": "string", "pattern": r"\S"}
_TEXT = {"anyOf": [_STRING, {"type": "number"}]}
_COUNT = {"type": "integer", "minimum": 0}

TEXT = ValueRule(_text_problem, _TEXT)
STRING = ValueRule(_string_problem, _STRING)
TEXTS = ValueRule(_texts_problem, {"type": "array", "items": _TEXT, "minItems": 1})
PATTERN = ValueRule(_pattern_problem, _STRING)
COUNT = ValueRule(
    _count_problem,
    {"anyOf": [_COUNT, {"type": "object", "properties": {"min": _COUNT, "max": _COUNT}, "minProperties": 1}]},
)
