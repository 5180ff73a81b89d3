"""Columns give back what was put in, as lists do."""

from __future__ import annotations

import math
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.io.compact.columns import CodedColumn, HashColumn, NumberColumn

NUMBERS = st.none() | st.floats(allow_nan=False) | st.integers(-3, 3)


def taken(column: Any, values: list[Any]) -> Any:
    for value in values:
        column.append(value)
    return column


@given(st.lists(NUMBERS) | st.lists(st.none() | st.floats(allow_nan=False)))
def test_a_column_of_numbers_is_their_list(values: list[float | None]):
    column = taken(NumberColumn(), values)
    # By their spelling: 1 and 1.0 are equal, and written differently.
    assert list(map(repr, column)) == list(map(repr, values))
    assert list(map(repr, column[1:])) == list(map(repr, values[1:]))
    assert (None in column) == (None in values)
    assert list(map(repr, column.present())) == [repr(value) for value in values if value is not None]
    places = range(0, len(values), 2)
    some = [values[place] for place in places]
    assert list(map(repr, column.present(places))) == [repr(value) for value in some if value is not None]


def test_scores_take_eight_bytes_each_and_absent_ones_are_filled_in():
    column = NumberColumn()
    column.fill(2)
    column.append(0.5)
    column.fill(5)
    column.fill(1)
    assert list(column) == [None, None, 0.5, None, None]
    assert isinstance(taken(NumberColumn(), [0.5, 1.0]).present(), array)


def test_a_number_that_is_none_of_json_is_kept_as_it_is():
    assert math.isinf(taken(NumberColumn(), [math.inf])[0])


@given(st.lists(st.sampled_from(["passed", "failed", "error"])))
def test_values_that_repeat_are_held_once(values: list[str]):
    column = taken(CodedColumn(), values)
    assert list(column) == values
    assert column.values == list(dict.fromkeys(values))
    assert dict(column.counts()) == {value: values.count(value) for value in values}
    assert list(column.where("failed".__eq__)) == [place for place, value in enumerate(values) if value == "failed"]


def test_values_that_cannot_be_looked_up_are_told_apart_by_what_the_column_is_given():
    column = taken(CodedColumn(lambda value: tuple(value.items())), [{"a": 1}, {"a": 2}, {"a": 1}, {"a": 1}])
    assert list(column) == [{"a": 1}, {"a": 2}, {"a": 1}, {"a": 1}]
    assert len(column.values) == 2


@given(st.lists(st.none() | st.from_regex(r"[0-9a-f]{4}-[0-9a-f]{2}", fullmatch=True) | st.text(max_size=7)))
def test_a_column_of_hashes_is_their_list(values: list[str | None]):
    column = taken(HashColumn(4, 2), values)
    assert list(column) == values
    assert len(column) == len(values)


@pytest.mark.parametrize("column", [NumberColumn(), CodedColumn(), HashColumn(4)])
def test_beyond_its_end_a_column_has_nothing(column: Any):
    column.append(None)
    assert column[-1] is None
    for place in (1, -2):
        with pytest.raises(IndexError):
            column[place]
