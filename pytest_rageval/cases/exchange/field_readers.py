"""Values of a field as keys of a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_rageval.cases.exchange.gold_objects import gold_places, pages_of
from pytest_rageval.cases.exchange.printed import is_nothing
from pytest_rageval.cases.exchange.values import listed_facts, listed_values, reference_of, texts_of, turns_of
from pytest_rageval.cases.names import ALTERNATIVES, ANSWER, FACTS, GRADES, HEADINGS, IDS, PAGES, PLACES
from pytest_rageval.model import Json


def _facts(value: Json) -> dict[str, Json] | None:
    facts = listed_facts(value)
    return {"expected_key_facts": facts} if facts else None


def _alternatives(value: Json) -> dict[str, Json] | None:
    texts = texts_of([each for each in listed_values(value) if not is_nothing(each)])
    return {ALTERNATIVES: texts} if texts else None


def _pages(value: Json) -> dict[str, Json] | None:
    """Return the pages of each document: one list, or a list for each."""
    is_nested = isinstance(value, list) and any(isinstance(each, list) for each in value)
    if isinstance(value, list) and (is_nested or len(value) > 1):
        pages = [pages_of(each) for each in value]
        return None if None in pages else {PAGES: pages}
    pages_there = pages_of(value)
    return None if pages_there is None else {PAGES: [pages_there]}


def _history(value: Json) -> dict[str, Json] | None:
    turns = turns_of(value)
    return {"history": turns} if turns else None


def _id(value: Json) -> dict[str, Json] | None:
    is_id = isinstance(value, (str, int)) and not isinstance(value, bool)
    return {"id": str(value)} if is_id else None


READERS: Mapping[str, Callable[[Json], dict[str, Json] | None]] = {
    ANSWER: reference_of,
    ALTERNATIVES: _alternatives,
    FACTS: _facts,
    PLACES: lambda value: gold_places(value, as_ids=False),
    IDS: lambda value: gold_places(value, as_ids=True),
    PAGES: _pages,
    HEADINGS: lambda value: {HEADINGS: value},
    GRADES: lambda value: {GRADES: value},
    "history": _history,
    "tags": lambda value: {"tags": [str(tag) for tag in listed_values(value)]},
    "id": _id,
}
"""Values of a field as keys of a case; None for a value that is none of the field."""
