"""How does one record become one case? Strictly: every key is known, every value what it should be, or it is said."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from pytest_rageval.cases import anchors, ids, layers, reference
from pytest_rageval.cases.canonical import case_to_mapping, written_small
from pytest_rageval.cases.fields import Draft
from pytest_rageval.cases.problems import Findings
from pytest_rageval.cases.spellings import FIELDS, spellings
from pytest_rageval.model import EvalCase, Gold, Json, Source

_NO_GOLD = Gold()
_IN_GOLD = tuple(f"gold.{key}" for key in layers.GOLD)


class Converted(NamedTuple):
    """A case, and the spellings that its line combines."""

    case: EvalCase
    spelling: tuple[str, ...]


def case_from_record(record: dict[str, Json], source: Source) -> Converted | Findings:
    """Read one record of a case file; or say all that is wrong with it."""
    draft = Draft()
    given = tuple(draft.take(record, FIELDS, (), _IN_GOLD))
    in_gold: tuple[str, ...] = ()
    if "gold" in draft.gold:
        in_gold = tuple(draft.take(draft.gold.pop("gold"), layers.GOLD, ("gold",)))
    if "metadata" in draft.case:
        layers.lift(draft)
    draft.agree()
    reference.settle(draft)
    spelling = () if draft.findings else spellings(given, in_gold)
    layers.settle(draft, is_layers="layers" in spelling)
    ids.settle(draft, given)
    anchors.settle(draft)
    case, gold = draft.case, draft.gold
    if "question" not in case and "question" not in draft.broken:
        draft.findings.add((), "question is missing")
    if draft.findings.kept:
        return draft.findings
    if "id" not in case:
        case["id"] = _hash_id(draft)
    return Converted(EvalCase(**case, gold=Gold(**gold) if gold else _NO_GOLD, source=source), spelling)


def _hash_id(draft: Draft) -> str:
    """Twelve hex digits from the content: the same however the row is spelled, and wherever it stands."""
    nameless = EvalCase(id="", **draft.case, gold=Gold(**draft.gold))
    return hashlib.sha256(written_small(case_to_mapping(nameless)).encode()).hexdigest()[:12]
