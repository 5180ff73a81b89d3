"""Places of lines in a run's files: a long file need not be in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.sealed_lines import LONGEST, DamagedLineError, unsealed

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
    paths: Iterable[Path], notes: list[str] | None = None, check: Check | None = None, *, is_growing: bool = False
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Each record with its place; lines that are none as in `index`.

    is_growing  another process may be writing: a last line without an end is nothing to be said
    """
    for path in paths:
        for place, line in lines_of(path):
            if not line.endswith(b"\n"):  # the last one, of a process that died while it wrote
                if notes is not None and not is_growing:
                    notes.append(f"{path.name}:{place.number}: was cut off while it was written, and is left out")
                continue
            try:
                record = _record(line, check)
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


def line_at(place: Place) -> str:
    """The line that stands there, without its end."""
    return _bytes_at(place).decode("utf-8").rstrip("\n")


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
        return _record(line, check)
    except DamagedLineError as damage:
        raise _damaged(place, damage) from None


def _record(line: bytes, check: Check | None) -> dict[str, Any]:
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
