"""The two directions of every format: what was read from a file of another tool, and what is written for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_rageval.cases.canonical import case_to_mapping
from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.io.messages import Unsound
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import NOWHERE, Answer, EvalCase, Json

KEPT = "rageval"
"""The key under which our parts of a case stand that a format has no place for."""


@dataclass(frozen=True, slots=True)
class OtherTestSet:
    """What a file of another tool gave, ready to be written.

    answers   records of an answers file, for the cases for which the file holds what a system gave
    labels    what people said of answers, as `rageval calibrate` reads it
    repeated  rows that say what an earlier one said, left out
    unused    how many checks of promptfoo have no counterpart here; they are kept in `metadata`
    notes     what a person should know, a line each
    """

    cases: list[dict[str, Json]] = field(default_factory=list)
    answers: list[dict[str, Json]] = field(default_factory=list)
    labels: list[dict[str, Json]] = field(default_factory=list)
    repeated: int = 0
    unused: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolFiles:
    """Files of another tool by their names, lines without ends; and what the format had no place for, a line each."""

    files: Mapping[str, Sequence[str]]
    notes: tuple[str, ...] = ()


Answers = Mapping[str, Answer]
"""What a system gave, by the ids of the cases."""


def kept_parts(case: EvalCase, native: Mapping[str, Json]) -> dict[str, Json]:
    """The parts of a case that `native`, the record which the format's own fields are read back as, gives otherwise.

    None is a part that the record gives and the case lacks.
    """
    whole = _plain(case)
    try:
        read_back = _plain(case_from_record({"id": case.id, **native}, NOWHERE)[0])
    except Unsound:
        return whole
    gold, read_gold = whole.get("gold", {}), read_back.get("gold", {})
    parts = _differing(whole, read_back)
    if "gold" in parts:
        parts["gold"] = _differing(gold, read_gold)
        joined = with_kept_parts({"id": case.id, **native}, parts)
        if _plain(case_from_record(joined, NOWHERE)[0]) != whole:  # a part that is taken back had given another one
            parts["gold"] = {**dict.fromkeys(read_gold), **gold}
    return parts


def _differing(whole: Mapping[str, Json], read_back: Mapping[str, Json]) -> dict[str, Json]:
    names = [*whole, *(name for name in read_back if name not in whole)]
    return {name: whole.get(name) for name in names if whole.get(name) != read_back.get(name)}


def with_kept_parts(record: Mapping[str, Json], kept: Json) -> dict[str, Json]:
    """A record with the parts that were kept for it, in place of what the format says of them."""
    if not isinstance(kept, dict):
        return dict(record)
    kept_gold = kept.get("gold")
    gold = kept_gold if isinstance(kept_gold, dict) else {}
    replaced = {spelling for part in gold for spelling in _SPELT.get(part, ())}
    joined = {name: value for name, value in record.items() if name not in replaced}
    joined |= {name: value for name, value in kept.items() if name != "gold"}
    if isinstance(record.get("metadata"), dict) and isinstance(kept.get("metadata"), dict):
        joined["metadata"] = {**record["metadata"], **kept["metadata"]}
    if parts := _without_none({**record.get("gold", {}), **gold}):
        joined["gold"] = parts
    return _without_none(joined)


_SPELT = {"answer": ("reference", "expected_answers"), "key_facts": ("expected_key_facts",)}
"""Parts of the gold that records of other tools have on the line itself, under these names."""


def _without_none(members: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in members.items() if value is not None}


def unplaced(kind: str, what: str, ids: Sequence[str]) -> Iterator[str]:
    """A line about what a format has no place for, with the first of the cases."""
    if ids:
        yield f"{kind} has no place for {what}: left out of {listed(ids, 3)}"


def _plain(case: EvalCase) -> dict[str, Json]:
    mapping = case_to_mapping(case)
    del mapping["source"]
    return mapping
