"""What is a case as plain data, exactly? For records, hashes and conversion; loading a file is another matter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from pytest_rageval.cases import shapes
from pytest_rageval.cases.shapes import Reader
from pytest_rageval.errors import CaseError
from pytest_rageval.io.messages import Unsound, wrong
from pytest_rageval.model import Anchor, Edge, EvalCase, Gold, Json, Source, Turn


def case_to_mapping(case: EvalCase) -> dict[str, Json]:
    """The case in the canonical spelling, ready for `json`: absent parts are left out, empty ones stay.

    `answerable`, `requires_kg` and `source` are always there; `metadata` is shared with the case, not copied.
    """
    mapping: dict[str, Json] = {"id": case.id, "question": case.question, "answerable": case.answerable}
    for name in ("category", "difficulty", "domain"):
        if (label := getattr(case, name)) is not None:
            mapping[name] = label
    for name in ("tags", "vaults", "folders"):
        if texts := getattr(case, name):
            mapping[name] = list(texts)
    mapping["requires_kg"] = case.requires_kg
    if gold := _gold_to_mapping(case.gold):
        mapping["gold"] = gold
    if case.history is not None:
        mapping["history"] = [turn._asdict() for turn in case.history]
    if case.contexts is not None:
        mapping["contexts"] = list(case.contexts)
    if case.metadata:
        mapping["metadata"] = dict(case.metadata)
    mapping["source"] = case.source._asdict()
    return mapping


def case_from_mapping(record: Mapping[str, Json]) -> EvalCase:
    """The case that `case_to_mapping` wrote: `case_from_mapping(case_to_mapping(case)) == case`.

    A CaseError says what in the record is not as it was written.
    """
    try:
        return EvalCase(**shapes.read_parts(record, _CASE, ("id", "question")))
    except Unsound as unsound:
        raise CaseError(*(f"recorded case: {finding}" for finding in unsound.findings.kept)) from None


def content_hash(case: EvalCase) -> str:
    """SHA-256, in 64 hex digits, of everything but the source: equal for equal cases, wherever they are written."""
    mapping = case_to_mapping(case)
    del mapping["source"]
    return hashlib.sha256(written_small(mapping).encode()).hexdigest()


def written_small(mapping: Mapping[str, Json]) -> str:
    """Canonical JSON: keys sorted, no white space, ASCII."""
    return json.dumps(mapping, sort_keys=True, separators=(",", ":"))


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def _gold_to_mapping(gold: Gold) -> dict[str, Json]:
    mapping: dict[str, Json] = {}
    if gold.answers is not None:
        mapping["answer"] = gold.answers[0] if len(gold.answers) == 1 else list(gold.answers)
    for name, write in _GOLD_WRITERS.items():
        if (part := getattr(gold, name)) is not None:
            mapping[name] = write(part)
    if gold.ids_are_prefixes:
        mapping["ids_are_prefixes"] = True
    return mapping


def _written_anchors(anchors: tuple[Anchor, ...]) -> list[Json]:
    return [_written_anchor(anchor) for anchor in anchors]


def _written_anchor(anchor: Anchor) -> dict[str, Json]:
    mapping: dict[str, Json] = {"rel_path": anchor.rel_path, "heading_path": anchor.heading_path}
    if anchor.snippets:
        mapping["snippets"] = list(anchor.snippets)
    if anchor.date is not None:
        mapping["date"] = anchor.date
    return mapping


_GOLD_WRITERS: Mapping[str, Callable[[Any], Json]] = {
    "key_facts": list,
    "supports": _written_anchors,
    "support_groups": lambda groups: [list(group) for group in groups],
    "irrelevant_supports": _written_anchors,
    "chunk_ids": list,
    "irrelevant_ids": list,
    "relevance": lambda grades: {chunk_id: float(grade) for chunk_id, grade in grades.items()},
    "concepts": list,
    "constraints": list,
    "kg_entities": list,
    "kg_edges": lambda edges: [edge._asdict() for edge in edges],
    "recency_conflict_rule": str,
}


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def _object(make: Callable[..., Any], readers: Mapping[str, Reader], needed: tuple[str, ...] = ()) -> Reader:
    """A reader of one object that becomes `make(**parts)`."""
    return lambda value: make(**shapes.read_parts(value, readers, needed))


def _list(read_item: Reader) -> Reader:
    return lambda value: shapes.read_list(value, read_item, "a list")


def _read_answer(value: Json) -> Any:
    return (value,) if isinstance(value, str) else shapes.read_texts(value)


def _read_grades(value: Json) -> Any:
    if not isinstance(value, dict) or not all(type(grade) in (int, float) for grade in value.values()):
        raise wrong(value, "an object of numbers by chunk id")
    return {chunk_id: float(grade) for chunk_id, grade in value.items()}


def _gold(answer: tuple[str, ...] | None = None, **parts: Any) -> Gold:
    return Gold(answers=answer, **parts)


_texts = _list(shapes.read_text)
_anchors = _list(
    _object(
        Anchor,
        {"rel_path": shapes.read_text, "heading_path": shapes.read_text, "snippets": _texts, "date": shapes.read_text},
        ("rel_path",),
    )
)
_GOLD: Mapping[str, Reader] = {
    "answer": _read_answer,
    **dict.fromkeys(("key_facts", "chunk_ids", "irrelevant_ids"), _texts),
    **dict.fromkeys(("concepts", "constraints", "kg_entities"), _texts),
    **dict.fromkeys(("supports", "irrelevant_supports"), _anchors),
    "support_groups": _list(_list(shapes.read_whole_number)),
    "ids_are_prefixes": shapes.read_flag,
    "relevance": _read_grades,
    "kg_edges": _list(_object(Edge, dict.fromkeys(Edge._fields, shapes.read_text), Edge._fields)),
    "recency_conflict_rule": shapes.read_rule,
}
_CASE: Mapping[str, Reader] = {
    **dict.fromkeys(("id", "question", "category", "difficulty", "domain"), shapes.read_text),
    **dict.fromkeys(("tags", "vaults", "folders", "contexts"), _texts),
    **dict.fromkeys(("answerable", "requires_kg"), shapes.read_flag),
    "gold": _object(_gold, _GOLD),
    "history": _list(_object(Turn, dict.fromkeys(Turn._fields, shapes.read_text), Turn._fields)),
    "metadata": shapes.read_object,
    "source": _object(Source, {"file": shapes.read_text, "line": shapes.read_whole_number}, Source._fields),
}
