"""Lines of our own files, sealed: each is a JSON object whose last key is a checksum of the bytes before that key.

    line = sealed('{"schema":2,"case_key":"q1"}')   # {"schema":2,"case_key":"q1","checksum":"5d2983b0"}
    unsealed(line.encode())                         # {"schema": 2, "case_key": "q1"}

The checksum is the CRC-32 (ISO-HDLC, that of zip and gzip) as eight hexadecimal digits. It finds what disks, copies and
editors do to a line; it is no protection against somebody who means harm.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, NotRequired
from zlib import crc32

from pydantic import StrictInt, StrictStr, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json
from typing_extensions import TypedDict

from pytest_rageval.errors import SettingsError

LONGEST = 1 << 28
"""Bytes of a line: a longer one is not ours, and is not taken into memory."""
_KEY = b',"checksum":"'
_END = b'"}'
_DIGITS = 8
_SEAL = len(_KEY) + _DIGITS + len(_END)


class DamagedLineError(ValueError):
    """A line that is not as it was written; the message is the end of a sentence."""


def sealed(text: str) -> str:
    """The line of a JSON object with members, as compact text without an end of line."""
    body = text[:-1]
    return f'{body},"checksum":"{crc32(body.encode()):08x}"}}'


def sealed_line(record: Mapping[str, Any]) -> bytes:
    """The line of a record with members, without an end of line; what has no form as strict JSON is a ValueError or
    TypeError.

    Encoded once here, on the side that made it: what gets out of this function can neither break the channel between
    processes nor a file.
    """
    body = compact_json(record)[:-1]
    return b'%b,"checksum":"%08x"}' % (body, crc32(body))


def compact_json(value: Any) -> bytes:
    """Return a value as strict JSON in UTF-8 without white space; ValueError or TypeError if it has no such form."""
    try:
        data = to_json(value)
    except ValueError:
        return _ENCODER.encode(value).encode()  # raises the clearer message of the standard library
    if b"NaN" in data or b"Infinity" in data:
        _ENCODER.encode(value)  # raises unless these are texts
    return data


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def unsealed(line: bytes) -> dict[str, Any]:
    """Return the object of a line without its checksum; DamagedLineError if the line is not as it was written.

    A line whose checksum is right is parsed without a search for keys that stand twice: it is what we wrote.
    """
    if len(line) > LONGEST:
        raise DamagedLineError(f"is longer than {LONGEST:,} bytes")
    check_seal(line)
    try:
        # Two thirds of the time of `json.loads`: what the checksum costs is saved here.
        record: dict[str, Any] = from_json(line, allow_inf_nan=False)
        del record["checksum"]
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedLineError(f"is not JSON as we write it: {error}") from None
    return record


def check_seal(line: bytes) -> None:
    """Raise DamagedLineError unless the line ends with a checksum, and with the right one."""
    end = len(line) - line.endswith(b"\n")
    start = end - _SEAL
    if start <= 0 or line[start : start + len(_KEY)] != _KEY or line[end - len(_END) : end] != _END:
        raise DamagedLineError("has no checksum at its end")
    if b"%08x" % crc32(memoryview(line)[:start]) != line[start + len(_KEY) : end - len(_END)]:
        raise DamagedLineError("does not match its checksum")


def unsealed_text(line: bytes) -> str | None:
    """Return the JSON object of a line without its checksum, as it is written; None where that is missing or wrong."""
    try:
        check_seal(line)
        return line[: len(line) - line.endswith(b"\n") - _SEAL].decode() + "}"
    except (DamagedLineError, UnicodeDecodeError):
        return None


# ── places of lines ─────────────────────────────────────────────────────────────────────────────────────────────


BUFFER = 1 << 20
"""Bytes read at a time: with the usual 8 kB reading takes half as long again."""
Key = tuple[str, int]
"""Case key and trial."""
Check = Callable[[dict[str, Any]], object]
"""Sees each record; one with which something is wrong is a DamagedLineError."""


class Place(NamedTuple):
    """Where a line stands: offset and length in bytes, and its number."""

    path: Path
    offset: int
    length: int
    number: int

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"

    def text(self) -> str:
        """The line that stands there, without its end."""
        return _bytes_at(self).decode("utf-8").rstrip("\n")


def index(
    paths: Iterable[Path],
    notes: list[str] | None = None,
    check: Check | None = None,
    keeps: Callable[[Key], bool] | None = None,
) -> dict[Key, Place]:
    """Where the last line of each case and trial stands; a last line that was cut off is left out.

    With `notes` damaged lines are left out too, and said there; without, the first is a SettingsError. `keeps`: which
    places are wanted.
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
    """Yield each record with its place; lines that are none as in `index`.

    is_growing  another process may be writing: a last line without an end is not reported
    members     all that is wanted of a record; one that has them is not checked further
    """
    for path in paths:
        for place, line in lines_of(path):
            if not line.endswith(b"\n"):  # the last one, of a process that died while it wrote
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
    """Each line with its place; none where there is no file. Of a line beyond all measure only its beginning."""
    try:
        with path.open("rb", buffering=BUFFER) as file:
            yield from _placed_lines(file, path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None


def _placed_lines(file: BinaryIO, path: Path) -> Iterator[tuple[Place, bytes]]:
    offset = number = 0
    while line := file.readline(LONGEST + 1):
        number += 1
        place = Place(path, offset, len(line), number)
        offset += len(line)
        if len(line) > LONGEST:
            offset += _skip_rest(file, line)
            line = line[:LONGEST] + b"\n"
        yield place, line


def _skip_rest(file: BinaryIO, line: bytes) -> int:
    """Read on to the end of a line of which this is the beginning; how many bytes that took."""
    skipped = 0
    while line and not line.endswith(b"\n"):
        line = file.readline(LONGEST)
        skipped += len(line)
    return skipped


def record_at(place: Place) -> dict[str, Any]:
    """The record that stands there; SettingsError, naming file and line, where it is damaged."""
    return record_in(_bytes_at(place), place)


def _bytes_at(place: Place) -> bytes:
    # Half of the time of a file object, which for one line is the most.
    descriptor = os.open(place.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, place.length, place.offset)
    finally:
        os.close(descriptor)


def record_in(line: bytes, place: object, check: Check | None = None) -> dict[str, Any]:
    """The record of a line; SettingsError, naming its place, where it is damaged."""
    try:
        return record_of(line, check)
    except DamagedLineError as damage:
        raise _damaged(place, damage) from None


class Members:
    """Some members of a record, read without making the others into objects: 13 µs a line of 3 kB instead of 21."""

    def __init__(self, schema: int, *needed: str, where_written: Iterable[str] = ()) -> None:
        fields: dict[str, Any] = dict.fromkeys(needed, Any) | dict.fromkeys(where_written, NotRequired[Any])
        fields |= {"schema": Literal[schema], "case_key": StrictStr, "trial": StrictInt}
        self._reader: TypeAdapter[Any] = TypeAdapter(TypedDict("Members", fields))  # type: ignore[operator]

    def of(self, line: bytes) -> dict[str, Any] | None:
        """Return them; None if the line is not as a run writes it."""
        try:
            check_seal(line)
            record: dict[str, Any] = self._reader.validate_json(line)
        except (DamagedLineError, ValidationError):
            return None
        return record


def record_of(line: bytes, check: Check | None = None, members: Members | None = None) -> dict[str, Any]:
    """Return the record of a line; DamagedLineError if it is none."""
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
    """True if the last line ends; what is appended would stand behind it otherwise."""
    if not path.exists() or not path.stat().st_size:
        return True
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
