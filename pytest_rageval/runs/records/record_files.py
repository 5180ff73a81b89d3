"""Files of records, each the last one of a case and trial: found, read and checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.sealed_lines import DamagedLineError, Place, lines_at, lines_of, unsealed_text
from pytest_rageval.runs.records.line_form import KEYS, NOTED, RESULT, Members, RecordKind, record_of

Key = tuple[str, int]
"""Case key and trial."""


def record_paths(folder: Path, name: str) -> list[Path]:
    """Return a run's files of this name: its own and, if it has not ended or was killed, those of its workers."""
    return [path for path in (folder / name, *journals(folder, name)) if path.is_file()]


def journals(folder: Path, name: str) -> list[Path]:
    """Return the files that workers have written next to the run's file of this name."""
    stem, _, ending = name.partition(".")
    return sorted(folder.glob(f"{stem}-*.{ending}"))


def index(
    paths: Iterable[Path],
    kind: RecordKind,
    notes: list[str] | None = None,
    keeps: Callable[[Key], bool] | None = None,
) -> dict[Key, Place]:
    """Return the place of the last line of each case and trial, without a truncated last line.

    With `notes`, damaged lines are left out and noted there; without, the first raises SettingsError. `keeps` selects
    the places.
    """
    places: dict[Key, Place] = {}
    for place, record in whole_records(paths, kind, notes):
        key = record["case_key"], record["trial"]
        if keeps is None or keeps(key):
            places[key] = place
    return places


def whole_records(
    paths: Iterable[Path],
    kind: RecordKind,
    notes: list[str] | None = None,
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
                record = record_of(line, kind, members)
            except DamagedLineError as damage:
                if notes is None:
                    raise damaged_line(place, damage) from None
                notes.append(f"{path.name}:{place.number}: {damage}; it is left out")
            else:
                yield place, record


def row_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield what rows need of each result in order, except a cut last line; other damage raises a SettingsError."""
    return (record for _, record in whole_records([path], RESULT, members=NOTED))


def row_places(path: Path) -> dict[Key, Place]:
    """Return the place of the last result of each case and trial; damage as for `row_records`."""
    records = whole_records([path], RESULT, members=KEYS)
    return {(record["case_key"], record["trial"]): place for place, record in records}


def record_at(place: Place) -> dict[str, Any]:
    """Read the record at this place; raise SettingsError with file and line if it is damaged."""
    try:
        return record_of(place.read())
    except DamagedLineError as damage:
        raise damaged_line(place, damage) from None


def record_texts(places: Iterable[Place]) -> Iterator[str]:
    """Yield the records at these places as JSON, as they are written; SettingsError for a damaged line."""
    for place, line in lines_at(places):
        text = unsealed_text(line)
        if text is None:
            text = json.dumps(record_at(place), ensure_ascii=False)  # reading it says what is wrong
        yield text


def damaged_line(place: object, damage: DamagedLineError) -> SettingsError:
    """Return the error of a damaged line, with its place and what to do."""
    return SettingsError(f"{place}: {damage}; was the file changed? --rageval-resume asks again what is damaged")
