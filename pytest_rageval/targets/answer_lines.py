"""Which JSON objects stand in a file, one a line? With what is wrong with the others, line by line."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.model import Json

MAX_LINE_BYTES = 16 * 2**20
"""As much as one response over the network may hold."""


class AnswerLine(NamedTuple):
    """One line that is not blank, numbered from 1: an object, or what is wrong with it.

    `is_torn`: it is the last one, has no line end and is not valid: a writer died there.
    """

    number: int
    data: dict[str, Json] | None
    problem: str = ""
    is_torn: bool = False


def read_json_lines(path: Path) -> Iterator[AnswerLine]:
    """The lines of a UTF-8 file, a byte order mark removed. OSError if it cannot be read."""
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 2):
            number += 1
            if number == 1:
                if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    yield AnswerLine(1, None, "this is UTF-16; save it as UTF-8")
                    return
                raw = raw.removeprefix(codecs.BOM_UTF8)
            if len(raw) > MAX_LINE_BYTES and len(raw.rstrip(b"\r\n")) > MAX_LINE_BYTES:
                while raw and not raw.endswith(b"\n"):
                    raw = file.readline(MAX_LINE_BYTES)
                yield AnswerLine(number, None, f"the line is longer than {MAX_LINE_BYTES:,} bytes")
            elif raw.strip():
                data, problem = _parse(raw)
                yield AnswerLine(number, data, problem, is_torn=bool(problem) and not raw.endswith(b"\n"))


def strict_json(written: str) -> Json:
    """The value of a JSON text; ValueError, with the place, for anything that is not strict JSON."""
    try:
        return _DECODER.decode(written)
    except json.JSONDecodeError as error:
        raise ValueError(f"invalid JSON at character {error.pos + 1}: {error.msg}") from None
    except RecursionError:
        raise ValueError("invalid JSON: nested too deep") from None


def _parse(raw: bytes) -> tuple[dict[str, Json] | None, str]:
    try:
        data = strict_json(raw.decode().strip())
    except UnicodeDecodeError as error:
        return None, f"byte {raw[error.start]:#04x} at position {error.start + 1} is not UTF-8"
    except ValueError as error:
        return None, str(error)
    if not isinstance(data, dict):
        return None, f"the line holds a JSON {type(data).__name__}, expected an object"
    return data, ""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for position, name in enumerate(names) if name in names[:position])
        raise ValueError(f"the key {ascii(twice)[:80]} stands twice in one object")
    return members


def _refuse(constant: str) -> Any:
    raise ValueError(f"invalid JSON: {constant} is not a number that JSON knows")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)
