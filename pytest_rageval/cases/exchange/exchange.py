"""Types shared by all formats: a test set read from another tool, and files written for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_rageval.cases.canonical import case_content
from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.io.messages import Unsound
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import NOWHERE, Answer, EvalCase, Json

EXTRA_PARTS = "rageval"
"""The key of the parts of a case that a format has no place for."""


@dataclass(frozen=True, slots=True)
class OtherTestSet:
    """A test set read from another tool's file.

    answers   records of an answers file, for cases whose system output the file contains
    labels    people's labels of answers, as `rageval calibrate` reads them
    repeated  number of duplicate rows left out
    unused    promptfoo's checks without a counterpart here, by type, kept in `metadata`
    used      the file's names by field
    kept      names that went into the metadata
    kept_at   their paths in the rows
    form      the recognised format; None if the names of the members decided
    notes     notes for the user, one line each
    no_gold   names whose values show that they are no gold: flags, numbers, behaviour
    """

    cases: list[dict[str, Json]] = field(default_factory=list)
    answers: list[dict[str, Json]] = field(default_factory=list)
    labels: list[dict[str, Json]] = field(default_factory=list)
    repeated: int = 0
    unused: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    form: str | None = None
    is_guessed: bool = False
    notes: tuple[str, ...] = ()
    no_gold: frozenset[str] = frozenset()
    kept_at: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolFiles:
    """Files for another tool: lines without ends, by file name; and one line for each loss in the format."""

    files: Mapping[str, Sequence[str]]
    notes: tuple[str, ...] = ()


Answers = Mapping[str, Answer]
"""What a system returned, by case id."""


def extra_parts(case: EvalCase, native: Mapping[str, Json]) -> dict[str, Json]:
    """Return the parts of a case that differ in `native`, the record that the format's own fields read back as.

    None stands for a part that the record has and the case lacks.
    """
    whole = case_content(case)
    try:
        read_case, _ = case_from_record({"id": case.id, **native}, NOWHERE)
    except Unsound:
        return whole
    read_back = case_content(read_case)
    parts = _differing(whole, read_back)
    if "gold" in parts:
        gold = whole.get("gold", {})
        read_gold = read_back.get("gold", {})
        parts["gold"] = _differing(gold, read_gold)
        joined = with_extra_parts({"id": case.id, **native}, parts)
        restored, _ = case_from_record(joined, NOWHERE)
        if case_content(restored) != whole:  # a restored part had implied another one
            parts["gold"] = {**dict.fromkeys(read_gold), **gold}
    return parts


def _differing(whole: Mapping[str, Json], read_back: Mapping[str, Json]) -> dict[str, Json]:
    names = [*whole, *(name for name in read_back if name not in whole)]
    return {name: whole.get(name) for name in names if whole.get(name) != read_back.get(name)}


def with_extra_parts(record: Mapping[str, Json], extra: Json) -> dict[str, Json]:
    """Return the record with its extra parts restored, in place of the format's own."""
    if not isinstance(extra, dict):
        return dict(record)
    extra_gold = extra.get("gold")
    gold = extra_gold if isinstance(extra_gold, dict) else {}
    replaced: set[str] = set()
    for part in gold:
        replaced.update(_SPELT.get(part, ()))
    joined = {name: value for name, value in record.items() if name not in replaced}
    joined |= {name: value for name, value in extra.items() if name != "gold"}
    if isinstance(record.get("metadata"), dict) and isinstance(extra.get("metadata"), dict):
        joined["metadata"] = {**record["metadata"], **extra["metadata"]}
    if parts := _without_none({**record.get("gold", {}), **gold}):
        joined["gold"] = parts
    return _without_none(joined)


_SPELT = {"answer": ("reference", "expected_answers"), "key_facts": ("expected_key_facts",)}
"""Parts of the gold that other tools' records have at the top level, with their names there."""


def _without_none(members: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in members.items() if value is not None}


def unplaced(kind: str, what: str, ids: Sequence[str]) -> Iterator[str]:
    """Yield a line about what a format has no place for, with the first cases, if any."""
    if ids:
        yield f"{kind} has no place for {what}: left out of {listed(ids, 3)}"
