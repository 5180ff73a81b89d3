"""Observations: all that is slow or random about a case, done: answer, matches with gold, judgements, timings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pytest_rageval.model.answer import Answer
from pytest_rageval.model.case import EvalCase, Gold, Json
from pytest_rageval.model.judgement import FailedJudgement, Judgement, Problem

GoldKind = Literal["anchors", "ids", "none"]
"""The kind of gold that retrieval is measured against."""
MatchKind = Literal["exact", "normalised", "last_heading", "document"]
"""How the place of a passage was compared with that of a gold, from the surest."""


class LooseMatch(NamedTuple):
    """A match that is not exact: position of the chunk (from 0), gold, kind, and why it is in doubt, if it is."""

    at: int
    gold: int
    kind: MatchKind
    doubt: str | None


@dataclass(frozen=True, slots=True)
class Matching:
    """The golds that each retrieved chunk and each reference matches; see `matching.match`.

    kind       'anchors', 'ids' or 'none': the kind of gold
    golds      the number of golds
    hits       by rank (0-based position): the set of gold indices that the chunk matches
    irrelevant by rank: whether the chunk matches a gold that must not be retrieved
    cited      by reference: the set of gold indices that it matches; None if the system reports no references
    flags      notes for readers, e.g. a snippet that may lie beyond a cut
    loose      those of `hits` that are not exact
    fresh      follows from hits: each 1-based rank with a gold that no earlier rank has, and the number of golds
               retrieved by then
    """

    kind: GoldKind = "none"
    golds: int = 0
    hits: tuple[frozenset[int], ...] | None = None
    irrelevant: tuple[bool, ...] | None = None
    cited: tuple[frozenset[int], ...] | None = None
    flags: tuple[str, ...] = ()
    loose: tuple[LooseMatch, ...] = ()
    fresh: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Half of the retrieval metrics start from these ranks: computed once, they cost 1 µs instead of 6.
        fresh: list[tuple[int, int]] = []
        seen: frozenset[int] = frozenset()
        for rank, golds in enumerate(self.hits or (), start=1):
            if golds and not golds <= seen:
                seen |= golds
                fresh.append((rank, len(seen)))
        object.__setattr__(self, "fresh", tuple(fresh))

    @property
    def doubts(self) -> Mapping[str, int]:
        """Return the number of golds that are matched in doubt only, by the kind of doubt."""
        if not self.loose:
            return {}
        sure = {match.gold for match in self.loose if match.doubt is None}
        doubts = {match.gold: match.doubt for match in self.loose if match.doubt and match.gold not in sure}
        return Counter(doubts.values())


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall-clock milliseconds measured around the calls; None if nothing was called.

    `ask_ms` covers the answered requests, `retry_wait_ms` the time before them: failed requests and the waits after
    these. `requests` counts all requests sent to the system; None without HTTP.
    """

    queue_ms: float | None = None
    ask_ms: float | None = None
    judge_ms: float | None = None
    retry_wait_ms: float | None = None
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """A case with its answer, matches, judgements and timings. All metrics are pure functions of this value.

    `k` is the configured cut-off for metrics named without one; `asked_k` the number of chunks requested (None if the
    list was given); `params` the parameters sent with the question; `refusals` the phrases with which the project's own
    bot declines.
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
        """Return the golds that the chunk at each rank matches; empty if nothing was retrieved or reported."""
        return self.matching.hits or ()

    @property
    def cited(self) -> tuple[frozenset[int], ...]:
        """Return the golds that each cited reference matches; empty if none are reported."""
        return self.matching.cited or ()

    @property
    def golds(self) -> int:
        """Return the number of golds that retrieval is measured against."""
        return self.matching.golds

    def judged(self, metric: str) -> Judgement | None:
        """Return the judgement that scored this metric, or None; raise FailedJudgement if it failed."""
        found = self.judgement_of(metric)
        for judgement in self.judgements.values() if found is None else ():
            if judgement.error is not None and metric in judgement.unscored:
                raise FailedJudgement(judgement, judgement.error)
        return found

    def judgement_of(self, metric: str) -> Judgement | None:
        """Return the judgement that scored this metric, or None."""
        return next((j for j in self.judgements.values() if metric in j.scores), None)

    @property
    def judge_problems(self) -> tuple[Problem, ...]:
        """Return the problems of failed judgements."""
        return tuple(j.error for j in self.judgements.values() if j.error is not None)
