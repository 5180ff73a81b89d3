"""What is found in the lines of a run without parsing them, which takes up to fifty times as long.

The order of the fields in a line allows it: `case_key` is the second, `trial` stands behind every value that a system
or a case gives, and quotation marks in texts are escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.io.atomic import open_regular
from pytest_rageval.io.lines import BUFFER
from pytest_rageval.io.sealed_lines import DamagedLineError, Place, check_seal
from pytest_rageval.runs.records.line_form import check_members, record_of
from pytest_rageval.runs.records.record_files import damaged_line

_BEGINNING = re.compile(rb'\{"schema":\d+,"case_key":("(?:[^"\\]|\\.)*")')
_NAME = b'"case_key":'
_FURTHEST = 40
"""Where the name of the key has ended at the latest, behind the number of the schema."""
_END = b'",'
_OUTCOME = re.compile(rb'"outcome":"(\w+)"')
_COST = re.compile(rb'"judge_cost_usd":(null|[0-9.eE+-]+),"judge_saved_usd":')
_TRIAL = b'"trial":'
_CUT_ANSWER = re.compile(rb'"answer":"[^"\\]*(?:\\.[^"\\]*)*' + "…".encode() + b'"')


def trials_of(path: Path, keys: Set[str], fields: Set[str]) -> dict[str, dict[int, Mapping[str, Any]]]:
    """Return the records of some cases by case and trial; each must have these fields. {} without a file.

    The file may be of any length: only the lines of these cases are parsed.
    """
    trials: dict[str, dict[int, Mapping[str, Any]]] = {}
    for key, place, line in _lines_of_cases(path, keys):
        record = _record(place, line, fields)
        trials.setdefault(key, {})[record["trial"]] = record
    return trials


def places_of_cases(path: Path, keys: Set[str]) -> dict[str, list[Place]]:
    """Return the places of the lines of some cases, in order; {} without a file.

    A wrong checksum raises SettingsError.
    """
    places: dict[str, list[Place]] = {}
    for key, place, line in _lines_of_cases(path, keys):
        try:
            check_seal(line)
        except DamagedLineError as damage:
            raise damaged_line(place, damage) from None
        places.setdefault(key, []).append(place)
    return places


def trials_at(places: Iterable[Place], fields: Set[str]) -> dict[int, Mapping[str, Any]]:
    """Read the records at the places of one case, by trial; each must have these fields."""
    trials: dict[int, Mapping[str, Any]] = {}
    for place in places:
        record = _record(place, place.read(), fields)
        trials[record["trial"]] = record
    return trials


def _record(place: Place, line: bytes, fields: Set[str]) -> Mapping[str, Any]:
    try:
        record = record_of(line)
        check_members(record, fields)
    except DamagedLineError as damage:
        raise damaged_line(place, damage) from None
    return record


def _lines_of_cases(path: Path, keys: Set[str]) -> Iterator[tuple[str, Place, bytes]]:
    """Yield the lines of some cases, each with its case and place."""
    if not keys or not path.is_file():
        return
    key_of = {json.dumps(key, ensure_ascii=False).encode("utf-8", "surrogatepass"): key for key in keys}
    # Compare keys up to the first `",`, which is the end of most: that takes a quarter of the time of matching the
    # beginning of each line.
    beginnings = {(written + b",").partition(_END)[0] for written in key_of}
    offset = 0
    with open_regular(path, BUFFER) as file:
        for number, line in enumerate(file, start=1):
            offset += len(line)
            start = line.find(_NAME, 0, _FURTHEST) + len(_NAME)
            if line[start : line.find(_END, start)] not in beginnings:
                continue
            beginning = _BEGINNING.match(line)
            if beginning is None or beginning[1] not in key_of or not line.endswith(b"\n"):
                continue
            yield key_of[beginning[1]], Place(path, offset - len(line), len(line), number), line


def may_have_cut_answer(line: bytes) -> bool:
    """Return False if the answer in a line of results is whole; True if it, or a text of that name, is cut."""
    return _CUT_ANSWER.search(line) is not None


def repeated_cases(paths: Iterable[Path]) -> set[str]:
    """Return the keys of the cases with several lines in these files; it may name a case with a single line, too."""
    keys = set()
    seen = set()
    for path in paths:
        with open_regular(path, BUFFER) as file:
            for line in file:
                start = line.find(_NAME, 0, _FURTHEST) + len(_NAME)
                # The hash alone takes a third of the memory of the key.
                hashed = hash(line[start : line.find(_END, start)])
                if hashed not in seen:
                    seen.add(hashed)
                    continue
                beginning = _BEGINNING.match(line)
                if beginning is not None:
                    # A damaged key is reported by the reader of the line.
                    with suppress(ValueError):
                        keys.add(json.loads(beginning[1]))
    return keys


class EndedTrial(NamedTuple):
    """What the progress of a run counts of a result. `is_first`: whether it is that of the case's first trial."""

    outcome: str
    is_first: bool
    judge_cost_usd: float | None


def ended_trial(line: bytes) -> EndedTrial | None:
    """Return what the progress of a run counts of a line of results; None if that is none."""
    outcome = _OUTCOME.search(line)
    if outcome is None:
        return None
    # Our keys come before and after any that a system may have named the same: the first outcome, the last cost, which
    # is null where nothing was judged.
    costs = _COST.findall(line)
    cost = None
    if costs and costs[-1] != b"null":
        cost = float(costs[-1])
    trial = line[line.rfind(_TRIAL) + len(_TRIAL) :]
    return EndedTrial(outcome[1].decode(), trial.startswith(b"0"), cost)
