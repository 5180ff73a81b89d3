"""The items of a gold answer that is a list: red, green and blue."""

from __future__ import annotations

import re

from pytest_rageval.language.lazy_patterns import compiled_pattern
from pytest_rageval.language.polarity_words import CHOICES
from pytest_rageval.language.statements import LONGEST, Statement, read

WHOLE_WEIGHT = 0.2
"""Counted for a list that is whole: one item of two is no answer at a gate of 0.5, and two of three are."""


def items_of(gold: str, question: str) -> tuple[Statement, ...]:
    """Return the items of a list as they are read; none for another gold, such as a place and where it lies."""
    gold = gold[:LONGEST]
    if _MAY_JOIN.search(gold) is None or not CHOICES.isdisjoint(gold.casefold().split()):
        return ()
    items = [item for item in compiled_pattern(_BETWEEN_ITEMS, re.IGNORECASE).split(gold) if item.strip()]
    if not _MOST_ITEMS >= len(items) >= _LEAST_ITEMS:
        return ()
    if compiled_pattern(_JOINING, re.IGNORECASE).search(gold) is None and _is_place(items, question):
        return ()
    read_items = tuple(map(read, items))
    if all(_is_item(item) for item in read_items):
        return read_items
    return ()


def _is_place(items: list[str], question: str) -> bool:
    """Check for what only commas divide, and may be one thing: Rock Island, Illinois; Curie, Marie."""
    if compiled_pattern(_CJK).search(items[0]) is not None:
        return False
    are_names = all(item.strip()[:1].isupper() for item in items)
    return (
        len(items) == _LEAST_ITEMS
        or are_names
        or compiled_pattern(_ASKS_WHERE, re.IGNORECASE).search(question) is not None
    )


def _is_item(item: Statement) -> bool:
    if item.quantities or any(word.is_denied for word in item.words):
        return False
    return len(item.words) + len(item.runs) <= _WORDS_OF_AN_ITEM


_CJK = "[가-힣぀-ヿ一-鿿]"
_NO_HIRAGANA = "[゠-ヿ一-鿿]"
_JOINING_PATTERN = (
    r"\s(?:and|und|sowie|et|y|e|plus|&|그리고|및)\s"
    r"|(?<=[가-힣]{2}[와과])\s"
    rf"|(?<={_NO_HIRAGANA}{{2}})(?:と|和|及び|および|以及|及|与|與)(?={_NO_HIRAGANA}{{2}})"
)
_JOINING = _JOINING_PATTERN
_BETWEEN_ITEMS = rf",\s?(?:(?:and|und|et|y|e|&|그리고|및)\s)?|[、，;；・]|{_JOINING_PATTERN}"
_MAY_JOIN = re.compile(
    r"[,、，;；・&]|\s(?:and|und|sowie|et|y|e|plus|그리고|및)\s|[와과]\s|[と和及与與]", re.IGNORECASE
)
_ASKS_WHERE = (
    r"\b(?:where|wo|woher|wohin|où|dónde|city|town|place|located|location|born|stadt|ort|ville|lieu|ciudad|lugar)\b"
)
_LEAST_ITEMS = 2
_MOST_ITEMS = 12
_WORDS_OF_AN_ITEM = 4
