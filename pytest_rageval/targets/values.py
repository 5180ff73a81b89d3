"""Free-form values that Python code hands over, made plain JSON."""

from __future__ import annotations

import math

from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.strict_json import MAX_BITS, MAX_DEPTH
from pytest_rageval.model import Json
from pytest_rageval.text import printable


class Wrong(Exception):
    """One value is not what was expected; the path grows as this passes outwards through the readers."""

    def __init__(self, path: str, value: object, expected: str) -> None:
        super().__init__(path, value, expected)
        self.path, self.value, self.expected = path, value, expected

    def inside(self, outer: str) -> Wrong:
        """This problem, its path seen from one level further out."""
        self.path = outer + ("" if not self.path or self.path[0] == "[" else ".") + self.path
        return self

    def __str__(self) -> str:
        shown = "missing" if self.value is None else shown_value(self.value)
        return f"{printable(self.path[:200]) or 'the response'} is {shown}, expected {self.expected}"


def free(data: dict[str, Json], depth: int = 0) -> dict[str, Json]:
    """A copy of an object of any shape, as JSON can hold it."""
    copy = {}
    for name, value in data.items():
        key = name if type(name) is str and name.isascii() else _text(name)
        try:
            copy[key] = plain_json(value, depth + 1)
        except Wrong as wrong:
            raise wrong.inside(key) from None
    return copy


def plain_json(value: Json, depth: int = 0) -> Json:
    """A copy of any value, as JSON can hold it: finite numbers, clean text, at most MAX_DEPTH levels."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return value if value.isascii() else _text(value)
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
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
