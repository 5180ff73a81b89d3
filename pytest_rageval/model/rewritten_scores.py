"""The scores of follow-ups that were asked again as their rewrites, beside those in conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class RewrittenScores:
    """The scores of one trial of a follow-up asked as its rewrite.

    metric_errors  metrics without a score because a judgement or the metric failed, and the reason
    """

    scores: Mapping[str, float] = field(default_factory=dict)
    metric_errors: Mapping[str, str] = field(default_factory=dict)


class ScorePair(NamedTuple):
    """The score of a follow-up asked as its rewrite, and its score in conversation."""

    rewritten: float
    in_conversation: float

    @property
    def gap(self) -> float:
        """Return what resolving the reference for the system adds to the score."""
        return self.rewritten - self.in_conversation


@dataclass(frozen=True, slots=True)
class RewrittenFollowUp:
    """A follow-up that was to be asked as its rewrite, too.

    unit     the key of its conversation, or of the case if it is no turn
    pairs    by metric, its scores; without metrics that have no score on one of the two sides
    errors   the metrics whose pair is missing since something failed
    failure  the kind of the error that left no pair at all: of the extra request, or of the case; None without one
    """

    unit: str
    pairs: Mapping[str, ScorePair] = field(default_factory=dict)
    errors: frozenset[str] = frozenset()
    failure: str | None = None
