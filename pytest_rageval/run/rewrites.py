"""Follow-ups asked once more as their rewrites, without what was said before.

The answer is kept beside that of the case, in the same record. It is no trial of the case: its scores count in the
metric `rewrite_gap` alone.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from pytest_rageval.cases.conversations import as_rewrite, is_rewritten_follow_up
from pytest_rageval.http.call_limit import CallPlaces
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.metrics.assertions import is_of_assertions
from pytest_rageval.model import Dialogue, Observation, Problem, Trial
from pytest_rageval.run.ask import raised
from pytest_rageval.run.engine import ask_once, ask_request, observe_answer
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.scoring import AskFailure, Observed
from pytest_rageval.targets.target import BaseTarget


async def with_rewrite(
    trial: Trial,
    observed: Observed,
    target: BaseTarget,
    judge: BaseJudge | None,
    plan: Plan,
    places: CallPlaces | None,
    *,
    earlier: Observed | None = None,
) -> Observed:
    """Return an observation with that of the same case asked as its rewrite, if the run asks for it.

    earlier  the observation of the trial in the interrupted run, whose rewrite is not asked again
    """
    if not asks_rewrite(trial, plan) or not isinstance(observed, Observation):
        return observed
    if isinstance(earlier, Observation) and isinstance(earlier.rewritten, Observation):
        return replace(observed, rewritten=earlier.rewritten)
    case = as_rewrite(trial.case)
    dialogue = None
    if trial.case.turn is not None:
        dialogue = Dialogue(uuid.uuid4().hex, case.history or ())
    question = replace(ask_request(case, plan, trial.number, dialogue), is_rewrite=True)
    asked = await ask_once(question, target, plan, places, None)
    judged_by = judge if is_rewrite_judged(plan) else None
    try:
        rewritten = await observe_answer(
            case, asked, target, judged_by, plan.for_rewrites, trial=trial.number, places=places, dialogue=dialogue
        )
    except Exception as error:  # noqa: BLE001  a project's own judge may raise anything, which is no error of the case
        rewritten = AskFailure(Problem("exception", raised(error, plan.mask)))
    return replace(observed, rewritten=rewritten.problem if isinstance(rewritten, AskFailure) else rewritten)


def asks_rewrite(trial: Trial, plan: Plan) -> bool:
    """Return True if the run asks the case of a trial as its rewrite, too; an attempt that confirms asks nothing."""
    is_of_first_attempt = trial.number < plan.settings.repeat
    return plan.settings.rewrites and is_of_first_attempt and is_rewritten_follow_up(trial.case)


def is_rewrite_judged(plan: Plan) -> bool:
    """Return True if a gap is measured of a metric that a judge scores, or may score."""
    has_assertions = any(is_of_assertions(measure.metric) for measure in plan.compared_with_rewrites)
    return has_assertions or bool(plan.for_rewrites.rubrics)
