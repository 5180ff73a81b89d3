"""Golds that were missed though a chunk holds their text: perhaps their place is only spelled otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_rageval.language.words import fold
from pytest_rageval.matching.dialects import MISSED, PlaceRules
from pytest_rageval.matching.notes import text_below
from pytest_rageval.matching.place_change import place_change
from pytest_rageval.model import Anchor, Observation

SHORTEST = 12
"""Characters of a gold answer at least; a shorter one stands in many texts by chance."""


class MissedGold(NamedTuple):
    """A gold without a hit whose text stands in a chunk."""

    note: str
    elsewhere: str
    """The change of place, if the chunk holds the text of the gold itself and not only the answer; else ''."""


def missed_golds(obs: Observation, rules: PlaceRules) -> Iterator[MissedGold]:
    """Yield each gold without a hit whose text stands in a chunk."""
    golds = obs.gold.supports or ()
    matched = frozenset[int]().union(*obs.hits)
    missed = [gold for gold in range(len(golds)) if gold not in matched]
    # Before the texts are folded, which takes the most time.
    if not missed:
        return
    chunks = obs.answer.chunks or ()
    chunk_texts = [fold(chunk.text or "") for chunk in chunks]
    for gold in missed:
        own = _own_texts(golds[gold], rules)
        wanted = own or _answers(obs, is_alone=len(golds) == 1)
        at = _first_with_any(chunk_texts, wanted)
        if at is not None:
            parts = filter(None, (chunks[at].rel_path, chunks[at].heading_path))
            place = " > ".join(parts) or "without a place"
            note = f"gold {gold + 1} is {MISSED}: chunk {at + 1} is {place!r}, the gold {str(golds[gold])!r}"
            is_certain = any(len(text) >= SHORTEST for text in own)
            elsewhere = place_change(golds[gold].rel_path, chunks[at].rel_path) if is_certain else ""
            yield MissedGold(note, elsewhere)


def _first_with_any(texts: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return the position of the first text that holds one of those wanted."""
    for at, text in enumerate(texts):
        if any(part in text for part in wanted):
            return at
    return None


def _own_texts(anchor: Anchor, rules: PlaceRules) -> list[str]:
    """Return the texts of a gold: its snippets, else its section."""
    snippets = list(filter(None, map(fold, anchor.snippets)))
    if snippets or rules.notes is None:
        return snippets
    section = fold(text_below(rules.notes, anchor) or "")
    return [section] if section else []


def _answers(obs: Observation, *, is_alone: bool) -> list[str]:
    """Return the answers, which show a gold as well if it is the only one."""
    if not is_alone:
        return []
    answers = [fold(answer) for answer in obs.gold.answers or () if len(answer) >= SHORTEST]
    return list(filter(None, answers))
