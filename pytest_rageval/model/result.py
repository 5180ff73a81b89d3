"""Judgements, observations and results: all that is slow or random about a case, done, and what it came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pytest_rageval.model.case import Answer, Dialogue, EvalCase, Gold, Json
from pytest_rageval.model.conversation_scores import ConversationScores
from pytest_rageval.model.rewritten_scores import RewrittenFollowUp, RewrittenScores
from pytest_rageval.text import short

BLOCKED = "blocked"
"""The kind of problem of a turn that was not asked, because an earlier one broke the conversation."""
_LASTING_STATUS = (401, 403, 404)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why querying, judging or scoring failed: a kind for programs and a message for people.

    `raw` is the reply that could not be read, cut at a few thousand characters; None without a reply. `status` is the
    HTTP status of a refusal; it is not recorded. `turn` is the turn that broke the conversation of a blocked one.
    """

    kind: str
    message: str
    raw: str | None = None
    status: int | None = None
    turn: int | None = None

    @property
    def is_lasting(self) -> bool:
        """Return True if another call would fail in the same way: no connection, no such place, no permission."""
        return self.kind.removeprefix("judge_") == "connect" or self.status in _LASTING_STATUS


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's reply: `scores` by metric name, each on its own `scale`. A failed one has an `error` instead."""

    rubric: str
    scores: Mapping[str, float]
    scale: tuple[float, float] = (0.0, 1.0)
    reasoning: str = ""
    supported_claims: tuple[str, ...] = ()
    unsupported_claims: tuple[str, ...] = ()
    model: str = ""
    prompt_version: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    cached: bool = False
    heuristic: bool = False
    """True if no model judged: reports say so, and default gates ignore the scores."""
    flags: tuple[str, ...] = ()
    """Reasons to doubt this judgement, e.g. a reply that quotes the marker of its request."""
    extra: Mapping[str, Json] = field(default_factory=dict)
    error: Problem | None = None
    """The reason for a failed judgement."""
    unscored: tuple[str, ...] = ()
    """The metrics that a failed judgement would have scored."""


class FailedJudgement(Exception):
    """A failed judgement that a metric needs, which makes it an error of the metric."""

    def __init__(self, judgement: Judgement, problem: Problem) -> None:
        super().__init__(f"{problem.kind}: {problem.message}")
        self.judgement = judgement
        self.problem = problem


# ── observations ────────────────────────────────────────────────────────────────────────────────────────────────────


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
    searches   for each tool call with retrieved chunks, the hits of these; None for one whose chunks name no places
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
    searches: tuple[tuple[frozenset[int], ...] | None, ...] = ()
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
    these. `requests` counts all requests sent to the system; None without HTTP. `ttft_ms` is the time to the first
    token of a streamed answer, from the request that was answered.
    """

    queue_ms: float | None = None
    ask_ms: float | None = None
    judge_ms: float | None = None
    retry_wait_ms: float | None = None
    requests: int | None = None
    ttft_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """A case with its answer, matches, judgements and timings. A metric is a pure function of it.

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
    dialogue: Dialogue | None = None
    """What was said before, where the case is a turn of a conversation."""
    rewritten: Observation | Problem | None = None
    """The same case asked as its rewrite without history, or why that failed; None if it was not asked so."""

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
        if not self.judgements:
            return None
        found = self.judgement_of(metric)
        for judgement in self.judgements.values() if found is None else ():
            if judgement.error is not None and metric in judgement.unscored:
                raise FailedJudgement(judgement, judgement.error)
        return found

    def judgement_of(self, metric: str) -> Judgement | None:
        """Return the judgement that scored this metric, or None."""
        if not self.judgements:
            return None
        return next((j for j in self.judgements.values() if metric in j.scores), None)

    @property
    def judge_problems(self) -> tuple[Problem, ...]:
        """Return the problems of failed judgements."""
        return tuple(j.error for j in self.judgements.values() if j.error is not None)


# ── results ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value for one observation, with details for readers."""

    value: float
    detail: Mapping[str, Json] = field(default_factory=dict)


class NotApplicable(NamedTuple):
    """The reason why a metric has no value. It enters no mean and is never shown as a number.

    `is_unobserved` is True if the metric would have a value, had the system reported its input.
    """

    reason: str
    is_unobserved: bool = False

    def __repr__(self) -> str:
        return f"NotApplicable(reason={self.reason!r})"


Outcome = Literal["passed", "failed", "error", "skipped", "xfailed"]


class FailedGate(NamedTuple):
    """A gate that fails for one case."""

    metric: str
    value: float
    threshold: str
    tag: str | None = None

    def __str__(self) -> str:
        text = f"{self.metric} is {short(self.value)}, gate {self.threshold}"
        return f"{text} ({self.tag})" if self.tag else text


class Confirmation(NamedTuple):
    """What a case that newly failed came to when it was asked again.

    attempts  how often it was asked, the first time included
    failed    how many of these attempts did not pass
    errors    how many of the failed ones were errors
    first     the gates that failed at first, in words
    spared    the metrics of gates that did not fail in most attempts, if the case fails by others all the same
    """

    attempts: int
    failed: int
    errors: int
    first: str
    spared: tuple[str, ...] = ()

    @classmethod
    def left_out(cls, first: str) -> Confirmation:
        """Return that of a case that was not asked again, though it newly failed."""
        return cls(1, 1, 0, first)

    @property
    def is_flaky(self) -> bool:
        """Return True unless most attempts failed."""
        return 2 * self.failed <= self.attempts

    @property
    def is_unanimous(self) -> bool:
        """Return True if each attempt failed its gates: then there is no more to say than that the case fails."""
        return self.failed == self.attempts and not self.errors

    def __str__(self) -> str:
        text = f"failed in {self.failed} of {self.attempts} attempts"
        return f"{text}, {self.errors} of them by an error" if self.errors else text


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case, as recorded in a line of results.jsonl.

    `observation` is None if querying or judging failed (then `error` says why, and there are no scores); `answer`
    is the one received before judging failed.
    """

    case: EvalCase
    outcome: Outcome
    observation: Observation | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    skipped_metrics: Mapping[str, str] = field(default_factory=dict)
    passed_gates: int = 0
    failed_gates: tuple[FailedGate, ...] = ()
    unobserved: tuple[str, ...] = ()
    """Metrics without a score because the system did not report their input."""
    unexamined: tuple[str, ...] = ()
    """Those of them whose gates apply to the case's gold, if no gate examined any of its gold."""
    is_gold_examined: bool = False
    """Whether a gate examined gold of the case."""
    has_ungated_facts: bool = False
    """Whether key facts are the only gold of the answer, and no gate examined them."""
    has_ungated_answer: bool = False
    """Whether an answer was given for which gold answers exist, and no gate compared it with them."""
    error: Problem | None = None
    metric_errors: Mapping[str, str] = field(default_factory=dict)
    """Metrics without a score because a judgement failed, and the reason."""
    reason: str | None = None
    timings: Timings = Timings()
    trial: int = 0
    attempts: int = 1
    answer: Answer | None = None
    test: str | None = None
    """Node id of a user-written test that evaluated the case; None for the case's own item."""
    by_rule: str | None = None
    """How many trials pass, in words, if a pass rule decided other than by the mean."""
    by_mean: str | None = None
    """How many trials pass, in words, if the mean of several decided."""
    confirms: int = 0
    """The number of the attempt that this trial belongs to, among those that confirm; 0 for the first attempt."""
    confirmation: Confirmation | None = None
    """What the attempts came to, if the case was asked again since it newly failed."""
    records: int | None = None
    """How many trials the case has, if these are not as many as configured."""
    rewritten: RewrittenScores | None = None
    """The scores of the case asked as its rewrite, where that was asked for."""

    @property
    def is_flaky(self) -> bool:
        """Return True if the case newly failed, and most attempts did not."""
        return self.confirmation is not None and self.confirmation.is_flaky

    @property
    def key(self) -> str:
        return self.case.key if self.test is None else f"{self.case.key}::{self.test}"


class CaseTrials(NamedTuple):
    """How many trials of a case passed and failed, out of those that were planned."""

    passed: int
    failed: int
    planned: int

    @property
    def has_passed_once(self) -> bool | None:
        """Return True if any trial passed; None if none did, and some were not asked."""
        if self.passed:
            return True
        return False if self.failed >= self.planned else None

    @property
    def has_passed_always(self) -> bool | None:
        """Return True if all trials passed; None if those that were asked did, and some were not."""
        if self.failed:
            return False
        return True if self.passed >= self.planned else None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The input of run-level metrics: counts of cases and trials, and what the system reports of its index."""

    asked: int
    failed: int
    timed_out: int
    blank: int
    coverage: Mapping[str, Json] | None = None
    overall: float | None = None
    judged: int = 0
    judge_failed: int = 0
    flaky: int = 0
    trials: tuple[CaseTrials, ...] = ()
    """Of each case that was asked several times; empty without repeats."""
    conversations: tuple[ConversationScores, ...] = ()
    independent: int = 0
    """Cases asked, with the turns of a conversation counted once."""
    follow_ups: tuple[RewrittenFollowUp, ...] = ()
    """Of each follow-up that was to be asked as its rewrite, too; empty without the option."""
