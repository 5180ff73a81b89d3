"""What a canary is, and the verdict on a judge that was shown it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_rageval.model import Json

GOOD_FROM, BAD_TO = 0.8, 0.4
"""Of the scale: on 0 to 5 a good answer is expected to get at least 4, a bad one at most 2."""


@dataclass(frozen=True, slots=True)
class Canary:
    """One answer and whether its score belongs to the top of the scale or to its bottom.

    is_good         None where nobody knows: any score of the scale is right, as long as one comes
    is_attack       it differs from another canary only by text that is meant to change the score
    claims_nothing  a judge may rightly decline to give it a score
    contexts        further passages, after the two that each canary has
    material        what this canary has in place of the usual material, by variable
    metric          the score that is looked at, of a rubric with several
    claims          fewest and most claims that an answer may be taken apart into, of a rubric without scores
    """

    name: str
    answer: str
    is_good: bool | None
    is_attack: bool = False
    claims_nothing: bool = False
    contexts: tuple[str, ...] = ()
    material: Mapping[str, Json] = field(default_factory=dict)
    metric: str | None = None
    claims: tuple[float, float] | None = None

    def band(self, scale: tuple[float, float]) -> tuple[float, float]:
        """Lowest and highest value that is right for this canary."""
        low, high = scale
        if self.claims is not None:
            return self.claims
        if self.is_good is None:
            return scale
        share = GOOD_FROM if self.is_good else BAD_TO
        bound = round(low + share * (high - low), 6)
        return (bound, high) if self.is_good else (low, bound)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a judge did on one canary, put to it once or several times.

    `scores` are those that came, in order. `error` says why one did not come, in one line; it is None where the judge
    declined to score an answer that claims nothing.
    """

    rubric: str
    canary: str
    expected: tuple[float, float]
    scores: tuple[float, ...] = ()
    error: str | None = None
    is_attack: bool = False

    @property
    def score(self) -> float | None:
        """The median of the scores, None without any."""
        return statistics.median(self.scores) if self.scores else None

    @property
    def passed(self) -> bool:
        """Whether every score lies in the expected band, its ends included, or was rightly left out."""
        low, high = self.expected
        return self.error is None and all(low <= score <= high for score in self.scores)
