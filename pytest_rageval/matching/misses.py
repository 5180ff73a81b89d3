"""Golds that are missed although a retrieved chunk holds their text: perhaps the place is only spelled otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_rageval.matching.dialects import MISSED, PlaceRules, text_below
from pytest_rageval.model import Anchor, CaseResult, Json, Observation
from pytest_rageval.words import fold

SHORTEST = 12
"""Characters of a gold answer at least; a shorter one stands in many texts by chance."""


def matching_fields(result: CaseResult, rules: PlaceRules) -> dict[str, Json]:
    """Return what a record keeps of a case's matching; misses are looked for only if the case fails."""
    obs = result.observation
    if obs is None:
        return {"flags": []}
    is_looked_at = result.failed_gates and obs.matching.kind == "anchors"
    flags = [*obs.matching.flags, *(_misses(obs, rules) if is_looked_at else ())]
    doubts = obs.matching.doubts if obs.matching.loose else {}
    return {"flags": flags} | ({"doubt": doubts} if doubts else {})


def _misses(obs: Observation, rules: PlaceRules) -> Iterator[str]:
    matched = frozenset[int]().union(*obs.hits)
    golds = obs.gold.supports or ()
    missed = [gold for gold in range(len(golds)) if gold not in matched]
    texts = [fold(chunk.text or "") for chunk in obs.answer.chunks or ()] if missed else []
    for gold in missed:
        wanted = _texts_of(golds[gold], obs, rules, is_alone=len(golds) == 1)
        at = next((at for at, text in enumerate(texts) if any(each in text for each in wanted)), None)
        if at is not None:
            chunk = (obs.answer.chunks or ())[at]
            place = " > ".join(filter(None, (chunk.rel_path, chunk.heading_path))) or "without a place"
            yield f"gold {gold + 1} is {MISSED}: chunk {at + 1} is {place!r}, the gold {str(golds[gold])!r}"


def _texts_of(anchor: Anchor, obs: Observation, rules: PlaceRules, *, is_alone: bool) -> list[str]:
    """Return the texts that show a gold: its snippets, else its section, else the answer if it is the only gold."""
    section = text_below(rules.notes, anchor) if rules.notes is not None else None
    answers = [answer for answer in obs.gold.answers or () if len(answer) >= SHORTEST] if is_alone else []
    for texts in (anchor.snippets, (section,) if section else (), answers):
        if folded := [each for each in map(fold, texts) if each]:
            return folded
    return []
