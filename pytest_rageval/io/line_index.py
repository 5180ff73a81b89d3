"""Where does a line of a run's file stand, and is it whole? Read by place: a long file need not be in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

Key = tuple[str, int]
"""Case key and trial."""


class Place(NamedTuple):
    """Where a line stands: offset and length in bytes."""

    path: Path
    offset: int
    length: int


def index(paths: Iterable[Path], notes: list[str] | None = None) -> dict[Key, Place]:
    """Where the last line of each case and trial stands; torn lines are left out, and said in `notes`."""
    found: dict[Key, Place] = {}
    for path in paths:
        for place, line in lines_of(path):
            try:
                record = json.loads(line)
                key = record["case_key"], record["trial"]
            except (ValueError, KeyError, TypeError):
                if notes is not None:
                    notes.append(f"{path.name}: a line of {place.length} bytes was cut off and is left out")
                continue
            found[key] = place
    return found


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


def ends_well(path: Path) -> bool:
    """Does the last line end? What is appended would stand behind it otherwise."""
    if not path.exists() or not path.stat().st_size:
        return True
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
