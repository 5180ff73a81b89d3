"""Does a sentence say another thing than the passage it agrees with? Figure for figure, name for name.

There are three ways to see it. In a gap: between the same two words stands something else. In a frame: the words around
a slot are there, with another value. As a whole: nearly the same words, of which one is a "not". In each, the claim's
own value must not stand in the same surroundings elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Literal, NamedTuple

from pytest_rageval.judges.lexical.number_words import is_figure, readings
from pytest_rageval.judges.lexical.opposites import sides
from pytest_rageval.judges.lexical.slots import END, NEGATION, NOT, START, Outline, Slot, outline
from pytest_rageval.judges.lexical.statements import Statement, has_particles, read_statement

Kind = Literal["figure", "name", "opposite", "negation"]

ALIKE = 0.4
"""Of the claim's content words, the least share that a sentence has if one gap tells that it says otherwise."""

LEAST_FRAME = 2
"""Words of a frame, the least that must be shared."""

FRAME_SHARE = 0.6
"""Of a slot's frame, the least share."""

NAME_SHARE = 0.8
"""The same for a name: sentences about several people or places are often built alike."""

SAME_WORDS = 0.6
"""Shared words / all words of both, the least for two sentences that differ by their sign alone."""

_QUESTION_MARKS = ("?", "？", '?"', "?”")
_Ends = tuple[str, str]
_Between = tuple[str, ...]


class Conflict(NamedTuple):
    """What the claim says, what is said instead, and in which sentence."""

    kind: Kind
    claimed: str
    stated: str
    sentence: str


def conflict(claim: Statement, nearest: Sequence[str]) -> Conflict | None:
    """The first conflict of the claim with the sentences nearest to it, None where none is seen.

    A question states nothing, neither as a claim nor in a passage.
    """
    nearest = [sentence for sentence in nearest if not sentence.endswith(_QUESTION_MARKS)]
    if not nearest or claim.text.endswith(_QUESTION_MARKS):
        return None
    mine = outline(claim.text)
    theirs = [(sentence, outline(sentence)) for sentence in nearest]
    return _in_gaps(mine, theirs) or _in_frames(mine, theirs) or _as_a_whole(claim, nearest)


# ── in a gap ──────────────────────────────────────────────────────────────────────────────────────────────────


def _in_gaps(mine: Outline, theirs: Sequence[tuple[str, Outline]]) -> Conflict | None:
    for sentence, their in theirs:
        if len(mine.content & their.content) < ALIKE * len(mine.content):
            continue
        for ends, said, instead in _open_gaps(mine, their, [other for _, other in theirs]):
            kind = _difference(said, instead, ends, mine, their)
            if kind:
                return Conflict(kind, _shown(ends, said, mine), _shown(ends, instead, their), sentence)
    return None


def _open_gaps(mine: Outline, their: Outline, every: Sequence[Outline]) -> Iterator[tuple[_Ends, _Between, _Between]]:
    """Anchors that both have with other words between; not where any sentence has what the claim says there."""
    for ends in mine.gaps:
        if ends in their.gaps and mine.gaps[ends].isdisjoint(their.gaps[ends]):
            known = [{*between} for other in every for between in other.gaps.get(ends, ())]
            said = [
                one for one in sorted(mine.gaps[ends]) if not one or not any(there.issuperset(one) for there in known)
            ]
            yield from ((ends, *both) for both in product(said, sorted(their.gaps[ends])))


def _difference(said: _Between, instead: _Between, ends: _Ends, mine: Outline, their: Outline) -> Kind | None:
    """What kind of thing differs between the anchors; None for a mere rewording."""
    ours = [word for word in said if word not in instead]
    others = [word for word in instead if word not in said]
    if [NOT] in (ours, others) and [] in (ours, others):
        return None if mine.negates and their.negates else "negation"
    # What the claim says as well, it does not replace: the members of a list may come in another order.
    if not ours or not others or not mine.content.isdisjoint(others):
        return None
    # An end of the sentence holds less than a word: there the rest has to fit exactly.
    if (START in ends or END in ends) and (len(said) != len(instead) or not their.content.isdisjoint(ours)):
        return None
    if all(map(is_figure, ours)) and all(map(is_figure, others)):
        return None if _readings(ours) & _readings(others) else "figure"
    if mine.names.issuperset(ours) and their.names.issuperset(others):
        return "name"
    return "opposite" if len(ours) == len(others) == 1 and _exclude(ours[0], others[0]) else None


def _readings(figures: Iterable[str]) -> set[str]:
    return {reading for figure in figures for reading in readings(figure)}


def _exclude(one: str, other: str) -> bool:
    places = dict(sides(other))
    return any(places.get(axis, side) != side for axis, side in sides(one))


def _shown(ends: _Ends, between: _Between, by: Outline) -> str:
    forms = [form for form in (ends[0], *between, ends[1]) if form not in (START, END)]
    return " ".join("not" if form == NOT else by.written.get(form, form) for form in forms)


# ── in a frame ────────────────────────────────────────────────────────────────────────────────────────────────


def _in_frames(mine: Outline, theirs: Sequence[tuple[str, Outline]]) -> Conflict | None:
    for slots in mine.slots.values():
        said = frozenset(value for slot in slots for value in slot.values)
        for slot in slots:
            if len(slot.frame) >= LEAST_FRAME and (found := _elsewhere(slot, said, mine, theirs)):
                return found
    return None


def _elsewhere(
    slot: Slot, said: frozenset[str], mine: Outline, theirs: Sequence[tuple[str, Outline]]
) -> Conflict | None:
    """The sentence that has the slot's frame with another value, unless one has as much of it with the same."""
    is_sign = slot.kind.startswith(NEGATION)
    same, most, found = 0, 0, None
    for sentence, their in theirs:
        others = their.slots.get(slot.kind, ())
        # Two negations may say the same in other words; and what a sentence names, it does not replace.
        is_named = any(not slot.values.isdisjoint(other.values) for other in others)
        may_replace = not is_named and not (is_sign and mine.negates and their.negates)
        for other in others:
            shared = len(slot.frame & other.frame)
            if not slot.values.isdisjoint(other.values) or (is_sign and not may_replace):
                same = max(same, shared)
            elif may_replace and shared > most and other.values.isdisjoint(said | mine.content):
                most, found = shared, Conflict(_kind(slot), slot.said, other.said, sentence)
    share = NAME_SHARE if slot.kind == "name" else FRAME_SHARE
    return found if most > same and most >= max(LEAST_FRAME, share * len(slot.frame)) else None


def _kind(slot: Slot) -> Kind:
    known: dict[str, Kind] = {"figure": "figure", "name": "name"}
    return "negation" if slot.kind.startswith(NEGATION) else known.get(slot.kind, "opposite")


# ── as a whole ────────────────────────────────────────────────────────────────────────────────────────────────


def _as_a_whole(claim: Statement, nearest: Sequence[str]) -> Conflict | None:
    """The sentence that says nearly the same with the other sign, unless another says it with the same.

    For languages in which a negation is part of the verb: elsewhere gaps and frames tell what it negates.
    """
    if not has_particles(claim.text):
        return None
    found, most = None, SAME_WORDS
    for statement in map(read_statement, nearest):
        shared = len(claim.content & statement.content)
        alike = shared / (len(claim.content) + len(statement.content) - shared)
        if alike > most or (alike == most and statement.negates == claim.negates):
            found, most = statement, alike
    if found is None or found.negates == claim.negates or (outline(claim.text).negates and outline(found.text).negates):
        return None
    return Conflict("negation", claim.text, found.text, found.text)
