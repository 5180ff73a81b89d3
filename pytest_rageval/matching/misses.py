"""Golds that were missed though a chunk holds their text: perhaps their place is only spelled otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_rageval.language.words import fold
from pytest_rageval.matching.dialects import MISSED, PlaceRules
from pytest_rageval.matching.notes import text_below
from pytest_rageval.model import Anchor, Observation

SHORTEST = 12
"""Characters of a gold answer at least; a shorter one stands in many texts by chance."""


def missed_golds(obs: Observation, rules: PlaceRules) -> Iterator[str]:
    """Yield a note for each gold without a hit whose text stands in a chunk."""
    golds = obs.gold.supports or ()
    matched = frozenset[int]().union(*obs.hits)
    missed = [gold for gold in range(len(golds)) if gold not in matched]
    # Before the texts are folded, which takes the most time.
    if not missed:
        return
    chunks = obs.answer.chunks or ()
    chunk_texts = [fold(chunk.text or "") for chunk in chunks]
    for gold in missed:
        wanted = _texts_of(golds[gold], obs, rules, is_alone=len(golds) == 1)
        at = _first_with_any(chunk_texts, wanted)
        if at is not None:
            parts = filter(None, (chunks[at].rel_path, chunks[at].heading_path))
            place = " > ".join(parts) or "without a place"
            yield f"gold {gold + 1} is {MISSED}: chunk {at + 1} is {place!r}, the gold {str(golds[gold])!r}"


def _first_with_any(texts: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return the position of the first text that holds one of those wanted."""
    for at, text in enumerate(texts):
        if any(part in text for part in wanted):
            return at
    return None


def _texts_of(anchor: Anchor, obs: Observation, rules: PlaceRules, *, is_alone: bool) -> list[str]:
    """Return the texts that show a gold: its snippets, else its section, else the answer if it is the only gold."""
    section = text_below(rules.notes, anchor) if rules.notes is not None else None
    answers: list[str] = []
    if is_alone:
        answers = [answer for answer in obs.gold.answers or () if len(answer) >= SHORTEST]
    for texts in (anchor.snippets, [section or ""], answers):
        folded = list(filter(None, map(fold, texts)))
        if folded:
            return folded
    return []
