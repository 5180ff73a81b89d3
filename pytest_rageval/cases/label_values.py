"""The values to set in a record of a case file so that the case has a person's marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace

from pytest_rageval.cases.canonical import written_anchor
from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.keys import spelling_of
from pytest_rageval.cases.marks import Marks, Place, case_with_marks
from pytest_rageval.cases.note_folder import NOTE_HASHES
from pytest_rageval.errors import CaseError
from pytest_rageval.io.messages import Unsound
from pytest_rageval.model import Anchor, EvalCase, Json

Record = Mapping[str, Json]
KeyPath = tuple[str, ...]
"""The path of a value in a record: ('gold_supports',) or ('gold', 'supports')."""


def changed_values(record: Record, case: EvalCase, marks: Marks, hashes: Mapping[str, str]) -> dict[KeyPath, Json]:
    """Return the values to set in a case's record so that it has these marks; empty if it has them already.

    hashes  of the notes that contain the golds, by path
    """
    before = Marks.of(case)
    values: dict[KeyPath, Json] = {}
    if marks.answerable != before.answerable:
        values["answerable",] = marks.answerable
    parts = _id_values if marks.kind == "ids" else _anchor_values
    values |= parts(record, before, marks)
    if not values:
        return {}
    if marks.kind == "anchors" and hashes:
        values["metadata", NOTE_HASHES] = dict(hashes)
    elif marks.kind == "anchors" and _inner(record, "metadata").get(NOTE_HASHES) is not None:
        # Hashes of former golds would report changes of notes that no longer matter.
        values["metadata", NOTE_HASHES] = {}
    return _checked(record, case, marks, values)


_ANCHOR_PARTS = (
    ("golds", "supports", "gold_supports"),
    ("groups", "support_groups", "required_support_groups"),
    ("irrelevant", "irrelevant_supports", "irrelevant_supports"),
)
"""Fields of Marks with their keys in `gold` and at the top level of the line."""


def _anchor_values(record: Record, before: Marks, marks: Marks) -> dict[KeyPath, Json]:
    values: dict[KeyPath, Json] = {}
    for name, in_gold, on_line in _ANCHOR_PARTS:
        old = getattr(before, name)
        new = getattr(marks, name)
        if new == old:
            continue
        path = _path(record, in_gold, on_line)
        if name == "groups":
            values[path] = [list(group) for group in new]
        else:
            values[path] = _written(new, old, _at(record, path))
    rule = _path(record, "recency_conflict_rule", "recency_conflict_rule")
    if not marks.answerable and _at(record, rule) is not None:
        values[rule] = None
    return values


def _id_values(record: Record, before: Marks, marks: Marks) -> dict[KeyPath, Json]:
    values: dict[KeyPath, Json] = {}
    gold = _inner(record, "gold")
    ids, irrelevant = _id_paths(record, gold)
    if marks.golds != before.golds:
        values[ids] = list(marks.golds)
        grades = gold.get("relevance")
        removed = set(before.golds) - set(marks.golds)
        if isinstance(grades, dict) and not removed.isdisjoint(grades):
            # A grade above 0 would make the chunk a gold again.
            values["gold", "relevance"] = {
                chunk_id: grade for chunk_id, grade in grades.items() if grade <= 0 or chunk_id in marks.golds
            }
    if marks.irrelevant != before.irrelevant:
        values[irrelevant] = list(marks.irrelevant)
    return values


def _id_paths(record: Record, gold: Record) -> tuple[KeyPath, KeyPath]:
    """Return the paths of the relevant and the irrelevant ids in the record's own format."""
    spelling = spelling_of(tuple(record), tuple(gold))
    if "ids" in spelling:
        return ("relevant_ids",), ("irrelevant_ids",)
    is_layered = "layers" in spelling or "doc_chunk_ids" in gold
    return ("gold", "doc_chunk_ids" if is_layered else "chunk_ids"), ("gold", "irrelevant_ids")


def _path(record: Record, in_gold: str, on_line: str) -> KeyPath:
    """Return the path of a part: its present one, or one that matches the line's other parts."""
    if record.get(on_line) is not None:
        return (on_line,)
    gold = _inner(record, "gold")
    is_canonical = any(key in gold for key in ("supports", "support_groups", "irrelevant_supports"))
    has_supports_on_line = record.get("gold_supports") is not None
    if in_gold in gold or (is_canonical and not has_supports_on_line):
        return ("gold", in_gold)
    return (on_line,)


def _inner(record: Record, key: str) -> Mapping[str, Json]:
    value = record.get(key)
    return value if isinstance(value, Mapping) else {}


def _at(record: Record, path: KeyPath) -> Json:
    if len(path) == 1:
        return record.get(path[0])
    return _inner(record, path[0]).get(path[1])


def _written(places: Sequence[Place], before: Sequence[Place], written: Json) -> list[Json]:
    """Convert places to plain data; a place that was there before keeps its written form."""
    as_it_was = dict(zip(before, written, strict=False)) if isinstance(written, list) else {}
    return [as_it_was.get(place, written_anchor(place) if isinstance(place, Anchor) else place) for place in places]


def _checked(record: Record, case: EvalCase, marks: Marks, values: dict[KeyPath, Json]) -> dict[KeyPath, Json]:
    """Return the values if the changed record reads back as this case with these marks; else raise CaseError."""
    try:
        # Read back before anything is written: a label that reads otherwise would be lost unnoticed.
        made, _ = case_from_record(deepcopy(with_values(record, values)), case.source)
    except Unsound as unsound:
        raise CaseError(*(f"case {case.id!r}: {finding}" for finding in unsound.findings.first)) from None
    if made.requires_kg != case.requires_kg:
        # A key of another format may change what an absent requires_kg means.
        values["requires_kg",] = case.requires_kg
        made = replace(made, requires_kg=case.requires_kg)
    if Marks.of(made) != Marks.of(case_with_marks(case, marks)):
        raise CaseError(f"case {case.id!r}: its spelling has no room for these marks; give it gold_supports")
    return values


def with_values(record: Record, values: Mapping[KeyPath, Json]) -> dict[str, Json]:
    """Return a copy of the record with these values set."""
    made = dict(record)
    for path, value in values.items():
        if len(path) == 1:
            made[path[0]] = value
        else:
            made[path[0]] = {**_inner(made, path[0]), path[1]: value}
    return made
