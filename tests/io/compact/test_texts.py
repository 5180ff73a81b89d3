"""Texts in one piece of memory are found and given back as a list and a dict do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.io.compact.texts import TextColumn, TextIndex, TextNumbers, TextTable

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=6)


@given(st.lists(ANY_TEXT))
def test_a_column_is_the_list_of_its_texts(texts: list[str]):
    column = TextColumn(texts)
    assert list(column) == texts
    assert [column[place] for place in range(-len(texts), len(texts))] == texts * 2
    assert column[1:-1] == texts[1:-1]
    with pytest.raises(IndexError):
        column[len(texts)]


@given(st.lists(ANY_TEXT), st.lists(ANY_TEXT))
def test_a_table_numbers_each_text_once_in_the_order_of_their_coming(texts: list[str], others: list[str]):
    table = TextTable()
    numbers = [table.add(text) for text in texts]
    places = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    assert numbers == [places[text] for text in texts]
    assert list(table) == list(places)
    assert [table.number(text) for text in [*texts, *others]] == [places.get(text) for text in [*texts, *others]]
    assert [text in table for text in others] == [text in places for text in others]


@given(st.lists(st.sampled_from(["a", "b", "탑", "\ud800", ""]), max_size=40))
def test_an_index_knows_every_place_of_a_text(texts: list[str]):
    column = TextColumn()
    index = TextIndex(column)
    for text in texts:
        column.append(text)
        index.note_last(text)
    for text in ("a", "b", "탑", "\ud800", "", "c"):
        places = [place for place, each in enumerate(texts) if each == text]
        assert sorted(index.places(text)) == places
        assert index.first(text) == (places[0] if places else None)


def test_many_texts_are_all_found_again():
    table = TextTable(f"case-{number}" for number in range(5_000))
    assert [table.number(f"case-{number}") for number in range(5_000)] == list(range(5_000))
    assert "case-5000" not in table
    assert 7 not in table


@given(st.lists(st.tuples(ANY_TEXT, st.integers(0, 2**64 - 1))))
def test_numbers_by_text_are_a_dict(pairs: list[tuple[str, int]]):
    numbers, plain = TextNumbers(), dict[Any, int]()
    for text, number in pairs:
        numbers[text] = plain[text] = number
    assert {text: numbers[text] for text in numbers} == plain
    assert len(numbers) == len(plain)
    assert all(text in numbers and numbers.get(text) == number for text, number in plain.items())
    with pytest.raises(KeyError):
        numbers["a text of more than six"]
    assert numbers.get("a text of more than six") is None
