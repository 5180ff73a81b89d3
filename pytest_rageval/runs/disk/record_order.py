"""Lines of a run's files in the order of the case files, whichever process wrote them and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.line_index import Place, whole_records
from pytest_rageval.runs.disk.reader import OBSERVATIONS, RESULTS
from pytest_rageval.runs.disk.row_records import check_observation, check_result

Position = tuple[str, int, str, int]
"""Case file, line, case key, trial."""


def lines_in_order(paths: Iterable[Path]) -> Iterator[str]:
    """The lines of all files by place in the case files, key and trial; only their places are in memory together."""
    yield from _lines_at(
        place for _, place in sorted((_position(record), place) for place, record in whole_records(paths))
    )


def put_in_order(folder: Path) -> list[str]:
    """Rewrite both files of a run in the order of the case files, the last line of each case and trial.

    Returns what a person should know, a line each: lines that were cut off or damaged are left out.
    """
    notes: list[str] = []
    for name, check in ((RESULTS, check_result), (OBSERVATIONS, check_observation)):
        path = folder / name
        if path.exists():
            places: dict[Position, Place] = {
                _position(record): place for place, record in whole_records([path], notes, check)
            }
            write_lines(path, _lines_at(places[position] for position in sorted(places)))
    return notes


def _lines_at(places: Iterable[Place]) -> Iterator[str]:
    """Each file is opened once: that costs more than the line."""
    with ExitStack() as stack:
        files: dict[Path, BinaryIO] = {}
        for place in places:
            file = files.get(place.path) or files.setdefault(place.path, stack.enter_context(place.path.open("rb")))
            file.seek(place.offset)
            yield file.read(place.length).decode("utf-8").rstrip("\n")


def _position(record: Mapping[str, Any]) -> Position:
    file, line = record["case"]["source"] if "case" in record else record["source"].values()
    return file, line, record["case_key"], record["trial"]
