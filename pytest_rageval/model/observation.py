"""Everything slow or random about one case, done: answer, matches with gold, judgements, timings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_rageval.model.answer import Answer
from pytest_rageval.model.case import EvalCase, Gold, Json
from pytest_rageval.model.judgement import FailedJudgement, Judgement, Problem

GoldKind = Literal["anchors", "ids", "none"]
"""What retrieval is measured against."""


@dataclass(frozen=True, slots=True)
class Matching:
    """Which gold each retrieved chunk and each reference matches; see `matching.match`.

    kind       'anchors', 'ids' or 'none': what was used as gold
    golds      how many golds there are
    hits       by rank (0-based position): the set of gold indices that chunk matches
    irrelevant by rank: does the chunk match a gold that must not come?
    cited      by reference: the set of gold indices it matches; None where the system reports no references
    flags      what a reader should know, e.g. a snippet that may lie beyond a cut
    fresh      follows from hits: for each 1-based rank that brings a gold which no earlier rank brought, that rank
               and how many golds were found by then
    """

    kind: GoldKind = "none"
    golds: int = 0
    hits: tuple[frozenset[int], ...] | None = None
    irrelevant: tuple[bool, ...] | None = None
    cited: tuple[frozenset[int], ...] | None = None
    flags: tuple[str, ...] = ()
    fresh: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Half of the retrieval metrics start from these ranks; found once, they cost a microsecond, not six.
        fresh: list[tuple[int, int]] = []
        seen: frozenset[int] = frozenset()
        for rank, golds in enumerate(self.hits or (), start=1):
            if golds and not golds <= seen:
                seen |= golds
                fresh.append((rank, len(seen)))
        object.__setattr__(self, "fresh", tuple(fresh))


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall-clock milliseconds measured by us around the calls; None where nothing was called.

    `ask_ms` is of the requests that were answered, `retry_wait_ms` what went by before them: failed requests, and the
    waits behind these. `requests` counts all that were sent to ask; None where none goes over HTTP.
    """

    queue_ms: float | None = None
    ask_ms: float | None = None
    judge_ms: float | None = None
    retry_wait_ms: float | None = None
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything slow or random about one case, done. All metrics are pure functions of this value.

    `k` is the configured cut-off for metrics named without one; `asked_k` how many chunks the system was asked
    for (None: it was not asked, the list is what it is); `params` the parameters that were sent with the question;
    `refusals` the phrases with which the project's own bot declines.
    """

    case: EvalCase
    answer: Answer
    matching: Matching = Matching()
    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    k: int = 5
    asked_k: int | None = None
    timings: Timings = Timings()
    trial: int = 0
    params: Mapping[str, Json] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()

    @property
    def gold(self) -> Gold:
        return self.case.gold

    @property
    def hits(self) -> tuple[frozenset[int], ...]:
        """By rank, the golds that the chunk there matches; empty where nothing was retrieved or reported."""
        return self.matching.hits or ()

    @property
    def golds(self) -> int:
        """How many golds retrieval is measured against."""
        return self.matching.golds

    def judged(self, metric: str) -> Judgement | None:
        """The judgement that scored this metric, if one did; FailedJudgement where it failed."""
        found = self.judgement_of(metric)
        for judgement in self.judgements.values() if found is None else ():
            if judgement.error is not None and metric in judgement.unscored:
                raise FailedJudgement(judgement, judgement.error)
        return found

    def judgement_of(self, metric: str) -> Judgement | None:
        """The judgement that scored this metric, if one did."""
        return next((j for j in self.judgements.values() if metric in j.scores), None)

    @property
    def judge_problems(self) -> tuple[Problem, ...]:
        """Why judgements failed."""
        return tuple(j.error for j in self.judgements.values() if j.error is not None)
