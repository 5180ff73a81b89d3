"""Is a value what was expected? Strict readers for single values of a response; what does not fit raises `Wrong`.

`path` says where the value stands below what the caller reads. null means absent where `fields` reads an object.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pytest_rageval.model import NOTHING, Json
from pytest_rageval.text import printable

T = TypeVar("T")

Reader = Callable[[Json, str], T]
"""Takes a value and its path."""

MAX_DEPTH = 64
"""How deep free-form values may nest."""
_LONGEST = 80
_MOST = 2**63


class Wrong(Exception):
    """One value is not what was expected; the path grows as this passes outwards through the readers."""

    def __init__(self, path: str, value: object, expected: str) -> None:
        super().__init__(path, value, expected)
        self.path, self.value, self.expected = path, value, expected

    def inside(self, outer: str) -> Wrong:
        """The same, seen from one level further out."""
        self.path = outer + ("" if not self.path or self.path[0] == "[" else ".") + self.path
        return self

    def __str__(self) -> str:
        found = "missing" if self.value is None else shown_value(self.value)
        return f"{printable(self.path[:200]) or 'the response'} is {found}, expected {self.expected}"


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


# ── single values ─────────────────────────────────────────────────────────────────────────────────────────────


def text(value: Json, path: str = "") -> str:
    """A string that UTF-8 can hold."""
    if not isinstance(value, str):
        raise Wrong(path, value, "a string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Wrong(path, value, "text without lone surrogates") from None
    return value


def claim(value: Json, path: str = "") -> bool:
    """True or false, and nothing that merely looks like it."""
    if isinstance(value, bool):
        return value
    raise Wrong(path, value, "true or false")


def whole(value: Json, path: str = "") -> int:
    """A whole number of at most 64 bits; 3.0 is one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and value is not True and value is not False and -_MOST <= value < _MOST:
        return value
    raise Wrong(path, value, "a whole number")


def number(value: Json, path: str = "") -> float:
    """A finite number."""
    if isinstance(value, int) and value is not True and value is not False:
        value = float(value) if -_MOST <= value < _MOST else math.inf
    if not isinstance(value, float):
        raise Wrong(path, value, "a number")
    if not math.isfinite(value):
        raise Wrong(path, value, "a finite number")
    return value


# ── values of values ──────────────────────────────────────────────────────────────────────────────────────────


def an_object(value: Json, path: str = "") -> dict[str, Json]:
    """A JSON object, where there must be one."""
    if isinstance(value, dict):
        return value
    raise Wrong(path, value, "an object")


def fields(data: Json, readers: Mapping[str, Reader[Any]]) -> dict[str, Any]:
    """The fields of an object that are there, each read by its reader; all others, in their order, under `extra`."""
    found: dict[str, Any] = {"extra": NOTHING}
    unknown = {}
    for name, value in an_object(data).items():
        read = readers.get(name)
        if read is None:
            unknown[name] = value
        elif value is not None:
            found[name] = read(value, name)
    if unknown:
        found["extra"] = free(unknown)
    return found


def object_of(read: Callable[[dict[str, Json]], T]) -> Reader[T]:
    """A reader of objects of one kind."""

    def reader(value: Json, path: str) -> T:
        data = an_object(value, path)
        try:
            return read(data)
        except Wrong as wrong:
            raise wrong.inside(path) from None

    return reader


def list_of(read: Callable[[Json], T]) -> Reader[tuple[T, ...]]:
    """A reader of lists of things of one kind."""

    def reader(value: Json, path: str) -> tuple[T, ...]:
        if not isinstance(value, (list, tuple)):
            raise Wrong(path, value, "a list")
        found = []
        for position, one in enumerate(value):
            try:
                found.append(read(one))
            except Wrong as wrong:
                raise wrong.inside(f"{path}[{position}]") from None
        return tuple(found)

    return reader


# ── what has no name of ours ──────────────────────────────────────────────────────────────────────────────────


def free(data: dict[str, Json], depth: int = 0) -> dict[str, Json]:
    """A copy of an object of any shape, as JSON can hold it."""
    copy = {}
    for name, value in data.items():
        key = text(name)
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
        return text(value)
    if isinstance(value, int):
        if value.bit_length() > 1024:
            raise Wrong("", value, "a number of at most 300 digits")
        return value
    if isinstance(value, float):
        return number(value)
    if not isinstance(value, (dict, list, tuple)):
        raise Wrong("", value, "what JSON can hold")
    if depth >= MAX_DEPTH:
        raise Wrong("", value, f"no more than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return free(value, depth)
    copy = []
    for position, one in enumerate(value):
        try:
            copy.append(plain_json(one, depth + 1))
        except Wrong as wrong:
            raise wrong.inside(f"[{position}]") from None
    return copy
