"""Places of lines in a run's files: a long file need not be in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.errors import SettingsError

Key = tuple[str, int]
"""Case key and trial."""


class Place(NamedTuple):
    """Where a line stands: offset and length in bytes."""

    path: Path
    offset: int
    length: int


def index(
    paths: Iterable[Path],
    notes: list[str] | None = None,
    read: Callable[[dict[str, Any]], object] | None = None,
    keeps: Callable[[Key], bool] | None = None,
) -> dict[Key, Place]:
    """Where the last line of each case and trial stands; lines that are no records are left out, and said in `notes`.

    `read` sees each record; one in which it misses something is no record. `keeps`: which of them are wanted.
    """
    places: dict[Key, Place] = {}
    for path in paths:
        for place, line in lines_of(path):
            try:
                record = json.loads(line)
                key = record["case_key"], record["trial"]
                if read is not None:
                    read(record)
            except (ValueError, KeyError, TypeError, RecursionError):
                if notes is not None:
                    what = "is no record" if line.endswith(b"\n") else "was cut off"
                    notes.append(f"{path.name}: a line of {place.length} bytes {what} and is left out")
                continue
            if keeps is None or keeps(key):
                places[key] = place
    return places


def lines_of(path: Path) -> Iterator[tuple[Place, bytes]]:
    """Each line with its place; none where there is no file."""
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for line in file:
            yield Place(path, offset, len(line)), line
            offset += len(line)


def line_at(place: Place) -> str:
    """The line that stands there, without its end."""
    with place.path.open("rb") as file:
        file.seek(place.offset)
        return file.read(place.length).decode("utf-8").rstrip("\n")


def record_at(place: Place) -> dict[str, Any]:
    """The record that stands there; SettingsError, naming the file, where the line is damaged."""
    try:
        record: dict[str, Any] = json.loads(line_at(place))
    except (ValueError, RecursionError) as error:
        remedy = "was the file changed?"
        raise SettingsError(f"{place.path}: the line at byte {place.offset} is not JSON: {error}; {remedy}") from None
    return record


def ends_well(path: Path) -> bool:
    """True if the last line ends; what is appended would stand behind it otherwise."""
    if not path.exists() or not path.stat().st_size:
        return True
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
