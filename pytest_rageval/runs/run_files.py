"""Files of a run as a whole: the journals of its workers folded in, broken lines dropped, lines put in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.sealed_lines import Place, ends_well, lines_at, lines_of
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import (
    OBSERVATION,
    RESULT,
    Members,
    RecordKind,
)
from pytest_rageval.runs.records.record_files import Key, index, journals, record_at, whole_records

CRASH = "crash"
"""The kind of error of a case whose process died."""
UNFINISHED = frozenset({CRASH, "record"})
"""Kinds of error of cases that did not finish and are run again on resume."""


def repair(folder: Path) -> list[str]:
    """Repair the files of an interrupted run: fold in those of its workers, one whole line for each case and trial.

    Drop cases without all their trials, and those whose process died or could not write its observation (a full disk):
    they are run again. Of cases without a result, drop also failed calls, which are made again. Return notes for
    people, a line each.
    """
    trials = int(StoredRun(folder).config["settings"].get("repeat", 1))
    notes: list[str] = []
    done = fold_journals(folder, RESULT, notes, lambda places: _complete(places, trials))
    done_cases = {key for key, _ in done}
    fold_journals(folder, OBSERVATION, notes, lambda places: _answered(places, done_cases))
    return notes


def fold_journals(
    folder: Path,
    kind: RecordKind,
    notes: list[str],
    select: Callable[[Mapping[Key, Place]], list[Key]] = list,
) -> list[Key]:
    """Merge a file of the run with its workers' files of the same kind, keeping the last line of each case and trial.

    `select` returns the ones to keep, as does this function.
    """
    own = folder / kind.file
    others = journals(folder, kind.file)
    places = index([own, *others], kind, notes)
    kept = select(places)
    # A file that is whole is left alone, not rewritten for nothing.
    if others or len(kept) < sum(1 for _ in lines_of(own)) or not ends_well(own):
        write_lines(own, (places[key].text() for key in kept))
    for path in others:
        path.unlink(missing_ok=True)
    return kept


def _answered(places: Mapping[Key, Place], done_cases: Collection[str]) -> list[Key]:
    """Return the observations of cases that are done, and those with an answer of the others."""
    return [key for key, place in places.items() if key[0] in done_cases or record_at(place)["error"] is None]


def _complete(places: Mapping[Key, Place], trials: int) -> list[Key]:
    done: Counter[str] = Counter()
    needed: dict[str, int] = {}
    for (key, _), place in places.items():
        record = record_at(place)
        error = record["error"]
        done[key] += error is None or error["kind"] not in UNFINISHED
        needed[key] = record.get("records", trials)
    return [key for key in places if done[key[0]] >= needed[key[0]]]


def lines_in_order(paths: Iterable[Path], kind: RecordKind, notes: list[str] | None = None) -> Iterator[str]:
    """Yield the last line of each case and trial, sorted by file, line, key and trial; only their places are in memory.

    Damaged lines as for `whole_records`.
    """
    records = whole_records(paths, kind, notes, members=Members(kind.source))
    places = {_position(record): place for place, record in records}
    for _, line in lines_at(place for _, place in sorted(places.items())):
        yield line.decode("utf-8").rstrip("\n")


def put_in_order(folder: Path) -> list[str]:
    """Rewrite both files of a run in the order of the case files, without damaged lines; return notes, a line each."""
    notes: list[str] = []
    for kind in (RESULT, OBSERVATION):
        path = folder / kind.file
        if path.exists():
            write_lines(path, lines_in_order([path], kind, notes))
    return notes


def _position(record: Mapping[str, Any]) -> tuple[str, int, str, int]:
    file, line = record["case"]["source"] if "case" in record else record["source"].values()
    return file, line, record["case_key"], record["trial"]
