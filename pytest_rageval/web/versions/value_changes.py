"""Changes of named values between two versions of anything, each with both texts and their difference by words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pytest_rageval.page.text_diff import DiffPiece, word_diff


class ValueChange(NamedTuple):
    """One value that differs. An empty text stands for a value that is not there."""

    name: str
    before: str
    after: str

    @property
    def pieces(self) -> list[DiffPiece]:
        """Both texts as one, by words."""
        return word_diff(self.before, self.after)


def value_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ValueChange]:
    """What differs between two tables of values, in the order of the later one; inner tables key by key."""
    for name in dict.fromkeys([*after, *before]):
        one, other = before.get(name), after.get(name)
        if one == other:
            continue
        if isinstance(one, Mapping | None) and isinstance(other, Mapping | None):
            for change in value_changes(one or {}, other or {}):
                yield change._replace(name=f"{name}.{change.name}")
        else:
            yield ValueChange(name, compared_text(one), compared_text(other))


def compared_text(value: Any) -> str:
    """A value as a page shows it: text as it is, names one after the other, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if value and isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False, default=str)
