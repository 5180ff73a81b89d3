"""An evaluation as lines of results.jsonl: with the outcome that it ended with, or as the error that it cannot be."""

from __future__ import annotations

from dataclasses import replace

from pytest_rageval.engine import Evaluation
from pytest_rageval.model import CaseResult, EvalCase, Outcome, Problem
from pytest_rageval.plan import Plan
from pytest_rageval.runs.records import result_record, to_line
from pytest_rageval.text import printable

UNWRITABLE = (ValueError, TypeError, RecursionError)
"""What `record_lines` raises where a result has no form as JSON."""


def ended(evaluation: Evaluation, outcome: Outcome, reason: str | None) -> Evaluation:
    """The evaluation with the outcome of its case: that of all trials together is that of each."""
    results = (evaluation.overall, *evaluation.trials)
    overall, *trials = (replace(result, outcome=outcome, reason=reason) for result in results)
    return Evaluation(overall, tuple(trials))


def record_lines(evaluation: Evaluation, plan: Plan, config_hash: str) -> list[str]:
    """A line a trial, without credentials; one of UNWRITABLE where there is none."""
    return [
        to_line(plan.mask.value(result_record(result, plan, config_hash, evaluation.overall)))
        for result in evaluation.trials
    ]


def unwritable(evaluation: Evaluation, error: Exception) -> Evaluation:
    """The evaluation as the error that its result cannot be written, without what could have made it so."""
    message = printable(f"{evaluation.overall.key}: its result cannot be written as JSON: {error}")
    case = evaluation.overall.case
    bare_case = EvalCase(printable(case.id), printable(case.question), source=case.source)
    bare = CaseResult(bare_case, "error", error=Problem("record", message))
    return Evaluation(bare, tuple(replace(bare, trial=result.trial) for result in evaluation.trials))
