"""How does one record become one case? Strictly: every key is known, every value what it should be, or it is said.

Nearly all records are sound: they are taken at once. Any other is taken again with care, which notes where each part
came from, and so knows everything that is wrong, and where.
"""

from __future__ import annotations

import hashlib

from pytest_rageval.cases.canonical import case_to_mapping, written_small
from pytest_rageval.cases.fields import CarefulDraft, Draft
from pytest_rageval.cases.layers import GOLD, LIFTED
from pytest_rageval.cases.plans import draft_at_once
from pytest_rageval.cases.problems import Unsound
from pytest_rageval.cases.spellings import FIELDS, SPELLINGS, spelling_of
from pytest_rageval.model import EvalCase, Gold, Json, Source

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


def _hash_id(draft: Draft) -> str:
    """Twelve hex digits from the content: the same however the row is spelled, and wherever it stands."""
    nameless = EvalCase(id="", **draft.case, gold=Gold(**draft.gold))
    return hashlib.sha256(written_small(case_to_mapping(nameless)).encode()).hexdigest()[:12]


def draft_with_care(record: dict[str, Json]) -> Draft:
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
