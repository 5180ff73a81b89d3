"""Traits that all failing cases share and the others do not: a tag, or being a follow-up of a conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.io.suggestions import listed
from pytest_rageval.runs.row import Row

FEWEST = 2
"""Failing cases at least: one case shares everything with itself."""
SHOWN_TAGS = 3
ONLY_FOLLOW_UPS = "only follow-ups fail, no first question of a conversation"
FOLLOW_UPS_ADVICE = (
    "Only follow-ups fail: check that the system gets the history of the conversation, and that its search uses it."
)


class Traits(NamedTuple):
    """Traits that cases can share. `turn`: the number in a conversation from 1; None for a single case."""

    tags: Collection[str]
    turn: int | None
    is_failing: bool


def traits_of_rows(rows: Iterable[Row], outcomes: Collection[str]) -> list[Traits]:
    """Return the traits of the cases; those with one of these outcomes are failing."""
    return [Traits(row.groups.get("tag", ()), row.turn, row.outcome in outcomes) for row in rows]


def traits_of_cases(cases: Iterable[ListedCase], outcomes: Collection[str]) -> list[Traits]:
    """Return the traits of listed cases, whose tags hold those of their failed gates as well."""
    traits: list[Traits] = []
    for case in cases:
        of_gates = {tag for _, tag in case.failed}
        tags = {tag for tag in case.tags if tag not in of_gates}
        turn = int(case.turn) if case.turn else None
        traits.append(Traits(tags, turn, case.outcome in outcomes))
    return traits


def shared_lines(cases: Sequence[Traits]) -> Iterator[str]:
    """Yield `all 13 failing cases have the tag money`, and that only follow-ups fail, if they do."""
    failing = [case for case in cases if case.is_failing]
    if len(failing) < FEWEST:
        return
    others = [case for case in cases if not case.is_failing]
    shared = set(failing[0].tags).intersection(*(case.tags for case in failing))
    telling = sorted(tag for tag in shared if any(tag not in case.tags for case in others))
    if telling:
        noun = "tag" if len(telling) == 1 else "tags"
        yield f"all {len(failing):,} failing cases have the {noun} {listed(telling, SHOWN_TAGS)}"
    if do_only_follow_ups_fail(cases):
        yield ONLY_FOLLOW_UPS


def do_only_follow_ups_fail(cases: Iterable[Traits]) -> bool:
    """Check whether several cases fail, all of them later turns, though first turns were asked."""
    failing = 0
    has_first_turn = False
    for case in cases:
        if case.is_failing:
            failing += 1
            if case.turn is None or case.turn == 1:
                return False
        elif case.turn == 1:
            has_first_turn = True
    return failing >= FEWEST and has_first_turn
