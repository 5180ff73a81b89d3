"""Results of cases: scores, passed and failed gates, outcome, error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pytest_rageval.model.answer import Answer
from pytest_rageval.model.case import EvalCase, Json
from pytest_rageval.model.judgement import Problem
from pytest_rageval.model.observation import Observation, Timings


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value for one observation, with details for readers."""

    value: float
    detail: Mapping[str, Json] = field(default_factory=dict)


class NotApplicable(NamedTuple):
    """The reason why a metric has no value. Never averaged, never shown as a number.

    `is_unobserved`: it would have a value, had the system reported its input.
    """

    reason: str
    is_unobserved: bool = False

    def __repr__(self) -> str:
        return f"NotApplicable(reason={self.reason!r})"


Outcome = Literal["passed", "failed", "error", "skipped", "xfailed"]


class GateFailed(NamedTuple):
    """A gate that fails for one case."""

    metric: str
    value: float
    threshold: str
    tag: str | None = None

    def __str__(self) -> str:
        return f"{self.metric} is {self.value:.4g}, gate {self.threshold}" + (f" ({self.tag})" if self.tag else "")


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
    failed_gates: tuple[GateFailed, ...] = ()
    unobserved: tuple[str, ...] = ()
    """Metrics without a score because the system did not report their input."""
    unexamined: tuple[str, ...] = ()
    """Those of them whose gates apply to the case's gold, if no gate examined any of its gold."""
    is_gold_examined: bool = False
    """Whether a gate examined gold of the case."""
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

    @property
    def key(self) -> str:
        return self.case.key if self.test is None else f"{self.case.key}::{self.test}"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The input of run-level metrics: counts of cases, and what the system reports of its index."""

    asked: int
    failed: int
    timed_out: int
    blank: int
    coverage: Mapping[str, Json] | None = None
    overall: float | None = None
    judged: int = 0
    judge_failed: int = 0
