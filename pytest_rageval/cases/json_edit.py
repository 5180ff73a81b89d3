"""Values set within the text of a JSON document; every byte outside of them stays."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from pytest_rageval.model import Json

ValuePath = tuple[str | int, ...]
"""The path of a value: ('gold', 'supports'), or ('turns', 1, 'gold_supports')."""
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class _Style(NamedTuple):
    """The format of new values, after that of the document."""

    separators: tuple[str, str]
    is_ascii: bool

    def written(self, value: Json) -> str:
        return json.dumps(value, ensure_ascii=self.is_ascii, separators=self.separators)


class _Members(NamedTuple):
    """The places of an object's or a list's values, by key or position, and the end of the last one."""

    values: Mapping[str | int, tuple[int, int]]
    last: int


def edited_json(text: str, values: Mapping[ValuePath, Json]) -> str:
    """Return the text of a JSON document with these values set; new keys come last in their object.

    New values are compact or spaced, and escaped or not, as the document is. `text` is valid strict JSON without
    duplicate keys.
    """
    # New values look as those that stand there, so that a diff shows the change alone.
    is_compact = '":' in text and '": ' not in text
    separators = (",", ":") if is_compact else (", ", ": ")
    style = _Style(separators, text.isascii() and "\\u" in text)
    for path, value in values.items():
        text = _with_value(text, _after_blank(text, 0), path, value, style)
    return text


def _with_value(text: str, start: int, path: ValuePath, value: Json, style: _Style) -> str:
    """Set a value below the object or list that starts here."""
    members = _members(text, start)
    key, *below = path
    if key not in members.values:
        for name in reversed(below):
            value = {str(name): value}
        separator = style.separators[0] if members.values else ""
        member = f"{separator}{style.written(key)}{style.separators[1]}{style.written(value)}"
        return text[: members.last] + member + text[members.last :]
    first, last = members.values[key]
    if below and text[first] in "{[":
        return _with_value(text, first, tuple(below), value, style)
    for name in reversed(below):
        value = {str(name): value}
    return text[:first] + style.written(value) + text[last:]


def _members(text: str, start: int) -> _Members:
    values: dict[str | int, tuple[int, int]] = {}
    is_object = text[start] == "{"
    last = start + 1
    at = _after_blank(text, last)
    while text[at] not in "}]":
        if text[at] == ",":
            at = _after_blank(text, at + 1)
        key: str | int = len(values)
        if is_object:
            key, colon = _DECODER.raw_decode(text, at)
            at = _after_blank(text, _after_blank(text, colon) + 1)
        # The decoder finds the end of a value; the value itself is not needed.
        _, last = _DECODER.raw_decode(text, at)
        values[key] = (at, last)
        at = _after_blank(text, last)
    return _Members(values, last)


def _after_blank(text: str, at: int) -> int:
    """Return the place of the next character that is no white space."""
    blank = _BLANK.match(text, at)
    assert blank is not None
    return blank.end()
