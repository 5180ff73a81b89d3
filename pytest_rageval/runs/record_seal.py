"""The seal over a run's records: how many there are, and which. Readers hold results.jsonl against it.

A run that lost lines looks like a smaller run, and a smaller run may be greener. So the end of a run writes into
config.json, as `recorded`, the number of cases and of records and a digest over the checksums of all lines. As the
checksums of single lines, it detects damage and mistakes; it does not protect against tampering.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.io.lock import is_locked
from pytest_rageval.io.sealed_lines import DamagedLineError, checksum_of, lines_of
from pytest_rageval.io.suggestions import listed
from pytest_rageval.runs.columns import read_scores
from pytest_rageval.runs.records.line_form import RESULT
from pytest_rageval.runs.records.record_files import index, row_places
from pytest_rageval.text import counted

EXPECTED, RECORDED = "expected", "recorded"
"""Names in config.json: the planned cases, known at the start, and the records, known at the end."""
DECIDED_AGAIN = "decided_again"
"""The name in config.json of the seal over new records while they and the aggregates replace the old ones."""
NOT_WHOLE = "the run is not whole"


def seal_of(path: Path, rows: Collection[tuple[str, int]], *, has_replaced: bool = False) -> dict[str, Any]:
    """Return the seal over the records in this results.jsonl.

    rows          the case key and trial of each record
    has_replaced  True if lines of retried cases are still in the file: only the last one of a trial counts
    """
    if has_replaced:
        checksums = [checksum_of(place.read()) for place in row_places(path).values()]
    else:
        checksums, _ = _checksums(path)
    return {"cases": len({key for key, _ in rows}), "records": len(rows), "digest": _digest(checksums)}


class Damage(NamedTuple):
    """How the records of a finished run differ from those that it wrote.

    can_be_resumed  True if records are only missing or doubled: then the others are those of the run
    """

    said: str
    can_be_resumed: bool = True


def records_damage(path: Path, config: Mapping[str, Any], metrics: Mapping[str, Any]) -> Damage | None:
    """Return how the records of a finished run differ from those that it wrote; None if they are whole.

    Nothing is said while another process writes the run.
    """
    # Its writer appends while we read: counts would differ without any damage.
    if is_locked(path.parent):
        return None
    if is_decision_interrupted(path, config):
        remedy = f"`rageval score {path.parent.name}` finishes that"
        said = f"run {path.parent.name}: it was not decided again to the end; {NOT_WHOLE}: {remedy}"
        return Damage(said, can_be_resumed=False)
    seal = _seal_in(config)
    if seal is None:
        return _damage_without_seal(path, int(metrics["total_tests"]))
    planned_cases = (config.get(EXPECTED) or {}).get("cases", 0)
    if not metrics["partial"] and isinstance(planned_cases, int) and seal["cases"] < planned_cases:
        lost = planned_cases - seal["cases"]
        return _resumable(path, f"{lost:,} of {counted(planned_cases, 'planned case')} {_have(lost)} no record")
    checksums, others = _checksums(path)
    if not others and _digest(checksums) == seal["digest"]:
        return None
    return _difference(path, seal, len(checksums))


def is_decision_interrupted(path: Path, config: Mapping[str, Any]) -> bool:
    """Return True if the run was being decided again, and all records are still the old ones or all the new ones."""
    seals = [_seal_in(config, name) for name in (DECIDED_AGAIN, RECORDED)]
    if seals[0] is None:
        return False
    checksums, others = _checksums(path)
    return not others and _digest(checksums) in [seal["digest"] for seal in seals if seal is not None]


def _seal_in(config: Mapping[str, Any], name: str = RECORDED) -> Mapping[str, Any] | None:
    """Return a seal in config.json; None of a run without one."""
    seal = config.get(name)
    if not isinstance(seal, Mapping) or not isinstance(seal.get("digest"), str):
        return None
    has_counts = all(type(seal.get(name)) is int for name in ("cases", "records"))
    return seal if has_counts else None


def _resumable(path: Path, difference: str) -> Damage:
    remedy = f"--rageval-resume {path.parent.name} asks again what is missing"
    return Damage(f"run {path.parent.name}: {difference}; {NOT_WHOLE}: {remedy}")


def _foreign(path: Path, difference: str) -> Damage:
    return Damage(f"run {path.parent.name}: {difference}; {NOT_WHOLE}: run the cases again", can_be_resumed=False)


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _difference(path: Path, seal: Mapping[str, Any], lines: int) -> Damage:
    """Describe what is missing, what is too much, or else that something was changed."""
    notes: list[str] = []
    places = index([path], RESULT, notes)
    keys = {key for key, _ in places}
    cases = seal["cases"]
    records = seal["records"]
    written = _written_cases(path, cases)
    missing = sorted(written - keys)
    foreign = sorted(keys - written) if written else []
    first_note = f" ({notes[0]})" if notes else ""
    if len(keys) < cases or missing:
        number = len(missing) or cases - len(keys)
        which = f": {listed(missing)}" if missing else ""
        lost = f"{number:,} of {counted(cases, 'case')} {_have(number)} no record in {path.name}{which}{first_note}"
        return _resumable(path, lost)
    if foreign:
        other = counted(len(foreign), "case")
        return _foreign(path, f"{path.name} holds {other} that the run did not have: {listed(foreign)}")
    if len(places) < records:
        lost = f"{records - len(places):,} of {counted(records, 'record')} are missing in {path.name}{first_note}"
        return _resumable(path, lost)
    if lines > len(places):
        number_of_them = counted(lines - len(places), "record stands", "records stand")
        doubled = f"{number_of_them} in {path.name} more than once"
        is_same = _digest(checksum_of(place.read()) for place in places.values()) == seal["digest"]
        return _resumable(path, doubled) if is_same else _foreign(path, doubled)
    return _foreign(path, f"{path.name} holds other records than the run wrote{first_note}")


def _written_cases(path: Path, cases: int) -> set[str]:
    """Return the keys of the recorded cases by the run's table of scores; empty if that is of other ones, too."""
    scores = read_scores(path.parent)
    if scores is None or len(scores) != cases:
        return set()
    return set(scores.case_keys)


def _damage_without_seal(path: Path, cases: int) -> Damage | None:
    """Compare the number of cases alone, of a run that was written without a seal."""
    notes: list[str] = []
    found = len({key for key, _ in index([path], RESULT, notes)})
    if found >= cases:
        return None
    lost = cases - found
    first_note = f" ({notes[0]})" if notes else ""
    return _resumable(path, f"{lost:,} of {counted(cases, 'case')} {_have(lost)} no record in {path.name}{first_note}")


def _checksums(path: Path) -> tuple[list[bytes], int]:
    """Return the checksums of all whole lines, and the number of other lines."""
    checksums: list[bytes] = []
    others = 0
    for _, line in lines_of(path):
        try:
            checksums.append(checksum_of(line))
        except DamagedLineError:
            others += 1
    return checksums, others


def _digest(checksums: Iterable[bytes]) -> str:
    """Return the SHA-256 over the checksums in any order."""
    # Sorted: workers end in any order, and equal runs have equal seals.
    return hashlib.sha256(b"\n".join(sorted(checksums))).hexdigest()
