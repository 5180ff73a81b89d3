"""A judge cache as text to be committed and compared: one judgement a line, by key, equal bytes for equal content."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, BinaryIO

from pydantic import AfterValidator, Field

from pytest_rageval.io.expected import Expects
from pytest_rageval.io.messages import Unsound, found
from pytest_rageval.io.records import RecordReader
from pytest_rageval.io.strict_json import StrictJsonError, limits_broken, parse
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.judges.cache.cache_entries import Entry
from pytest_rageval.judges.cache.cache_key import KeyParts
from pytest_rageval.judges.cache.cached_judge import unfit
from pytest_rageval.judges.cache.judgement_json import judgement_to_json
from pytest_rageval.judges.cache.sqlite_cache import LARGEST, row_of
from pytest_rageval.model import Json, Judgement

LONGEST_LINE = 8 * LARGEST
"""Bytes: a character of an entry takes up to six where it is escaped, and blanks stand between members."""

LONGEST_KEY = 128
DEEPEST = 150
"""Levels of what a judgement holds beside its fields: the reader of the cache goes no deeper than 200."""
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
    record = _record(line)
    judgement = record.judgement
    if (problem := unfit(judgement)) is not None:
        raise BadLine(f"judgement: {problem}")
    if problem := limits_broken(judgement.extra, DEEPEST):
        raise BadLine(f"judgement.extra {problem}")
    entry = Entry(record.key, record.created, _parts(record.key, record.parts), judgement)
    try:
        row_of(*entry)
    except ValueError as error:
        raise BadLine(f"cannot be kept: {error}") from None
    return entry


def _record(line: bytes) -> _Record:
    try:
        value = parse(line.rstrip(b"\r\n"))
        if isinstance(value, dict) and "parts" not in value:
            raise BadLine("has no parts; write null where the key was not made of any")
        if isinstance(value, dict) and isinstance(value.get("judgement"), dict) and "cached" in value["judgement"]:
            raise BadLine("judgement.cached is not a known key; whether it was cached is a fact of one run")
        return _RECORDS.read(value)
    except StrictJsonError as error:
        raise BadLine(str(error)) from None
    except Unsound as unsound:
        first, *others = unsound.findings.kept
        raise BadLine(f"{first} ({and_more(len(others))})" if others else str(first)) from None


def _time(value: str) -> str:
    message = f"is {found(value)}, expected a time such as 2026-11-21T10:48:19Z"
    if not _TIME.fullmatch(value):
        raise ValueError(message)
    try:
        datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(message) from None
    return value


@dataclass(frozen=True, slots=True)
class _Record:
    """What a line holds."""

    key: Annotated[
        str,
        Field(min_length=1, max_length=LONGEST_KEY),
        Expects(f"a string of 1 to {LONGEST_KEY} characters"),
    ]
    created: Annotated[str, AfterValidator(_time), Expects("a time such as 2026-11-21T10:48:19Z")]
    judgement: Judgement
    parts: Json = None


_RECORDS: RecordReader[_Record] = RecordReader(_Record)


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


def _canonical(value: Json) -> str:
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)
    return _STEERING.sub(lambda mark: f"\\u{ord(mark[0]):04x}", written)


_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_STEERING = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Those of `printable` that JSON leaves as they are; in JSON they can stand in strings only."""
