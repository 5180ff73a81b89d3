"""The attempts at a case of a stored run, decided again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.outcomes import Ending, NewFailure, ending, ending_from_records, new_failure
from pytest_rageval.model import CaseResult
from pytest_rageval.run.attempts import confirmed, with_number_of_records
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.scoring import Evaluation, overall_result
from pytest_rageval.runs.decision_hash import asked_part


def decided_again(
    results: Sequence[CaseResult], records: Sequence[Mapping[str, Any]], plan: Plan, baseline: Side | None
) -> Evaluation:
    """Decide a case by its scored trials, in the order of their numbers: by all attempts where the first one fails.

    Whether the case newly failed was decided by the run: only then has it other attempts.
    """
    attempts: list[Evaluation] = []
    for _, trials in groupby(results, attrgetter("confirms")):
        of_attempt = tuple(trials)
        attempts.append(Evaluation(overall_result(of_attempt, plan), of_attempt))
    first = attempts[0]
    evaluation = first
    is_failing = ending_from_records(first.overall, records, plan, baseline).outcome == "failed"
    was_confirmed = records[0]["verdict"].get("confirmation") is not None
    if was_confirmed and is_failing and first.overall.failed_gates:
        asked = asked_part(records[0].get("decision_hash"))

        def end_of(result: CaseResult) -> Ending:
            return ending(result, plan, baseline, asked)

        def failure_of(result: CaseResult) -> NewFailure | None:
            return new_failure(result, plan, baseline, asked)

        # By other gates, or another baseline, it may fail nothing that is new: then all of its gates are confirmed.
        failure = failure_of(first.overall) or NewFailure(frozenset(), is_known=False)
        evaluation = confirmed(attempts, failure, end_of, failure_of)
    return with_number_of_records(Evaluation(evaluation.overall, tuple(results)), plan)
