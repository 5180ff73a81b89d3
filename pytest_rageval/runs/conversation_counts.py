"""Conversations in records: the fields of a turn; how many there are, which of them broke, and at which turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pytest_rageval.model import BLOCKED, ConversationScores, EvalCase
from pytest_rageval.runs.row import Row
from pytest_rageval.stats.clusters import cluster_interval
from pytest_rageval.stats.intervals import Interval


def turn_fields(case: EvalCase) -> dict[str, Any]:
    """Return the fields that the record of a turn has beside those of a case; empty for a single case."""
    fields: dict[str, Any] = {}
    if case.turn is not None:
        fields = {"conversation": case.conversation, "turn": case.turn}
    if case.conversational:
        fields["conversational"] = True
    return fields


def conversation_counts(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the part of metrics.json about conversations; empty without any.

    broken          by conversation, the turn that ended it: by an error, or by a failed gate where that ends one
    blocked_turns   how many turns were not asked for that
    broken_by_error how many of the turns that ended one are themselves errors of this run
    pass_rate_ci    95 % interval of the share of all cases that pass, each conversation one observation
    """
    turns = [row for row in rows if row.conversation is not None]
    if not turns:
        return {}
    broken: dict[str, int] = {}
    blocked_turns = 0
    for row in turns:
        if row.error_kind == BLOCKED and row.conversation is not None and row.broken_at is not None:
            blocked_turns += 1
            # With repeats each trial may break at another turn: the earliest counts.
            broken[row.conversation] = min(row.broken_at, broken.get(row.conversation, row.broken_at))
    errors = {(row.conversation, row.turn) for row in turns if row.outcome == "error"}
    broken_by_error = errors.intersection(broken.items())
    conversations = {row.conversation for row in turns}
    counts = {
        "count": len(conversations),
        "turns": len(turns),
        "broken": dict(sorted(broken.items())),
        "blocked_turns": blocked_turns,
        "broken_by_error": len(broken_by_error),
        "pass_rate_ci": pass_rate_interval(rows),
    }
    return {"conversations": counts}


def pass_rate_interval(rows: Sequence[Row]) -> Interval | None:
    """Return the 95 % interval of the share of cases that pass, each conversation one observation."""
    passed = [float(row.outcome == "passed") for row in rows]
    # A single case depends on no other: it is a cluster of its own.
    clusters = [row.conversation or row.key for row in rows]
    return cluster_interval(passed, clusters, (0, 1))


def conversation_scores(rows: Sequence[Row]) -> tuple[ConversationScores, ...]:
    """Return whether the turns of each conversation pass, and their scores; without turns that were skipped."""
    by_conversation: dict[str, list[Row]] = {}
    for row in rows:
        if row.conversation is not None and row.outcome != "skipped":
            by_conversation.setdefault(row.conversation, []).append(row)
    scores: list[ConversationScores] = []
    for turns in by_conversation.values():
        passed = all(turn.outcome == "passed" for turn in turns)
        first = [turn for turn in turns if turn.turn == 1]
        later = [turn for turn in turns if turn.turn != 1]
        scores.append(ConversationScores(passed, _scores_of(first), _scores_of(later)))
    return tuple(scores)


def _scores_of(turns: Iterable[Row]) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = {}
    for turn in turns:
        for name, score in turn.scores.items():
            scores.setdefault(name, []).append(score)
    return scores


def turn_numbers(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Return the turns of all conversations by their number, in its order."""
    by_number: dict[int, list[Row]] = {}
    for row in rows:
        if row.turn is not None:
            by_number.setdefault(row.turn, []).append(row)
    return dict(sorted(by_number.items()))
