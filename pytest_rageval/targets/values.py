"""Free-form values: what no type describes must still fit into a record, and into a message.

`plain_json` takes what a Python function returns, `limits_broken` looks at what the strict JSON reader has read.
"""

from __future__ import annotations

import math
import reprlib
from typing import Any

from pytest_rageval.model import Json
from pytest_rageval.text import printable

MAX_DEPTH = 64
"""How deep free-form values may nest."""
_MAX_BITS = 1024
"""Of a whole number: no larger one has a float."""
_LONGEST = 80


class Wrong(Exception):
    """One value is not what was expected; the path grows as this passes outwards through the readers."""

    def __init__(self, path: str, value: object, expected: str) -> None:
        super().__init__(path, value, expected)
        self.path, self.value, self.expected = path, value, expected

    def inside(self, outer: str) -> Wrong:
        """The same problem, seen from one level further out."""
        self.path = outer + ("" if not self.path or self.path[0] == "[" else ".") + self.path
        return self

    def __str__(self) -> str:
        shown = "missing" if self.value is None else shown_value(self.value)
        return f"{printable(self.path[:200]) or 'the response'} is {shown}, expected {self.expected}"


def shown_value(value: object) -> str:
    """A value as a message quotes it: on one line, escaped, and short however large it is."""
    try:
        text = printable(_SHORT.repr(value[:_LONGEST] if isinstance(value, str) else value))
    except ValueError:  # Python refuses to write out numbers of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 2 * _LONGEST
_SHORT.maxlevel = 3


def limits_broken(value: Json) -> str:
    """What of a strict JSON value no record can hold, as the end of a sentence; nothing where all can be held."""
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        for container in level:
            for inner in container.values() if type(container) is dict else container:
                kind = type(inner)
                if kind is dict or kind is list:
                    deeper.append(inner)
                elif kind is int and inner.bit_length() > _MAX_BITS:
                    return "holds a number of more than 300 digits"
        if not deeper:
            return ""
        level = deeper
    return f"is nested deeper than {MAX_DEPTH} levels"


def free(data: dict[str, Json], depth: int = 0) -> dict[str, Json]:
    """A copy of an object of any shape, as JSON can hold it."""
    copy = {}
    for name, value in data.items():
        key = _text(name)
        try:
            copy[key] = plain_json(value, depth + 1)
        except Wrong as wrong:
            raise wrong.inside(key) from None
    return copy


def plain_json(value: Json, depth: int = 0) -> Json:
    """A copy of any value, as JSON can hold it: finite numbers, clean text, at most MAX_DEPTH levels."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        if value.bit_length() > _MAX_BITS:
            raise Wrong("", value, "a number of at most 300 digits")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Wrong("", value, "a finite number")
        return value
    if not isinstance(value, (dict, list, tuple)):
        raise Wrong("", value, "what JSON can hold")
    if depth >= MAX_DEPTH:
        raise Wrong("", value, f"no more than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return free(value, depth)
    copy = []
    for position, item in enumerate(value):
        try:
            copy.append(plain_json(item, depth + 1))
        except Wrong as wrong:
            raise wrong.inside(f"[{position}]") from None
    return copy


def _text(value: Json) -> str:
    """A string that UTF-8 can hold."""
    if not isinstance(value, str):
        raise Wrong("", value, "a string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Wrong("", value, "text without lone surrogates") from None
    return value
