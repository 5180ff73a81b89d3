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
from typing import Any, Literal, NamedTuple

from pytest_rageval.io.messages import Path, format_path, not_fitting
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
        # Only an escape can give a lone surrogate: UTF-8 has none.
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
        return oddities or [Oddity(0, "holds a key twice, NaN, or half of a surrogate pair")]


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
    # The standard library keeps the last of two values without a word.
    if len(members) != len(pairs):
        raise _RefusedError
    return members


def _finite(digits: str) -> float:
    number = float(digits)
    # 1e999 is a number in JSON, and infinite in Python.
    if math.isinf(number):
        raise _RefusedError
    return number


def _refuse(_: str) -> Any:
    raise _RefusedError


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse)


# ── the second, slow pass, over bad lines only ────────────────────────────────────────────────────────────────────────

_TOKEN = re.compile(r'[ \t\n\r]*("(?:[^"\\\x00-\x1f]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+)')
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Positions:
    """The places of all keys and values of one JSON text, as far as it is well-formed, and where it is not strict.

    `case_id` is the text at the key `id`, if there is one.
    """

    def __init__(self, text: str) -> None:
        self.oddities: list[Oddity] = []
        self.case_id: str | None = None
        self._keys: dict[Path, int] = {}
        self._values: dict[Path, int] = {}
        # Up to the syntax error, which the parser has reported, the places are right.
        with suppress(ValueError, IndexError):
            self._read(text)

    def column(self, path: Path, at_key: bool) -> int:
        """Return the 1-based column of a key or value; if it is absent, of the closest thing around it."""
        for places in (self._keys, self._values) if at_key else (self._values,):
            if path in places:
                return places[path] + 1
        return self.column(path[:-1], False) if path else 1

    def _read(self, text: str) -> None:
        path: Path = ()
        opened: list[tuple[Path, dict[str, int] | None]] = []  # paths of objects, with their keys, and of lists
        is_key = False
        end = 0
        while token := _TOKEN.match(text, end):
            at, end = token.span(1)
            written = token[1]
            if written == ":":
                continue
            if written == ",":
                above, keys = opened[-1]
                is_key = keys is not None
                path = path if keys is not None else (*above, int(path[-1]) + 1)
            elif written in ("}", "]"):
                path = opened.pop()[0]
                is_key = False
            elif is_key:
                above, keys = opened[-1]
                key = self._string(written, at, above)
                path = (*above, key)
                is_key = False
                self._keys[path] = at
                if keys is not None and (first := keys.setdefault(key, at)) != at:
                    said = f"{_of(path)}stands twice in one object, first at column {first + 1}; keep one"
                    self.oddities.append(Oddity(at, said))
            else:
                self._values[path] = at
                if written in ("{", "["):
                    is_key = written == "{"
                    opened.append((path, {} if is_key else None))
                    path = path if is_key else (*path, 0)
                else:
                    self._read_scalar(written, at, path)
            if not opened:
                return

    def _read_scalar(self, written: str, at: int, path: Path) -> None:
        if written[0] == '"':
            string = self._string(written, at, path)
            self.case_id = string if path == ("id",) else self.case_id
        elif written in ("true", "false", "null") or written.lstrip("-").isdigit():
            return
        elif not math.isfinite(float(written)):
            message = f"{_of(path)}is {written[:40]}, which is not a JSON number; write null, or leave it out"
            self.oddities.append(Oddity(at, message))

    def _string(self, written: str, at: int, path: Path) -> str:
        if not written.startswith('"'):
            raise ValueError("a key without quotes is a syntax error")
        string: str = json.loads(written)
        if lone := LONE_SURROGATE.search(string):
            half = f"half of a surrogate pair (\\u{ord(lone[0]):04x})"
            self.oddities.append(Oddity(at, f"{_of(path)}holds {half}, which is no character; remove it"))
        return string


_MOST_STEPS = 20


def _of(path: Path) -> str:
    """Return the path as the beginning of a message, only its end if it is long."""
    if not path:
        return "the line "
    return f"{'…' if len(path) > _MOST_STEPS else ''}{format_path(path[-_MOST_STEPS:])} "


def limits_broken(value: Json, max_depth: int = MAX_DEPTH, max_bits: float = MAX_BITS) -> str:
    """Describe how a strict JSON value exceeds the limits of records, as the end of a sentence; empty if it fits."""
    # Level by level: recursion would need as much stack as the value is deep.
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


# ── values that Python code hands over ──────────────────────────────────────────────────────────────────────────


def plain_json(value: Json, path: Path = ()) -> Json:
    """Copy any value as JSON: finite numbers, clean text, at most MAX_DEPTH levels; else raise Unsound."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, path)
    if not isinstance(value, (int, float, dict, list, tuple)):
        raise not_fitting(path, value, "what JSON can hold")
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise not_fitting(path, value, "a number of at most 300 digits")
    if isinstance(value, float) and not math.isfinite(value):
        raise not_fitting(path, value, "a finite number")
    if isinstance(value, (int, float)):
        return value
    if len(path) >= MAX_DEPTH:
        raise not_fitting(path, value, f"no more than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {_text(name, path): plain_json(inner, (*path, name)) for name, inner in value.items()}
    return [plain_json(item, (*path, position)) for position, item in enumerate(value)]


def _text(value: Json, path: Path) -> str:
    """Return the string if UTF-8 can encode it."""
    if not isinstance(value, str):
        raise not_fitting(path, value, "a string")
    if not value.isascii() and LONE_SURROGATE.search(value):
        raise not_fitting(path, value, "text without lone surrogates")
    return value
