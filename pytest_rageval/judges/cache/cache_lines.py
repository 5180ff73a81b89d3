"""A judge cache as text that can be committed and compared: one judgement a line, sorted by key, equal bytes for equal
content."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO

from pytest_rageval.judges.cache.cache_entries import Entry
from pytest_rageval.judges.cache.cache_key import KeyParts
from pytest_rageval.judges.cache.cached_judge import unfit
from pytest_rageval.judges.cache.judgement_json import judgement_from_json, judgement_to_json
from pytest_rageval.judges.cache.sqlite_cache import LARGEST, row_of
from pytest_rageval.model import Json, Judgement
from pytest_rageval.text import printable

LONGEST_LINE = 8 * LARGEST
"""Bytes: a character of an entry takes up to six where it is escaped, and blanks stand between members."""

LONGEST_KEY = 128
KEYS = ("key", "created", "parts", "judgement")


class BadLine(ValueError):
    """Why a line is no judgement of a cache: value and remedy, without the place."""


def entry_line(entry: Entry) -> str:
    """The entry as one line of JSON, without its end. What could steer a terminal is escaped, as JSON does it."""
    judgement = json.loads(judgement_to_json(entry.judgement))
    values = (entry.key, entry.created, entry.parts and entry.parts.as_json(), judgement)
    members = (f'"{name}": {_canonical(value)}' for name, value in zip(KEYS, values, strict=True))
    return f"{{{', '.join(members)}}}"


def read_cache_lines(file: BinaryIO) -> Iterator[tuple[int, Entry | BadLine]]:
    """Line number and entry of each line that is not blank, or what is wrong with it; a key may stand once."""
    lines: dict[str, int] = {}
    for number, line in _bounded_lines(file):
        try:
            if line is None:
                raise BadLine(f"longer than {LONGEST_LINE:,} bytes")
            if not line.strip():
                continue
            entry = _entry(line)
            if (first := lines.setdefault(entry.key, number)) != number:
                raise BadLine(f"key {entry.key[:12]}… stands in line {first} already; keep one of them")
            yield number, entry
        except BadLine as problem:
            yield number, problem
        except RecursionError:
            yield number, BadLine("nested too deeply")


def _bounded_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Numbers from 1 and lines; None for one that is too long, of which no more than a piece is ever held."""
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        is_whole = len(line) <= LONGEST_LINE
        while not line.endswith(b"\n") and (line_end := file.readline(LONGEST_LINE + 1)):
            line, is_whole = line_end, False
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        yield number, line if is_whole else None


def _entry(line: bytes) -> Entry:
    value = _parsed(line)
    if not isinstance(value, dict):
        raise BadLine("is not an object")
    if odd := sorted(value.keys() ^ set(KEYS)):
        raise BadLine(f"{_short(odd[0])} is {'not a known key' if odd[0] in value else 'missing'}")
    if not isinstance(value["key"], str) or not 0 < len(value["key"]) <= LONGEST_KEY:
        raise BadLine(f"key is {_short(value['key'])}, expected a string of 1 to {LONGEST_KEY} characters")
    if not _is_time(value["created"]):
        raise BadLine(f"created is {_short(value['created'])}, expected a time such as 2026-11-21T10:48:19Z")
    entry = Entry(value["key"], value["created"], _parts(value["key"], value["parts"]), _judgement(value["judgement"]))
    try:
        row_of(*entry)
    except ValueError as error:
        raise BadLine(f"cannot be kept: {error}") from None
    return entry


def _parts(key: str, value: Json) -> KeyParts | None:
    if value is None:
        return None
    try:
        parts = KeyParts.read(value)
    except ValueError as error:
        raise BadLine(f"parts: {error}") from None
    if parts.key != key:
        raise BadLine(f"key {key[:12]}… is not that of its parts, {parts.key[:12]}…; one of them was changed")
    return parts


def _judgement(value: Json) -> Judgement:
    if isinstance(value, dict) and (unknown := sorted(value.keys() - _FIELDS)):
        raise BadLine(f"judgement: {_short(unknown[0])} is not a known key")
    try:
        found = judgement_from_json(json.dumps(value), strict=True)
    except ValueError as error:
        raise BadLine(f"judgement: {error}") from None
    if (problem := unfit(found)) is not None:
        raise BadLine(f"judgement: {problem}")
    return found


def _parsed(line: bytes) -> Json:
    try:
        text = line.decode().rstrip("\r\n")
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refused, parse_float=_finite)
        if _ESCAPED_SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except BadLine:
        raise
    except UnicodeDecodeError as error:
        raise BadLine(f"not UTF-8: byte {error.start + 1} of the line is 0x{line[error.start]:02x}") from None
    except UnicodeEncodeError:
        raise BadLine("holds half of a surrogate pair, which is no character") from None
    except json.JSONDecodeError as error:
        raise BadLine(f"not valid JSON at column {error.colno}: {error.msg.lower()}") from None
    except ValueError:
        raise BadLine("holds a number of thousands of digits") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise BadLine(f"{_short(counts.most_common(1)[0][0])} stands twice in one object; keep one of them")
    return members


def _refused(word: str) -> Any:
    raise BadLine(f"holds {word}, which is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise BadLine(f"holds {digits[:40]}, which is too large a number")
    return number


def _is_time(value: Json) -> bool:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _canonical(value: Json) -> str:
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _short(value: Json) -> str:
    return printable(repr(value)[:60])


_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_FIELDS = frozenset(Judgement.__slots__) - {"cached"}
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_STEERING = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Those of `printable` that JSON leaves as they are; in JSON they can stand in strings only."""
