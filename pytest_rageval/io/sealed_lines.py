"""Sealed lines of our own files: each is a JSON object whose last key is a checksum of the bytes before that key.

    line = sealed_line({"schema": 2, "case_key": "q1"})   # {"schema":2,"case_key":"q1","checksum":"5d2983b0"}
    unsealed(line)                                        # {"schema": 2, "case_key": "q1"}

The checksum is the CRC-32 (ISO-HDLC, that of zip and gzip) as eight hexadecimal digits. It detects damage by disks,
copies and editors; it does not protect against tampering.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import ExitStack
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, NotRequired
from zlib import crc32

from pydantic import StrictInt, StrictStr, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json
from typing_extensions import TypedDict

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import open_regular
from pytest_rageval.io.lines import BUFFER, skip_rest

LONGEST = 1 << 28
"""Longest line in bytes: a longer one is not ours, and is not read into memory."""
_KEY = b',"checksum":"'
_END = b'"}'
_DIGITS = 8
_SEAL = len(_KEY) + _DIGITS + len(_END)


class DamagedLineError(ValueError):
    """A damaged line; the message is the end of a sentence."""


def check_members(record: Mapping[str, Any], members: Set[str]) -> None:
    """Raise DamagedLineError if a record lacks one of these members."""
    if missing := members - record.keys():
        raise DamagedLineError(f"is not a record: it has no {', '.join(sorted(missing))}")


def sealed_line(record: Mapping[str, Any], write: Callable[[Any], bytes] = to_json) -> bytes:
    """Encode and seal a non-empty record, without a line end; ValueError or TypeError if strict JSON cannot hold it."""
    body = compact_json(record, write)[:-1]
    return b'%b,"checksum":"%08x"}' % (body, crc32(body))


def compact_json(value: Any, write: Callable[[Any], bytes] = to_json) -> bytes:
    """Return a value as strict JSON in UTF-8 without white space; ValueError or TypeError if it has no such form.

    `write` encodes a value that holds objects of our own.
    """
    try:
        data = write(value)
    except ValueError:
        return _ENCODER.encode(value).encode()  # raises the clearer message of the standard library
    # One byte is found at the speed of memory, a word at a fiftieth of that.
    if (b"N" in data and b"NaN" in data) or (b"I" in data and b"Infinity" in data):
        _ENCODER.encode(value)  # raises unless these are texts
    return data


def _members(value: Any) -> dict[str, Any]:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_members)


def unsealed(line: bytes) -> dict[str, Any]:
    """Return the object of a line without its checksum; DamagedLineError if the checksum is wrong.

    A line with a right checksum is parsed without a search for duplicate keys, because we wrote it.
    """
    if len(line) > LONGEST:
        raise DamagedLineError(f"is longer than {LONGEST:,} bytes")
    check_seal(line)
    try:
        # Two thirds of the time of `json.loads`, which makes up for the checksum.
        record: dict[str, Any] = from_json(line, allow_inf_nan=False)
        del record["checksum"]
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedLineError(f"is not JSON as we write it: {error}") from None
    return record


def check_seal(line: bytes) -> None:
    """Raise DamagedLineError unless the line ends with the right checksum."""
    end = len(line) - line.endswith(b"\n")
    start = end - _SEAL
    if start <= 0 or line[start : start + len(_KEY)] != _KEY or line[end - len(_END) : end] != _END:
        raise DamagedLineError("has no checksum at its end")
    if b"%08x" % crc32(memoryview(line)[:start]) != line[start + len(_KEY) : end - len(_END)]:
        raise DamagedLineError("does not match its checksum")


def checksum_of(line: bytes) -> bytes:
    """Return the checksum of a whole line; DamagedLineError if it is wrong, or the line has no end."""
    if not line.endswith(b"\n"):
        raise DamagedLineError("was cut off")
    check_seal(line)
    end = len(line) - len(b"\n") - len(_END)
    return line[end - _DIGITS : end]


def unsealed_text(line: bytes) -> str | None:
    """Return the JSON object of a line as text without its checksum; None if that is missing or wrong."""
    try:
        check_seal(line)
        return line[: len(line) - line.endswith(b"\n") - _SEAL].decode() + "}"
    except (DamagedLineError, UnicodeDecodeError):
        return None


# ── places of lines ─────────────────────────────────────────────────────────────────────────────────────────────

Key = tuple[str, int]
"""Case key and trial."""
Check = Callable[[dict[str, Any]], object]
"""Checks a record; raises DamagedLineError if it is invalid."""


class Place(NamedTuple):
    """The place of a line: file, offset and length in bytes, and number."""

    path: Path
    offset: int
    length: int
    number: int

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"

    def text(self) -> str:
        """Read the line at this place, without its end."""
        return self.read().decode("utf-8").rstrip("\n")

    def read(self) -> bytes:
        """Read the line at this place."""
        # Half of the time of a file object, which dominates for one line.
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, self.length, self.offset)
        finally:
            os.close(descriptor)


def index(
    paths: Iterable[Path],
    notes: list[str] | None = None,
    check: Check | None = None,
    keeps: Callable[[Key], bool] | None = None,
) -> dict[Key, Place]:
    """Return the place of the last line of each case and trial, without a truncated last line.

    With `notes`, damaged lines are left out and noted there; without, the first raises SettingsError. `keeps` selects
    the places.
    """
    places: dict[Key, Place] = {}
    for place, record in whole_records(paths, notes, check):
        key = record["case_key"], record["trial"]
        if keeps is None or keeps(key):
            places[key] = place
    return places


def whole_records(
    paths: Iterable[Path],
    notes: list[str] | None = None,
    check: Check | None = None,
    *,
    is_growing: bool = False,
    members: Members | None = None,
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield each record with its place; damaged lines as in `index`.

    is_growing  another process may be writing: a last line without an end is not reported
    members     the members needed; a record that has them is not checked further
    """
    for path in paths:
        for place, line in lines_of(path):
            if not line.endswith(b"\n"):  # the last one, of a process that died while writing
                if notes is not None and not is_growing:
                    notes.append(f"{path.name}:{place.number}: was cut off while it was written, and is left out")
                continue
            try:
                record = record_of(line, check, members)
            except DamagedLineError as damage:
                if notes is None:
                    raise _damaged(place, damage) from None
                notes.append(f"{path.name}:{place.number}: {damage}; it is left out")
            else:
                yield place, record


def lines_of(path: Path) -> Iterator[tuple[Place, bytes]]:
    """Yield each line with its place, nothing if the file does not exist; an oversized line is cut."""
    offset = number = 0
    try:
        with open_regular(path, BUFFER) as file:
            while line := file.readline(LONGEST + 1):
                number += 1
                place = Place(path, offset, len(line), number)
                offset += len(line)
                if len(line) > LONGEST:
                    offset += skip_rest(file, line, LONGEST)
                    line = line[:LONGEST] + b"\n"
                yield place, line
    except FileNotFoundError:
        return
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None


def lines_at(places: Iterable[Place]) -> Iterator[tuple[Place, bytes]]:
    """Yield the lines at these places. Each file is opened once: opening costs more than reading a line."""
    with ExitStack() as opened:
        files: dict[Path, int] = {}
        for place in places:
            if place.path not in files:
                files[place.path] = opened.enter_context(place.path.open("rb")).fileno()
            yield place, os.pread(files[place.path], place.length, place.offset)


def record_at(place: Place) -> dict[str, Any]:
    """Read the record at this place; raise SettingsError with file and line if it is damaged."""
    return record_in(place.read(), place)


def record_in(line: bytes, place: object, check: Check | None = None) -> dict[str, Any]:
    """Parse the record of a line; raise SettingsError with its place if it is damaged."""
    try:
        return record_of(line, check)
    except DamagedLineError as damage:
        raise _damaged(place, damage) from None


class Members:
    """Some members of a record, read without building the others: 13 µs for a line of 3 kB instead of 21."""

    def __init__(self, schema: int, *needed: str, where_written: Iterable[str] = ()) -> None:
        fields: dict[str, Any] = dict.fromkeys(needed, Any) | dict.fromkeys(where_written, NotRequired[Any])
        fields |= {"schema": Literal[schema], "case_key": StrictStr, "trial": StrictInt}
        self._reader = TypeAdapter(TypedDict("Members", fields)).validator  # type: ignore[operator]

    def of(self, line: bytes) -> dict[str, Any] | None:
        """Return the members; None if the line is not as a run writes it."""
        try:
            check_seal(line)
            record: dict[str, Any] = self._reader.validate_json(line)
        except (DamagedLineError, ValidationError):
            return None
        return record


def record_of(line: bytes, check: Check | None = None, members: Members | None = None) -> dict[str, Any]:
    """Return the record of a line; DamagedLineError if it is not one."""
    if members is not None and (some := members.of(line)) is not None:
        return some
    record = unsealed(line)
    if not isinstance(record.get("case_key"), str) or not isinstance(record.get("trial"), int):
        raise DamagedLineError("is not a record: it names no case and trial")
    if check is not None:
        check(record)
    return record


def _damaged(place: object, damage: DamagedLineError) -> SettingsError:
    return SettingsError(f"{place}: {damage}; was the file changed? --rageval-resume asks again what is damaged")


def ends_well(path: Path) -> bool:
    """Return True if the last line ends properly; otherwise an appended line would continue it."""
    size = path.stat().st_size if path.exists() else 0
    return not size or Place(path, size - 1, 1, 0).read() == b"\n"
