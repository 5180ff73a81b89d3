"""Rows: the small part of each record that aggregation and comparison need, in memory for the whole run."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import attrgetter
from sys import intern
from typing import Any, TypeVar

from pytest_rageval.gates.verdict import over_trials
from pytest_rageval.model import NOTHING, Confirmation, RewrittenFollowUp
from pytest_rageval.model.case_fields import DESCRIPTIVE_FIELDS, descriptions_in
from pytest_rageval.runs.case_place import case_id
from pytest_rageval.runs.causes import Cause, recorded_causes
from pytest_rageval.runs.records.attempt_fields import confirmation_in
from pytest_rageval.runs.records.line_form import REPEATS_CREDENTIAL
from pytest_rageval.runs.rewritten_follow_ups import follow_up_of, over_trials_of_follow_up

ASK_FAILED = frozenset(
    {
        "timeout",
        "connect",
        "reset",
        "http_4xx",
        "http_5xx",
        "rate_limited",
        "too_large",
        "invalid_json",
        "invalid_response",
        "empty",
        "missing",
        "exception",
        "no_answer",
    }
)
"""Kinds of error after which the system under test has given no usable answer."""


LEGACY = {
    "recall_any": "recall_at_k",
    "recall_all": "recall_all_at_k",
    "precision": "precision_at_k",
    "mrr": "mrr",
    "scope_miss": "scope_miss",
    "attribution_hit": "attribution_hit",
}
"""Flat names that other tools read, for the metrics at the configured cut-off."""


def legacy_names(scores: Mapping[str, Any], k: int) -> dict[str, Any]:
    """Return the values of `scores` by their flat legacy names; null for those without a value."""
    return {legacy: scores.get(at_k, scores.get(name)) for name, at_k, legacy in _legacy_at(k)}


@lru_cache
def _legacy_at(k: int) -> list[tuple[str, str, str]]:
    return [(name, f"{name}@{k}", legacy) for name, legacy in LEGACY.items()]


Hashed = TypeVar("Hashed", bound=Hashable)
OrNone = TypeVar("OrNone", bound=Mapping[str, Any] | None)
IS_BAD = frozenset({"failed", "xfailed"})
"""Outcomes of cases with a failed gate, known failures included."""


@dataclass(slots=True)
class Row:
    """One case and trial. Rows are sorted by key and trial, so that no result depends on the order of writing.

    Not frozen, since that would add a fifth to the time of making one.
    """

    key: str
    trial: int
    outcome: str
    content_hash: str
    groups: Mapping[str, tuple[str, ...]]
    """The values of this case by breakdown (a descriptive field, 'tag', 'answerable') and by the other conditions of
    gates ('requires_kg', 'gold', 'groups', 'answer')."""
    scores: Mapping[str, float]
    not_applicable: frozenset[str]
    failed: tuple[tuple[str, str], ...]
    """Failed gates as (metric, tag)."""
    gates_examined: int
    trial_passed: bool
    """Whether this trial alone passes its gates; the outcome is over all trials of the case."""
    error_kind: str | None
    message: str | None
    is_blank: bool
    latency: Mapping[str, float]
    """Milliseconds by measured phase, and the number of `requests`."""
    cost: Mapping[str, Any]
    judge: Mapping[str, Any] | None
    decision_hash: str | None = None
    """The hash of question, gold and gates; None in older records."""
    metric_errors: frozenset[str] = frozenset()
    """Metrics without a score because a judgement failed."""
    has_ungated_gold: bool = False
    """Whether the case has gold that no gate examined."""
    has_ungated_facts: bool = False
    """Whether key facts are the only gold of the answer, and no gate examined them."""
    has_ungated_answer: bool = False
    """Whether the case has a gold answer, and no gate compared the answer with it."""
    unexamined: tuple[str, ...] = ()
    """The metrics of gates that could not examine the gold, since the system reports nothing to compare with it."""
    attempts: int = 1
    """How often the case was asked until it had this outcome, where a plugin runs tests again."""
    doubts: Mapping[str, int] = field(default_factory=dict)
    """The golds that are matched in doubt only, by the kind of doubt."""
    cause: Cause | None = None
    """Why the case fails; None if it does not, and in older records."""
    causes_of_gates: Mapping[str, Cause] = field(default_factory=dict)
    """Why each failed gate fails by itself, by its metric without the cut-off."""
    is_undecided: bool = False
    """Whether the wording leaves open if the system abstained."""
    conversation: str | None = None
    """The key of the conversation that it is a turn of, `file::id`; None for a single case."""
    turn: int | None = None
    is_small_talk: bool = False
    """Whether it needs no gate: thanks, a greeting."""
    broken_at: int | None = None
    """The turn that broke the conversation, if this one was not asked for that."""
    operations: Mapping[str, float] = field(default_factory=dict)
    """What asking took, by the names of the metrics of operations; those that are not known are left out."""
    untrained_language: str | None = None
    """The language of an answer whose wording was read without training in it."""
    confirms: int = 0
    """The number of the attempt among those that confirm a new failure; 0 for the first attempt."""
    records: int | None = None
    """How many records the case has, if these are not as many as its trials were to be."""
    confirmation: Confirmation | None = None
    """What the attempts came to, if the case newly failed."""
    follow_up: RewrittenFollowUp | None = None
    """Its scores asked as its rewrite beside those in conversation, where that was asked for."""
    repeats_credential: bool = False
    """Whether a credential was masked in the answer."""
    is_own_test: bool = False
    """Whether a test of the project's own evaluated the case, whose node id follows the case in the key."""

    @property
    def is_bad(self) -> bool:
        """Return True if a gate failed, known failures included."""
        return self.outcome in IS_BAD

    @property
    def lacks_gate(self) -> bool:
        """Return True if no gate examined the case though one should."""
        return self.gates_examined == 0 and self.outcome != "error" and not self.is_small_talk

    @property
    def is_flaky(self) -> bool:
        """Return True if the case passed, though an attempt at it did not; or if that is so of some of its gates."""
        if self.confirmation is not None and self.confirmation.spared:
            return True
        return self.outcome == "passed" and (self.confirmation is not None or self.attempts > 1)

    @classmethod
    def of(cls, record: Mapping[str, Any], shared: SharedParts | None = None) -> Row:
        """Return the row of one line of results.jsonl. `shared`: the values shared by all rows in memory."""
        shared = shared or SharedParts()
        error = record["error"] or {}
        abstained = record["abstention"] or {}
        verdict = record["verdict"]
        failed = tuple((gate["metric"], gate["tag"] or gate["metric"]) for gate in verdict["failed_gates"])
        scores = {intern(name): score for name, score in record["scores"].items()}
        latency = {name: number for name, number in record["latency"].items() if number is not None}
        if record.get("requests") is not None:
            latency["requests"] = record["requests"]
        not_applicable = frozenset(record["skipped_metrics"])
        gates_examined = verdict["gates_held"] + len(failed)
        # Records from before cases could be repeated lack it.
        trial_passed = verdict.get("trial_passed", verdict["passed"])
        message = error.get("message") or record["reason"]
        is_blank = abstained.get("decided_by") == "empty answer"
        is_own_test = case_id(record["case_key"]) != record["test_case_id"]
        row = cls(
            key=record["case_key"],
            trial=record["trial"],
            outcome=intern(record["outcome"]),
            content_hash=record["content_hash"],
            groups=shared.groups(record),
            scores=scores,
            not_applicable=shared.value(not_applicable),
            failed=shared.value(failed),
            gates_examined=gates_examined,
            trial_passed=trial_passed,
            error_kind=error.get("kind"),
            message=message,
            is_blank=is_blank,
            latency=latency,
            cost=shared.mapping("cost", record["cost"]),
            judge=shared.mapping("judge", record["judge"]),
            is_own_test=is_own_test,
        )
        row._add_later_fields(record, shared)
        return row

    def _add_later_fields(self, record: Mapping[str, Any], shared: SharedParts) -> None:
        """Add the fields that records of older runs lack."""
        verdict = record["verdict"]
        abstained = record["abstention"] or {}
        self.decision_hash = record.get("decision_hash")
        self.operations = record.get("operations") or NOTHING
        self.metric_errors = shared.value(frozenset(record.get("metric_errors", ())))
        self.has_ungated_gold = verdict.get("gold_examined") is False
        self.has_ungated_facts = verdict.get("facts_examined") is False
        self.has_ungated_answer = verdict.get("answer_compared") is False
        self.unexamined = shared.value(tuple(verdict.get("unexamined", ())))
        self.attempts = record.get("attempts", 1)
        self.doubts = record.get("doubt") or NOTHING
        if record.get("cause"):
            self.cause = Cause(**record["cause"])
        self.causes_of_gates = recorded_causes(record)
        self.is_undecided = abstained.get("undecided", False)
        self.untrained_language = abstained.get("untrained_language")
        self.conversation = _conversation_of(record)
        self.turn = record.get("turn")
        self.is_small_talk = record.get("conversational", False)
        self.broken_at = (record["error"] or {}).get("turn")
        self.confirms = record.get("confirms", 0)
        self.records = record.get("records")
        self.confirmation = confirmation_in(verdict)
        self.repeats_credential = record.get(REPEATS_CREDENTIAL, False)
        self.follow_up = follow_up_of(record, self.conversation or self.key)


def _conversation_of(record: Mapping[str, Any]) -> str | None:
    if record.get("turn") is None:
        return None
    # Without the number of the turn; behind it stands the test of the project's own that evaluated it, if any.
    file, _, _ = str(record["case_key"]).partition("::")
    return intern(f"{file}::{record['conversation']}")


class SharedParts:
    """The values that rows in memory share: most cases are in few groups and cost the same.

    Without sharing, each row read from JSON has its own copies, names included: 2.7 of 3.4 kB.
    """

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}
        self._latest: dict[str, Mapping[str, Any]] = {}

    def value(self, value: Hashed) -> Hashed:
        """Return the first value that equals this one."""
        shared: Hashed = self._values.setdefault(value, value)
        return shared

    def groups(self, record: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
        """Return the breakdowns of a record; records with equal labels share one mapping."""
        labels = (
            descriptions_in(record),
            tuple(record["tags"]),
            record["answerable"],
            record.get("requires_kg"),
            record.get("gold"),
            record.get("has_groups"),
            tuple(record.get("gold_answer", ("none",))),
        )
        if labels not in self._values:
            self._values[labels] = _groups(*labels)
        shared: Mapping[str, tuple[str, ...]] = self._values[labels]
        return shared

    def mapping(self, name: str, mapping: OrNone) -> OrNone:
        """Return the latest mapping of that name if it equals this one; older mappings are not searched."""
        if mapping is None:
            return mapping
        # Mappings have no hash: comparing with one of them costs less than making a key of all its items.
        latest: Any = self._latest.get(name)
        if latest == mapping:
            shared: OrNone = latest
            return shared
        self._latest[name] = mapping
        return mapping


def _groups(
    descriptions: tuple[str | None, ...],
    tags: tuple[str, ...],
    answerable: bool,
    requires_kg: bool | None,
    gold: str | None,
    has_groups: bool | None,
    answer: tuple[str, ...],
) -> Mapping[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    for described, text in zip(DESCRIPTIVE_FIELDS, descriptions, strict=True):
        value = text or described.absent
        groups[described.name] = (value,) if value else ()
    groups["tag"] = tuple(dict.fromkeys(tags))
    groups["answerable"] = ("answerable" if answerable else "unanswerable",)
    groups["requires_kg"] = ("true" if requires_kg else "false",)
    groups["gold"] = (gold or "none",)
    groups["groups"] = ("true" if has_groups else "false",)
    groups["answer"] = answer
    return groups


@dataclass(frozen=True, slots=True)
class CaseScores:
    """The outcome and scores of one case in a stored run or a baseline (which stores no kind of error)."""

    content_hash: str
    outcome: str
    scores: Mapping[str, float]
    error_kind: str | None = None
    decision_hash: str | None = None
    """None in a baseline or table without it."""
    conversation: str | None = None
    """The key of the conversation that it is a turn of; None for a single case."""

    @property
    def is_bad(self) -> bool:
        return self.outcome in IS_BAD


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return the rows by case key and trial, with only the last row of a trial recorded twice (a retried case)."""
    # Sorting is stable, so the last record of a trial comes last; it is linear if the rows are in order already.
    ascending = sorted(rows, key=_PLACE)
    following = chain(map(_PLACE, islice(ascending, 1, None)), [None])
    return [row for row, place in zip(ascending, following, strict=False) if _PLACE(row) != place]


def cases_of(rows: Iterable[Row]) -> list[Row]:
    """Return one row per case: that of its only trial, or one with the mean of each score over its trials.

    A case with a trial that ended in an error has that error. Attempts that confirm a new failure do not count: they
    have decided the outcome, and move no mean.
    """
    return [_over(list(trials)) for _, trials in groupby(in_order(rows), attrgetter("key"))]


def first_attempts(rows: Iterable[Row]) -> list[Row]:
    """Return the rows without those of attempts that confirm a new failure."""
    return [row for row in rows if not row.confirms]


def flagged(rows: Iterable[Row], why: str = "flags") -> list[str]:
    """Return the keys of the cases with doubtful judgements, or with `failed` ones."""
    return sorted({row.key for row in rows if row.judge and row.judge.get(why)})


_PLACE = attrgetter("key", "trial")


def _over(trials: list[Row]) -> Row:
    if len(trials) > 1:
        trials = first_attempts(trials)
    if len(trials) == 1:
        return trials[0]
    stands, scores = over_trials(trials, lambda row: row.error_kind is not None)
    if stands.error_kind is not None:
        return stands
    metric_errors = frozenset[str]().union(*(row.metric_errors for row in trials))
    not_applicable = frozenset().union(*(row.not_applicable for row in trials)).difference(scores, metric_errors)
    failing = next((row.judge for row in trials if row.judge and row.judge.get("failed")), stands.judge)
    failed_trial = next((row for row in trials if not row.trial_passed), stands)
    return replace(
        stands,
        scores=scores,
        # A trial that passes has no cause of its own: its record names that of the case by what it sees itself.
        cause=failed_trial.cause,
        causes_of_gates=failed_trial.causes_of_gates,
        not_applicable=not_applicable,
        metric_errors=metric_errors,
        judge=failing,
        is_blank=all(row.is_blank for row in trials),
        is_undecided=any(row.is_undecided for row in trials),
        follow_up=over_trials_of_follow_up(row.follow_up for row in trials),
    )
