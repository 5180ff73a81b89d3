"""Changes to the text of one JSON object: the keys named change, every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from pytest_rageval.model import Json

KeyPath = tuple[str, ...]
"""The way to a value from the top of a record: ('gold_supports',) or ('gold', 'supports')."""

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class _Member(NamedTuple):
    """One key with its value; offsets into the text."""

    key: str
    key_start: int
    key_end: int
    value_start: int
    value_end: int


class _Style(NamedTuple):
    """How a text is written: what stands after a comma and a colon, and whether other scripts are escaped."""

    comma: str
    colon: str
    is_ascii: bool

    def dumped(self, value: Json) -> str:
        return json.dumps(value, ensure_ascii=self.is_ascii, separators=(self.comma, self.colon))


def edited_json(text: str, values: Mapping[KeyPath, Json]) -> str:
    """The text of a JSON object with these values set; new keys come last in their object.

    `text` has been read without problems before, so that no key stands twice.
    """
    style = _style_of(text)
    for path, value in values.items():
        text = _with_value(text, _after_space(text, 0), path, value, style)
    return text


def _with_value(text: str, start: int, path: KeyPath, value: Json, style: _Style) -> str:
    """The text with the value set in the object that begins at `start`."""
    members = _members(text, start)
    member = next((member for member in members if member.key == path[0]), None)
    if member is None:
        for key in reversed(path[1:]):
            value = {key: value}
        written = style.dumped(path[0]) + style.colon + style.dumped(value)
        if not members:
            return text[: start + 1] + written + text[start + 1 :]
        last = members[-1].value_end
        return text[:last] + style.comma + written + text[last:]
    if len(path) > 1 and text[member.value_start] == "{":
        return _with_value(text, member.value_start, path[1:], value, style)
    for key in reversed(path[1:]):
        value = {key: value}
    return text[: member.value_start] + style.dumped(value) + text[member.value_end :]


def _members(text: str, start: int) -> list[_Member]:
    members: list[_Member] = []
    at = _after_space(text, start + 1)
    while text[at] != "}":
        key, key_end = _DECODER.raw_decode(text, at)
        value_start = _after_space(text, _after_space(text, key_end) + 1)
        _, value_end = _DECODER.raw_decode(text, value_start)
        members.append(_Member(key, at, key_end, value_start, value_end))
        at = _after_space(text, value_end)
        if text[at] == ",":
            at = _after_space(text, at + 1)
    return members


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _style_of(text: str) -> _Style:
    members = _members(text, _after_space(text, 0))
    colon = text[members[0].key_end : members[0].value_start] if members else ": "
    comma = text[members[0].value_end : members[1].key_start] if len(members) > 1 else ", " if " " in colon else ","
    return _Style(comma, colon, text.isascii() and "\\u" in text)
