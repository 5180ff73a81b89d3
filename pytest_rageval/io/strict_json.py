"""Strict JSON at full speed: no duplicate keys, no NaN, no lone surrogates, no deep nesting.

    try:
        record = parse('{"id": "a", "id": "b"}')
    except StrictJsonError as error:
        print(error)             # id stands twice in one object, first at character 2; …
        error.oddities           # all problems of the text, each with its offset: computed on access

`Positions` finds the places of keys and values in a valid text, for errors in its content; it is slow.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from contextlib import suppress
from functools import cached_property
from itertools import chain
from json.decoder import scanstring  # type: ignore[attr-defined]  # because typeshed leaves it out
from typing import Any, Literal, NamedTuple

from pytest_rageval.io.messages import Path, format_path
from pytest_rageval.model import Json

MAX_DEPTH = 64
"""Deepest nesting of free-form values."""
MAX_BITS = 1024
"""Largest size of an integer: larger ones overflow a float."""


def parse(text: str | bytes) -> Json:
    """Parse JSON text, or UTF-8 bytes with or without byte order mark; raise StrictJsonError if it is invalid."""
    if isinstance(text, bytes):
        text = _decoded(text)
    try:
        if text.startswith("{"):  # as nearly all do: `decode` skips white space, which takes a fifteenth more
            value, end = _DECODER.raw_decode(text)
            if end < len(text):
                value = _DECODER.decode(text)
        else:
            value = _DECODER.decode(text)
        if "\\" in text and _MAY_BE_LONE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except (_RefusedError, UnicodeEncodeError):
        raise StrictJsonError("strictness", text) from None
    except json.JSONDecodeError as error:
        raise StrictJsonError("syntax", text, _oddity(error)) from None
    except (RecursionError, ValueError) as error:
        raise StrictJsonError("size", text, _oddity(error)) from None
    return value


def parse_beginning(text: str) -> tuple[Json, int]:
    """Parse the JSON value at the beginning of a text; return it and where it ends. Lone surrogates may stand in it."""
    try:
        return _DECODER.raw_decode(text)
    except _RefusedError:
        raise StrictJsonError("strictness", text) from None
    except (RecursionError, ValueError) as error:
        kind: Literal["syntax", "size"] = "syntax" if isinstance(error, json.JSONDecodeError) else "size"
        raise StrictJsonError(kind, text, _oddity(error)) from None


def holds_keys_once(text: str, keys: int) -> bool:
    """Return True if valid JSON of which so many different keys were read can hold no key twice.

    A search for double keys takes as long as all the rest of reading: a count of colons shows that there are none,
    or, with colons in its texts, a count of key ends, as long as no white space is before a colon.
    """
    if text.count(":") == keys:
        return True
    return text.count('":') == keys and not any(space in text for space in (" :", "\t:", "\r:", "\n:"))


class Oddity(NamedTuple):
    """A violation of strict JSON as the end of a sentence, and its 0-based offset in characters."""

    offset: int
    message: str


class StrictJsonError(ValueError):
    """A text that is not strict JSON.

    kind  "syntax": not JSON at all; "size": nested too deep, or a number too long; "strictness": JSON, but not strict;
          "encoding": not UTF-8
    """

    def __init__(self, kind: Literal["syntax", "size", "strictness", "encoding"], text: str, *oddities: Oddity) -> None:
        self.kind = kind
        self.text = text
        if oddities:
            self.oddities = list(oddities)

    def __str__(self) -> str:
        offset, message = self.oddities[0]
        if self.kind != "syntax":
            return message
        line, column = self.place(offset)
        return f"not valid JSON: {message} at {f'line {line}, ' if line > 1 else ''}column {column}"

    def place(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column of an offset."""
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    @cached_property
    def positions(self) -> Positions:
        """Return the places of keys and values, as far as the text is well-formed."""
        return Positions(self.text)

    @cached_property
    def oddities(self) -> list[Oddity]:
        """Return all problems, never empty; only the first for a syntax error, after which reading stops."""
        oddities = self.positions.oddities
        try:
            json.loads(self.text)
        except json.JSONDecodeError as error:  # an earlier problem had hidden it
            offset, message = _syntax_error(error)
            oddities.append(Oddity(offset, f"not valid JSON: {message}"))
        except (RecursionError, ValueError) as error:
            oddities.append(_oddity(error))
        return oddities


def _decoded(raw: bytes) -> str:
    try:
        return raw.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        start = len(raw) - len(raw.removeprefix(codecs.BOM_UTF8)) + error.start
        oddity = Oddity(0, f"byte {raw[start]:#04x} at offset {start:,} is not UTF-8")
        raise StrictJsonError("encoding", "", oddity) from None


def _oddity(error: Exception) -> Oddity:
    if isinstance(error, json.JSONDecodeError):
        return _syntax_error(error)
    if isinstance(error, RecursionError):
        return Oddity(0, "is nested too deep")
    return Oddity(0, "holds a number of thousands of digits; write it as a string")  # int() refuses it


def _syntax_error(error: json.JSONDecodeError) -> Oddity:
    """Word a syntax error alike on every version of Python."""
    before = error.doc[: error.pos].rstrip(" \t\n\r")
    closing = "}" if error.msg.startswith("Expecting property") else "]"
    if before.endswith(",") and error.doc.startswith(closing, error.pos):  # until 3.12 the position is after the comma
        return Oddity(len(before) - 1, _TRAILING_COMMA)
    if error.msg.startswith("Illegal trailing comma"):
        return Oddity(error.pos, _TRAILING_COMMA)
    message = error.msg.removesuffix(" starting at").removesuffix(" at")
    return Oddity(error.pos, message[:1].lower() + message[1:])


_TRAILING_COMMA = "a comma before the closing bracket"
_MAY_BE_LONE = re.compile(r"\\u[dD][89a-fA-F]")


class _RefusedError(Exception):
    """Raised for text that `json` accepts and we refuse; a second pass finds the problems."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RefusedError
    return members


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _RefusedError
    return number


def _refuse(_: str) -> Any:
    raise _RefusedError


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse)


# ── the second, slow pass, over bad lines only ────────────────────────────────────────────────────────────────────────

_SPACE = re.compile(r"[ \t\n\r]*")
_WORD = re.compile(r"[^\s,\]}]+")
_DEEPEST = 100
"""Depth at which the pass stops; deeper values are named by their path alone."""


class Positions:
    """The places of all keys and values of one JSON text, as far as it is well-formed.

    `case_id` is the text at the key `id`, if there is one.
    """

    def __init__(self, text: str) -> None:
        self._oddities: list[Oddity] = []
        self.case_id: str | None = None
        self._text = text
        self._keys: dict[Path, int] = {}
        self._values: dict[Path, int] = {}
        # Up to the syntax error, which the parser has reported, the places are right.
        with suppress(IndexError, ValueError, _TooDeepError):
            self._value(0, ())

    @property
    def oddities(self) -> list[Oddity]:
        """Return the problems of a refused text, never empty."""
        deeper = "holds a key twice, NaN, or half of a surrogate pair, too deep inside to be shown"
        return self._oddities or [Oddity(0, deeper)]

    def column(self, path: Path, at_key: bool) -> int:
        """Return the 1-based column of a key or value; if it is absent, of the closest thing around it."""
        for places in (self._keys, self._values) if at_key else (self._values,):
            if path in places:
                return places[path] + 1
        return self.column(path[:-1], False) if path else 1

    def _value(self, at: int, path: Path) -> int:
        """Record the value at `at` and all values in it; return the position after it."""
        text = self._text
        self._values[path] = at = self._after_space(at)
        if text[at] in "{[":
            if len(path) >= _DEEPEST:
                raise _TooDeepError
            return self._members(at + 1, path) if text[at] == "{" else self._items(at + 1, path)
        if text[at] == '"':
            string, end = self._string(at, path)
            if path == ("id",):
                self.case_id = string
            return end
        word = _WORD.match(text, at)
        if word is None:
            raise ValueError("no value")
        if not _is_finite(word[0]):
            self._odd(at, f"{_of(path)}is {word[0][:40]}, which is not a JSON number; write null, or leave it out")
        return word.end()

    def _members(self, at: int, path: Path) -> int:
        text, seen = self._text, dict[str, int]()
        at = self._after_space(at)
        while text[at] != "}":
            start = self._after_space(at)
            key, at = self._string(start, path)
            inner = (*path, key)
            if key in seen:
                self._odd(
                    start, f"{format_path(inner)} stands twice in one object, first at column {seen[key] + 1}; keep one"
                )
            seen.setdefault(key, start)
            self._keys[inner] = start
            at = self._after_space(self._value(self._after_space(at) + 1, inner))
            at += text[at] == ","
        return at + 1

    def _items(self, at: int, path: Path) -> int:
        text, position = self._text, 0
        at = self._after_space(at)
        while text[at] != "]":
            at = self._after_space(self._value(at, (*path, position)))
            position += 1
            at += text[at] == ","
            at = self._after_space(at)
        return at + 1

    def _string(self, at: int, path: Path) -> tuple[str, int]:
        if self._text[at] != '"':
            raise ValueError("no string")
        string, end = scanstring(self._text, at + 1, True)
        lone = _LONE.search(string)
        if lone:
            escaped = f"\\u{ord(lone[0]):04x}"
            self._odd(at, f"{_of(path)}holds half of a surrogate pair ({escaped}), which is no character; remove it")
        return string, end

    def _after_space(self, at: int) -> int:
        space = _SPACE.match(self._text, at)
        return space.end() if space else at

    def _odd(self, at: int, message: str) -> None:
        self._oddities.append(Oddity(at, message))


_LONE = re.compile("[\ud800-\udfff]")


class _TooDeepError(Exception):
    pass


def _of(path: Path) -> str:
    return f"{format_path(path)} " if path else "the line "


def _is_finite(word: str) -> bool:
    is_number_with_point = not word.lstrip("-").isdigit() and word not in ("true", "false", "null")
    return not is_number_with_point or math.isfinite(float(word))


def limits_broken(value: Json, max_depth: int = MAX_DEPTH, max_bits: float = MAX_BITS) -> str:
    """Describe how a strict JSON value exceeds the limits of records, as the end of a sentence; empty if it fits."""
    level: list[Any] = [[value]]
    for _ in range(max_depth + 1):
        deeper: list[Any] = []
        for inner in chain.from_iterable(outer.values() if type(outer) is dict else outer for outer in level):
            kind = type(inner)
            if kind is dict or kind is list:
                deeper.append(inner)
            elif kind is int and inner.bit_length() > max_bits:
                return "holds a number of more than 300 digits"
        if not deeper:
            return ""
        level = deeper
    return f"is nested deeper than {max_depth} levels"
