"""Limits of free-form JSON: depth and digits, wherever they are broken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_rageval.io.strict_json import MAX_DEPTH, limits_broken


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize("value", [None, 1, "x" * 10_000, [], {}, 2**1024 - 1, 1.5, True, nested(MAX_DEPTH)])
def test_what_a_record_can_hold_breaks_nothing(value: Any):
    assert limits_broken(value) == ""


@pytest.mark.parametrize("around", [lambda value: value, lambda value: [value], lambda value: {"a": ["b", value]}])
def test_what_it_cannot_is_said_wherever_it_stands(around: Any):
    assert limits_broken(around(nested(MAX_DEPTH + 1))) == "is nested deeper than 64 levels"
    assert limits_broken(around(-(2**1024))) == "holds a number of more than 300 digits"


def test_the_depth_is_the_callers():
    assert limits_broken(nested(3), 3) == ""
    assert limits_broken(nested(4), 3) == "is nested deeper than 3 levels"
    assert limits_broken({"a": {"b": {"c": {}}}}, 3) == "is nested deeper than 3 levels"
