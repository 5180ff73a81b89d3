"""The records of an evaluated case, with the outcome that it is given."""

from __future__ import annotations

from dataclasses import replace

from pytest_rageval.model import CaseResult, EvalCase, Outcome, Problem
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.scoring import Evaluation
from pytest_rageval.runs.records.result_line import RecordLine, record_lines
from pytest_rageval.text import printable

UNWRITABLE = (ValueError, TypeError, RecursionError)
"""Exceptions of `record_lines` for a result that JSON cannot hold."""


def with_outcome(evaluation: Evaluation, outcome: Outcome, reason: str | None) -> Evaluation:
    """Set the outcome of the case; the outcome of all trials together is that of each."""
    results = (evaluation.overall, *evaluation.trials)
    if all((result.outcome, result.reason) == (outcome, reason) for result in results):
        return evaluation
    overall, *trials = (replace(result, outcome=outcome, reason=reason) for result in results)
    return Evaluation(overall, tuple(trials))


def with_records(evaluation: Evaluation, plan: Plan, config_hash: str) -> tuple[Evaluation, list[RecordLine]]:
    """Return the evaluation with its records; one that JSON cannot hold becomes an error."""
    try:
        return evaluation, record_lines(evaluation, plan, config_hash)
    except UNWRITABLE as error:
        bare = _unwritable(evaluation, error)
        return bare, record_lines(bare, plan, config_hash)


def _unwritable(evaluation: Evaluation, error: Exception) -> Evaluation:
    """Replace the evaluation by the error that JSON cannot hold it, without its values."""
    message = printable(f"{evaluation.overall.key}: its result cannot be written as JSON: {error}")
    case = evaluation.overall.case
    bare_case = EvalCase(printable(case.id), printable(case.question), source=case.source)
    bare = CaseResult(bare_case, "error", error=Problem("record", message))
    return Evaluation(bare, tuple(replace(bare, trial=result.trial) for result in evaluation.trials))
