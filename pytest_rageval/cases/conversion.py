"""How does one record become one case? Strictly: every key is known, every value what it should be, or it is said.

Nearly all records are sound: they are taken at once. Any other is taken again with care, which notes where each part
came from, and so knows everything that is wrong, and where.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Set
from functools import lru_cache
from typing import Any, NamedTuple

from pytest_rageval.cases.canonical import case_to_mapping, written_small
from pytest_rageval.cases.fields import CarefulDraft, CaseDraft, Field, agreed
from pytest_rageval.cases.shapes import Reader
from pytest_rageval.cases.spellings.layers import GOLD, LIFTED
from pytest_rageval.cases.spellings.spelling import FIELDS, SPELLINGS, spelling_of
from pytest_rageval.io.messages import Unsound, bad
from pytest_rageval.model import NOTHING, EvalCase, Gold, Json, Source

_NO_GOLD = Gold()
_IN_GOLD = tuple(f"gold.{key}" for key in GOLD)

Converted = tuple[EvalCase, tuple[str, ...]]
"""A case, and the spellings that its line combines."""


def case_from_record(record: dict[str, Json], source: Source) -> Converted:
    """Read one record of a case file; Unsound says all that is wrong with it."""
    try:
        draft = draft_at_once(record)
    except Unsound:
        draft = draft_with_care(record)
    case, gold = draft.case, draft.gold
    if "id" not in case:
        case["id"] = _hash_id(draft)
    return EvalCase(**case, gold=Gold(**gold) if gold else _NO_GOLD, source=source), draft.spelling


def _hash_id(draft: CaseDraft) -> str:
    """Twelve hex digits from the content: the same however the row is spelled, and wherever it stands."""
    nameless = EvalCase(id="", **draft.case, gold=Gold(**draft.gold))
    return hashlib.sha256(written_small(case_to_mapping(nameless)).encode()).hexdigest()[:12]


# ── with care ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def draft_with_care(record: dict[str, Json]) -> CaseDraft:
    """The draft of a record; Unsound says all that is wrong with it."""
    draft = CarefulDraft()
    case, gold = draft.case, draft.gold
    draft.given = draft.take(record, FIELDS, (), _IN_GOLD)
    in_gold = draft.take(gold.pop("gold"), GOLD, ("gold",)) if "gold" in gold else set()
    if "metadata" in case:
        draft.take({key: case["metadata"][key] for key in LIFTED if key in case["metadata"]}, LIFTED, ("metadata",))
        case["metadata"] = {key: value for key, value in case["metadata"].items() if key not in LIFTED}
    draft.say_contested()
    draft.spelling = spelling_of(draft.given, in_gold)
    for spelling in SPELLINGS.values():
        spelling.settle(draft)
    if "question" not in case and "question" not in draft.broken:
        draft.findings.add((), "question is missing")
    if draft.findings.kept:
        raise Unsound(draft.findings)
    return draft


# ── at once ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_Steps = tuple[tuple[str, str, Reader], ...]
"""Which key gives which part, through which reader."""


def draft_at_once(record: Mapping[str, Json]) -> CaseDraft:
    """The draft of a plainly sound record; Unsound of any other, without saying what is wrong, or whether anything is.

    Two keys that disagree, or one object that says a part twice, are not plain.
    """
    line = _without_nulls(record, FIELDS)
    inner = line.get("gold", NOTHING)
    if not isinstance(inner, dict):
        raise bad("has a gold that is no object")
    inner = _without_nulls(inner, GOLD)
    plan = _plan(tuple(line), tuple(inner))
    draft = CaseDraft(plan.given, plan.spelling)
    draft.case = case = {part: read(line[key]) for key, part, read in plan.case}
    draft.gold = gold = {part: read(line[key]) for key, part, read in plan.gold}
    if plan.in_gold:
        _add({part: read(inner[key]) for key, part, read in plan.in_gold}, gold)
    if "metadata" in case and not LIFTED.keys().isdisjoint(case["metadata"]):
        _lift(case)
    for settle in plan.rules:
        settle(draft)
    return draft


class _Plan(NamedTuple):
    """How lines with the same keys become drafts: parts of the case, gold on the line, gold in its `gold` object."""

    given: Set[str]
    spelling: tuple[str, ...]
    case: _Steps
    gold: _Steps
    in_gold: _Steps
    rules: tuple[Callable[[CaseDraft], None], ...]


@lru_cache(maxsize=512)  # what raises is not kept: plans have known keys only, and so are small
def _plan(given: tuple[str, ...], in_gold: tuple[str, ...]) -> _Plan:
    """The plan for lines with these keys, none of them null; Unsound if a key is not known, or the question missing."""
    if not (FIELDS.keys() >= set(given) and GOLD.keys() >= set(in_gold)):
        raise bad("has an unknown key")
    case = _steps({key: FIELDS[key] for key in given if not FIELDS[key].is_gold})
    gold = _steps({key: FIELDS[key] for key in given if FIELDS[key].is_gold and key != "gold"})
    inner = _steps({key: GOLD[key] for key in in_gold})
    if "question" not in {part for _, part, _ in case}:
        raise bad("has no question")
    parts = {FIELDS[key].part for key in given} | {GOLD[key].part for key in in_gold}
    rules = tuple(one.settle for one in SPELLINGS.values() if not one.settled.isdisjoint(parts))
    return _Plan(frozenset(given), spelling_of(given, in_gold), case, gold, inner, rules)


def _steps(fields: Mapping[str, Field]) -> _Steps:
    if len({field.part for field in fields.values()}) < len(fields):
        raise bad("has two keys for one part")
    return tuple((key, field.part, field.shape.read) for key, field in fields.items())


def _without_nulls(record: Mapping[str, Json], fields: Mapping[str, Field]) -> Mapping[str, Json]:
    """The same object without the keys that are null, which must be known nevertheless."""
    if None not in record.values():
        return record
    if not record.keys() <= fields.keys():
        raise bad("has an unknown key")
    return {key: value for key, value in record.items() if value is not None}


def _lift(case: dict[str, Any]) -> None:
    """Move what the metadata say of the case to where it belongs."""
    case["metadata"] = metadata = {**case["metadata"]}
    lifted = {key: metadata.pop(key) for key in LIFTED if key in metadata}
    _add({key: LIFTED[key].shape.read(value) for key, value in lifted.items() if value is not None}, case)


def _add(parts: Mapping[str, Any], into: dict[str, Any]) -> None:
    """Add parts to others, with which they must agree; a part that is None says nothing."""
    if into.keys().isdisjoint(parts):
        into.update(parts)
        return
    for name, part in parts.items():
        if into.get(name) is None:
            into[name] = part
        elif part is not None:
            into[name] = agreed(name, into[name], part)
            if into[name] is None:
                raise bad("is said differently by two keys")
