"""Assertions about JSON: whether an answer is some, contains some, and fits a JSON Schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pytest_rageval.assertions.assertion_type import AssertionType, Checked, CheckedAnswer, ValueRule, assertion_type
from pytest_rageval.assertions.json_schema import mismatch, schema_problem
from pytest_rageval.assertions.values import length_problem, text_of
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model.assertion import Assertion

MOST_CANDIDATES = 200
"""Places of an answer where JSON may begin that are tried."""
LONGEST_READ = 200_000
"""Characters of an answer in which JSON is looked for."""


def _expected_problem(value: Any) -> str | None:
    """Check the value of `equals`: a text, a number, or any JSON value."""
    return length_problem(value) if isinstance(value, str) else None


_SCHEMA = ValueRule(schema_problem, {"type": ["object", "boolean"]}, is_optional=True)
_ANYTHING = ValueRule(_expected_problem, {})


@assertion_type(_ANYTHING)
def equals(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The answer is the value, except for white space at its ends. An object or a list is compared as JSON.

    `1` equals `1.0`, and never `true`.
    """
    value = assertion.value
    if isinstance(value, dict | list | tuple):
        found, problem = _as_json(answer)
        if problem:
            return Checked(holds=False, received=problem)
        return Checked(equal_json(found, value), received=f"the answer is {shown_value(found)}")
    if isinstance(value, bool) or value is None:
        value = json.dumps(value)
    holds = answer.text.strip() == text_of(value).strip()
    return Checked(holds, received=f"the answer is {answer.excerpt}")


@assertion_type(_SCHEMA)
def is_json(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The whole answer is JSON, and fits the JSON Schema if one is given.

    A code fence around it is not JSON: use `contains-json`. A key that occurs twice and `NaN` are not JSON.
    """
    found, problem = _as_json(answer)
    if problem:
        return Checked(holds=False, received=problem)
    why = mismatch(assertion.value, found)
    return Checked(holds=not why, received=why or f"the answer is {shown_value(found)}")


@assertion_type(_SCHEMA)
def contains_json(answer: CheckedAnswer, assertion: Assertion) -> Checked:
    """The answer contains an object or a list of objects as JSON, which fits the JSON Schema if one is given.

    `[1]` is a citation mark, not JSON.
    """
    why = f"no JSON is in the answer {answer.excerpt}"
    for found in _json_in(answer.text[:LONGEST_READ]):
        why = mismatch(assertion.value, found)
        if not why:
            return Checked(holds=True, received=f"the answer contains {shown_value(found)}")
    return Checked(holds=False, received=why)


def _as_json(answer: CheckedAnswer) -> tuple[Any, str]:
    """Return the answer as a JSON value, and why it is none."""
    try:
        return parse(answer.text.strip()), ""
    except StrictJsonError as error:
        return None, f"the answer {answer.excerpt} is not JSON: {error}"


_BEGINS = re.compile(r"\{|\[(?=\s*\{)")
"""A list of numbers is left out: `[1]` is a citation mark."""
_DECODER = json.JSONDecoder()


def _json_in(text: str) -> Iterator[Any]:
    """Yield the JSON values that begin in a text, the outermost ones."""
    end = 0
    tried = 0
    for begin in _BEGINS.finditer(text):
        if begin.start() < end:
            continue
        tried += 1
        if tried > MOST_CANDIDATES:
            return
        try:
            found, end = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            continue
        yield found


def equal_json(found: Any, expected: Any) -> bool:
    """Compare JSON values: true is not 1, and 1 is 1.0."""
    if isinstance(expected, dict):
        if not isinstance(found, dict) or found.keys() != expected.keys():
            return False
        return all(equal_json(found[key], value) for key, value in expected.items())
    if isinstance(expected, list | tuple):
        if not isinstance(found, list) or len(found) != len(expected):
            return False
        return all(equal_json(one, other) for one, other in zip(found, expected, strict=True))
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    return bool(found == expected)


TYPES: tuple[AssertionType, ...] = (equals, is_json, contains_json)
