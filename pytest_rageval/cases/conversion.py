"""How does one record become one case? Strictly: every key is known, every value what it should be, or it is said.

Nearly all records are sound. They are taken at once, key by key through the same readers, without noting where
anything came from; any other record is taken again with care, and then everything that is wrong with it is known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from pytest_rageval.cases import anchors, ids, layers, reference
from pytest_rageval.cases.canonical import case_to_mapping, written_small
from pytest_rageval.cases.fields import COMMON, CarefulDraft, Draft, Field, agreed
from pytest_rageval.cases.problems import Unsound, bad
from pytest_rageval.cases.shapes import Reader
from pytest_rageval.model import EvalCase, Gold, Json, Source

FIELDS: Mapping[str, Field] = {**COMMON, **anchors.FIELDS, **layers.FIELDS, **reference.FIELDS, **ids.FIELDS}
"""Every key that a line may have."""

_NO_GOLD = Gold()
_IN_GOLD = tuple(f"gold.{key}" for key in layers.GOLD)


Converted = tuple[EvalCase, tuple[str, ...]]
"""A case, and the spellings that its line combines."""


def case_from_record(record: dict[str, Json], source: Source) -> Converted:
    """Read one record of a case file; Unsound says all that is wrong with it."""
    try:
        draft = draft_at_once(record)
    except Unsound:
        draft = draft_with_care(record)
    case, gold = draft.case, draft.gold
    if case.get("id") is None:
        case["id"] = _hash_id(draft)
    made = EvalCase(**case, gold=Gold(**gold) if gold else _NO_GOLD, source=source)
    return made, spelling_of(draft.given, draft.in_gold)


def _hash_id(draft: Draft) -> str:
    """Twelve hex digits from the content: the same however the row is spelled, and wherever it stands."""
    nameless = EvalCase(id="", **draft.case, gold=Gold(**draft.gold))
    return hashlib.sha256(written_small(case_to_mapping(nameless)).encode()).hexdigest()[:12]


# ── spellings ─────────────────────────────────────────────────────────────────────────────────────────────────

_MARKS: Mapping[str, Mapping[str, Field]] = {
    "anchors": anchors.FIELDS,
    "reference": reference.FIELDS,
    "ids": ids.FIELDS,
}


@lru_cache(maxsize=512)  # a file has a handful of combinations; all of them hold known keys only, so they are small
def spelling_of(given: tuple[str, ...], in_gold: tuple[str, ...]) -> tuple[str, ...]:
    """The spellings that a line combines, by the keys that are there and not null: none, one or several of anchors,
    layers, canonical, reference, ids.

    A `gold` object is of the layers spelling if it has a key that tells that spelling, or if nothing else on the line
    tells another one; with a key that only canonical cases have, it is canonical.
    """
    told = [name for name, keys in _MARKS.items() if not keys.keys().isdisjoint(given)]
    if layers.CANONICAL.keys() & in_gold:
        told.append("canonical")
    elif in_gold and (not told or layers.LAYERED.keys() & in_gold):
        told.append("layers")
    return tuple(told)


def _settle(draft: Draft) -> None:
    """What each spelling says beyond its single keys."""
    reference.settle(draft)
    layers.settle(draft, is_layers="layers" in spelling_of(draft.given, draft.in_gold))
    ids.settle(draft)
    anchors.settle(draft)


# ── with care ─────────────────────────────────────────────────────────────────────────────────────────────────


def draft_with_care(record: dict[str, Json]) -> Draft:
    """The draft of a record; Unsound says all that is wrong with it, and where."""
    draft = CarefulDraft()
    draft.given = draft.take(record, FIELDS, (), _IN_GOLD)
    if "gold" in draft.gold:
        draft.in_gold = draft.take(draft.gold.pop("gold"), layers.GOLD, ("gold",))
    if "metadata" in draft.case:
        lifted, draft.case["metadata"] = layers.lifted(draft.case["metadata"])
        draft.take(lifted, COMMON, ("metadata",))
    draft.say_contested()
    _settle(draft)
    if "question" not in draft.case and "question" not in draft.broken:
        draft.findings.add((), "question is missing")
    if draft.findings.kept:
        raise Unsound(draft.findings)
    return draft


# ── at once ───────────────────────────────────────────────────────────────────────────────────────────────────


class _Plan(NamedTuple):
    """Which key of an object gives which part, through which reader."""

    case: tuple[tuple[str, str, Reader], ...]
    gold: tuple[tuple[str, str, Reader], ...]


def _plan(fields: Mapping[str, Field], keys: tuple[str, ...]) -> _Plan:
    """The plan for objects with these keys; Unsound if one is not known, or two give the same part."""
    if not fields.keys() >= set(keys):
        raise bad("has an unknown key")
    known = [(key, fields[key]) for key in keys]
    if len({field.part for _, field in known}) < len(keys):
        raise bad("gives one part twice")
    case, gold = (
        tuple((key, field.part, field.shape.read) for key, field in known if field.is_gold is is_gold)
        for is_gold in (False, True)
    )
    return _Plan(case, gold)


# A file has a handful of combinations. Plans hold known keys only: what raises is not kept, however long the keys are.
_PlanOf = Callable[[tuple[str, ...]], _Plan]
_of_line: _PlanOf = lru_cache(maxsize=512)(partial(_plan, FIELDS))
_of_gold: _PlanOf = lru_cache(maxsize=512)(partial(_plan, layers.GOLD))


def draft_at_once(record: dict[str, Json]) -> Draft:
    """The same draft as with care, of a record that is plainly sound; Unsound, without a word of use, of any other."""
    draft = Draft()
    draft.given = _take(draft, record, _of_line)
    case, gold = draft.case, draft.gold
    if "question" not in case:
        raise bad("has no question")
    if "gold" in gold:
        draft.in_gold = _take(draft, gold.pop("gold"), _of_gold)
    if "metadata" in case:
        lifted, case["metadata"] = layers.lifted(case["metadata"])
        if lifted:
            _take(draft, lifted, _of_line)
    _settle(draft)
    return draft


def _take(draft: Draft, record: Mapping[str, Json], plan_of: _PlanOf) -> tuple[str, ...]:
    """Read all keys of an object into the draft; the ones that are not null."""
    keys = tuple(record)
    of_case, of_gold = plan_of(keys)
    case = {part: read(record[key]) for key, part, read in of_case if record[key] is not None}
    gold = {part: read(record[key]) for key, part, read in of_gold if record[key] is not None}
    _add(draft.case, case)
    _add(draft.gold, gold)
    if len(case) + len(gold) == len(keys):
        return keys
    return tuple([key for key in keys if record[key] is not None])


def _add(into: dict[str, Any], parts: dict[str, Any]) -> None:
    """Add parts to others, which must not disagree."""
    for part in into.keys() & parts.keys():
        one, other = into[part], parts[part]
        if one is not None and other is not None:
            parts[part] = agreed(part, one, other)
            if parts[part] is None:
                raise bad("is contested")
        elif other is None:
            parts[part] = one
    into.update(parts)
