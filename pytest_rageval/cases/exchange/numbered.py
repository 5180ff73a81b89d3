"""Columns that are numbered, such as `gold_answer_1` and `gold_answer_2`: one field in several columns."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_rageval.cases.exchange.column_values import is_weak
from pytest_rageval.cases.names import ANSWER, CONTEXTS, FACTS, IDS, PAGES, PLACES

_NUMBERED = re.compile(r"(?P<stem>.{1,200}?)[\s_.-]?(?:#\s?)?(?P<number>\d{1,2})")
_OF_SEVERAL = frozenset({ANSWER, FACTS, PLACES, IDS, CONTEXTS, PAGES})
"""Fields that have room for the values of several columns."""


def numbered_columns(meanings: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that are numbered with others of the same name and field, each with the first of them."""
    stems: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for path, meaning in meanings.items():
        match = _NUMBERED.fullmatch(path.strip())
        if match and meaning in _OF_SEVERAL:
            stems.setdefault((match["stem"].lower(), meaning), []).append((int(match["number"]), path))
    for path, meaning in meanings.items():
        if (columns := stems.get((path.strip().lower(), meaning))) and not is_weak(path):
            columns.append((0, path))  # `gold_answer` before `gold_answer_2`
    found: dict[str, str] = {}
    for columns in stems.values():
        if len({number for number, _ in columns}) == len(columns) > 1:
            in_order = [path for _, path in sorted(columns)]
            found |= dict.fromkeys(in_order, in_order[0])
    return found
