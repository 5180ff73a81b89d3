"""Lines of our own files, sealed: each is a JSON object whose last key is a checksum of the bytes before that key.

    line = sealed('{"schema":2,"case_key":"q1"}')   # {"schema":2,"case_key":"q1","checksum":"5d2983b0"}
    unsealed(line.encode())                         # {"schema": 2, "case_key": "q1"}

The checksum is the CRC-32 (ISO-HDLC, that of zip and gzip) as eight hexadecimal digits. It finds what disks, copies and
editors do to a line; it is no protection against somebody who means harm.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any
from zlib import crc32

from pydantic_core import from_json, to_json

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
    """A value as strict JSON in UTF-8 without white space; what has no such form is a ValueError or TypeError."""
    with suppress(ValueError, RecursionError):  # what is wrong is said by the standard library
        if _is_plain((value,)):
            return to_json(value)  # with the look at each value three quarters of the time of a record
    return _ENCODER.encode(value).encode()


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_PLAIN = frozenset({str, int, bool, type(None)})
_NAMES = {str}


def _is_plain(values: Iterable[Any]) -> bool:
    """True if pydantic-core writes these as the standard library does.

    It takes types that are no JSON and NaN as well, and writes floats otherwise where Python's have an exponent.
    """
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is float:
            is_plain = 1e-4 <= value < 1e16 or value == 0 or -1e16 < value <= -1e-4
        elif kind is dict:
            is_plain = not value or ({*map(type, value)} == _NAMES and _is_plain(value.values()))
        else:
            is_plain = (kind is list or kind is tuple) and _is_plain(value)
        if not is_plain:
            return False
    return True


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
