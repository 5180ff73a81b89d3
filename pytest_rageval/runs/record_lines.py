"""An evaluation as lines of results.jsonl: with the outcome that it ended with, or as the error that it cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from pytest_rageval.engine import Evaluation
from pytest_rageval.io.sealed_lines import sealed_line
from pytest_rageval.model import CaseResult, EvalCase, Outcome, Problem
from pytest_rageval.plan import Plan
from pytest_rageval.runs.records import result_record
from pytest_rageval.text import printable

UNWRITABLE = (ValueError, TypeError, RecursionError)
"""What `record_lines` raises where a result has no form as JSON."""


def ended(evaluation: Evaluation, outcome: Outcome, reason: str | None) -> Evaluation:
    """The evaluation with the outcome of its case: that of all trials together is that of each."""
    trials = tuple(_ended(result, outcome, reason) for result in evaluation.trials)
    is_single = len(trials) == 1 and evaluation.trials[0] is evaluation.overall
    return Evaluation(trials[0] if is_single else _ended(evaluation.overall, outcome, reason), trials)


def _ended(result: CaseResult, outcome: Outcome, reason: str | None) -> CaseResult:
    if (result.outcome, result.reason) == (outcome, reason):
        return result
    return replace(result, outcome=outcome, reason=reason)


class RecordLine(NamedTuple):
    """A line of results.jsonl, and what it says: nobody in the process that wrote it need read it."""

    data: bytes
    record: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The line as it travels between processes."""
        return self.data.decode()


def record_lines(evaluation: Evaluation, plan: Plan, config_hash: str) -> list[RecordLine]:
    """A line a trial, without credentials; one of UNWRITABLE where there is none."""
    records = [
        plan.mask.value(result_record(result, plan, config_hash, evaluation.overall)) for result in evaluation.trials
    ]
    return [RecordLine(sealed_line(record), record) for record in records]


def unwritable(evaluation: Evaluation, error: Exception) -> Evaluation:
    """The evaluation as the error that its result cannot be written, without what could have made it so."""
    message = printable(f"{evaluation.overall.key}: its result cannot be written as JSON: {error}")
    case = evaluation.overall.case
    bare_case = EvalCase(printable(case.id), printable(case.question), source=case.source)
    bare = CaseResult(bare_case, "error", error=Problem("record", message))
    return Evaluation(bare, tuple(replace(bare, trial=result.trial) for result in evaluation.trials))
