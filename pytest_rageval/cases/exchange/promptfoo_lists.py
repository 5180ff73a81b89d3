"""promptfoo's variables that are lists: each value makes a test of its own there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_rageval.cases.names import QUESTION, field_of
from pytest_rageval.model import Json

_MOST_TESTS = 200
"""Tests that the lists of one test make: two lists of a thousand values would make a million."""
_NAMED = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def tests_of_matrix(row: Json) -> list[Json]:
    """Return a test once for each value of a list that is its question, or that its question or a check names."""
    variables = row.get("vars") if isinstance(row, dict) else None
    if not isinstance(row, dict) or not isinstance(variables, dict):
        return [row]
    tests = [variables]
    for name in _lists_in_use(variables, row.get("assert")):
        values = variables[name]
        if len(tests) * len(values) <= _MOST_TESTS:
            tests = list(_with_each(tests, name, values))
    return [{**row, "vars": test} for test in tests]


def unread_lists(variables: Mapping[str, Json]) -> list[str]:
    """Return a note for each variable whose values remain a list that has no meaning here."""
    names = [name for name, value in variables.items() if _is_list_of_texts(value) and field_of(name) is None]
    return [f"vars.{name} is a list: write one test for each value; kept in metadata" for name in names]


def _lists_in_use(variables: Mapping[str, Json], checks: Json) -> Iterator[str]:
    named = set(_names_in([list(variables.values()), checks]))
    for name, value in variables.items():
        is_used = field_of(name) == QUESTION or name in named
        if is_used and _is_list_of_texts(value):
            yield name


def _names_in(value: Json) -> Iterator[str]:
    """Yield the variables that stand in a text, or in the texts of a list or an object."""
    if isinstance(value, str):
        yield from _NAMED.findall(value)
    elif isinstance(value, dict):
        yield from _names_in(list(value.values()))
    elif isinstance(value, list):
        for each in value:
            yield from _names_in(each)


def _with_each(tests: list[dict[str, Any]], name: str, values: list[str]) -> Iterator[dict[str, Any]]:
    for test in tests:
        for value in values:
            yield {**test, name: value}


def _is_list_of_texts(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)
