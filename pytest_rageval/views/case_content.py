"""The content of one case as every face shows it, and the context that the cases of a run share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pytest_rageval.metrics.registry import Registry
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.case_place import conversation_unit
from pytest_rageval.runs.causes import Cause
from pytest_rageval.text import score_text
from pytest_rageval.views.case_claims import CheckedClaim
from pytest_rageval.views.case_parts import ChunkRow, DraftLine, FailingGate, KeyFact
from pytest_rageval.views.case_trials import CaseComparison, TrialsView
from pytest_rageval.views.conversation import ConversationView, TurnView, conversation_view
from pytest_rageval.views.rewrite import RewriteView


class JudgementRow(NamedTuple):
    """The score and the reasoning of a judge."""

    metric: str
    score: str
    model: str
    reasoning: str | None
    is_heuristic: bool
    is_defined: bool
    """It is a metric of the run, which has a definition."""


class ScoreRow(NamedTuple):
    """A score with its arithmetic, and with the end of its scale if that is not 1."""

    metric: str
    value: str
    terms: str


@dataclass(frozen=True, slots=True)
class CaseContext:
    """The context that the views of all cases of a run share."""

    run_id: str
    config: Mapping[str, Any]
    """The content of config.json."""
    metrics: Mapping[str, Mapping[str, Any]]
    """The aggregates of metrics.json by metric."""
    registry: Registry
    names: Mapping[str, str]
    """The names of the other run's metrics in this one."""
    other: str | None = None
    """The id of the other run; None without a comparison."""
    plan: Plan | None = None
    """The plan of the run, for a view that shows each gate, and the arithmetic of cases that pass too."""
    comparison: Mapping[str, Any] | None = None
    """The content of the comparison with the other run; None without one."""
    turns: Mapping[str, Sequence[TurnView]] = field(default_factory=dict)
    """The turns of each conversation with a turn among the cases, by the conversation's key."""

    def conversation_of(self, record: Mapping[str, Any]) -> ConversationView | None:
        """Return the conversation around a turn; None for a single case."""
        turns = self.turns.get(conversation_unit(record) or "", ())
        return conversation_view(turns, record["conversation"], record["turn"]) if turns else None

    def new_gates(self, key: str) -> Sequence[str]:
        """Return the metrics of the gates that are new to a known failure, without their cut-offs."""
        new: Mapping[str, Sequence[str]] = (self.comparison or {}).get("new_gates", {})
        return new.get(key, ())

    def cause(self, record: Mapping[str, Any]) -> Cause | None:
        """Return why a case fails: what the comparison shows, as of its new gates, else that of its record."""
        new: Mapping[str, Any] = (self.comparison or {}).get("new_causes", {})
        cause = new.get(record["case_key"]) or record.get("cause")
        return Cause(**cause) if cause else None

    def value_text(self, name: str, value: float) -> str:
        """Return a score with the end of its scale if that is not 1, as `3.500 of 5`; an amount in its unit."""
        metric = self.metrics.get(name, {})
        unit = metric.get("unit")
        _, end = metric.get("scale", (0, 1))
        if unit is not None or end == 1:
            return score_text(value, unit)
        return f"{score_text(value)} of {end:g}"


@dataclass(frozen=True, slots=True)
class CaseHead:
    """What names a case, and how it ended."""

    key: str
    """The file of the case and its id, as pytest names it."""
    id: str
    place: str
    """The file and the line at which the case is written."""
    outcome: str
    """passed, failed, error, xfailed or skipped."""
    symbol: str
    """The sign of the outcome."""
    word: str
    """The outcome in words."""
    change: str
    """How the outcome differs from the other run, in words; '' if it does not."""
    facts: Sequence[str]
    """Difficulty, domain, category and tags."""
    latency: str
    """The time that the system and the judge took, with the tokens, cost and requests."""
    has_notable_operations: bool
    """More than a time is known of what asking took, or the run scores any of it."""


@dataclass(frozen=True, slots=True)
class CaseTexts:
    """What was asked, expected and answered."""

    question: str | None
    """The question; None if the run keeps no texts."""
    answerable: bool
    expected: Sequence[str]
    """The gold answers."""
    stated: Sequence[KeyFact]
    """The key facts of the gold, and which of them the answer states."""
    labels: Sequence[tuple[str, str]]
    """What the case expects, by name."""
    answer: str | None
    """The answer of the system, cut to the length that is shown; None without one."""
    no_answer: str
    """The note in place of an answer; '' if there is one, or if it was not kept."""
    is_cut: bool
    """The run kept only the beginning of the answer."""
    abstention: str
    """Whether the system abstained, in words; '' if it did not."""
    has_observation: bool
    """The run keeps the observation of the case."""


@dataclass(frozen=True, slots=True)
class CaseRetrieval:
    """What was retrieved and called."""

    k: int | None
    """The cut-off of the run."""
    chunks: Sequence[ChunkRow]
    """The retrieved chunks by rank, then the golds that were not retrieved."""
    missed: Sequence[ChunkRow]
    """The golds that were not retrieved alone."""
    no_chunks: str
    """Why there are no chunks; '' if there are some."""
    top_score: float
    """The largest score of a chunk."""
    tool_calls: Sequence[str]
    """The tool calls of the system, a line each; empty if it reports none, or if texts are left out."""
    flags: Sequence[str]
    """Remarks on how golds were matched."""


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """Why the case failed, and the gates that examined it."""

    cause: str
    """Why the case fails, in a few words; '' if it does not, and for a run whose records have no causes."""
    why: Sequence[str]
    """Why the case failed, a line each."""
    remarks: Sequence[str]
    """The reasons that are neither an error, a gate nor a gold that was not retrieved."""
    errors: Sequence[str]
    """The error of the case, and those of its metrics."""
    gates: Sequence[Mapping[str, Any]]
    """The gates that fail, as the record has them."""
    failed: Sequence[FailingGate]
    """The gates that fail, with their arithmetic."""
    gates_held: int
    """How many gates hold."""
    every_gate: Sequence[tuple[str, str, str]]
    """The gates that examined the case: gate, value, verdict; empty without a plan."""


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """The scores, and what the judge said."""

    scores: Sequence[ScoreRow]
    """The scores, each with its arithmetic."""
    skipped: Sequence[tuple[str, list[str]]]
    """The reasons why metrics do not apply, each with its metrics."""
    claims: Sequence[CheckedClaim]
    """The claims of the answer as the judge separated them."""
    judgements: Sequence[JudgementRow]
    doubts: Sequence[tuple[str, str]]
    """Doubts about the judge's replies, by rubric."""


@dataclass(frozen=True, slots=True)
class CaseView:
    """One case, by subject. Nothing in it is escaped."""

    head: CaseHead
    texts: CaseTexts
    retrieved: CaseRetrieval
    failure: CaseFailure
    figures: CaseFigures
    conversation: ConversationView | None
    """The conversation that the case is a turn of; None for a single case."""
    rewrite: RewriteView | None
    """The case asked once more as its rewrite; None if it was not."""
    trials: TrialsView | None
    """The answers of all trials; None for a single one."""
    trace: str | None
    """What the system reported of its steps, as JSON."""
    comparison: CaseComparison | None
    """The case before and after; None without another run."""
    other: str | None
    """The id of the run before."""
    rerun: str
    """The command that runs the case again; '' if no command does."""
    explain: str
    """The command that explains the case."""
    draft: DraftLine | None
    """The answer as a draft of a case; None without an answer or its text."""
