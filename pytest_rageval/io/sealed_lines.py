"""Sealed lines of our own files: each is a JSON object whose last key is a checksum of the bytes before that key.

    line = sealed_line({"schema": 2, "case_key": "q1"})   # {"schema":2,"case_key":"q1","checksum":"5d2983b0"}
    unsealed(line)                                        # {"schema": 2, "case_key": "q1"}

The checksum is the CRC-32 (ISO-HDLC, that of zip and gzip) as eight hexadecimal digits. It detects damage by disks,
copies and editors; it does not protect against tampering.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from pydantic_core import from_json, to_json

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import open_regular
from pytest_rageval.io.lines import BUFFER, skip_rest

LONGEST = 1 << 28
"""Longest line in bytes: a longer one is not ours, and is not read into memory."""
_KEY = b',"checksum":"'
_END = b'"}'
# Of a CRC-32 in hexadecimal.
_DIGITS = 8
_SEAL = len(_KEY) + _DIGITS + len(_END)


class DamagedLineError(ValueError):
    """A damaged line; the message is the end of a sentence."""


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
    # A view: a slice would copy the line.
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
        # As it was written: putting spaces into stored records took 35 µs a case.
        return line[: len(line) - line.endswith(b"\n") - _SEAL].decode() + "}"
    except (DamagedLineError, UnicodeDecodeError):
        return None


# ── places of lines ─────────────────────────────────────────────────────────────────────────────────────────────


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
        # Half of the time of a file object, which dominates for one line; pread moves no offset that threads share.
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, self.length, self.offset)
        finally:
            os.close(descriptor)


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


def ends_well(path: Path) -> bool:
    """Return True if the last line ends properly; otherwise an appended line would continue it."""
    size = path.stat().st_size if path.exists() else 0
    return not size or Place(path, size - 1, 1, 0).read() == b"\n"
