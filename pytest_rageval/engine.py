"""One case, from question to result: ask, observe, score, gate."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from pytest_rageval.errors import JudgeError, TargetError
from pytest_rageval.gates import check
from pytest_rageval.judges import requests_for
from pytest_rageval.judges.base import Judge
from pytest_rageval.matching import observe
from pytest_rageval.model import (
    NOTHING,
    Answer,
    AskRequest,
    CaseResult,
    EvalCase,
    Judgement,
    NotApplicable,
    Observation,
    Outcome,
    Problem,
    Score,
    Timings,
)
from pytest_rageval.plan import Plan
from pytest_rageval.targets.base import Target


@dataclass(frozen=True, slots=True)
class Unobserved:
    """Asking or judging failed: no scores, and the case is an error. `answer` is what came before judging failed."""

    problem: Problem
    timings: Timings = Timings()
    answer: Answer | None = None


Observed = Observation | Unobserved


async def evaluate(
    case: EvalCase, target: Target, judge: Judge | None, plan: Plan, *, submitted: float | None = None, trial: int = 0
) -> Observed:
    """Ask and judge one case. Failures of the system, the judge or the network are values, not exceptions."""
    started = time.perf_counter()
    timings = Timings(queue_ms=_ms(submitted, started) if submitted is not None else None)
    is_called = getattr(target, "is_called", True)
    question = ask_request(case, plan, trial)
    try:
        answer = await target.ask(question)
    except TargetError as error:
        spent = _ms(started) if is_called else None
        return Unobserved(Problem(error.kind, str(error)), replace(timings, ask_ms=spent))
    if is_called:
        timings = replace(timings, ask_ms=_ms(started))
    judgements: dict[str, Judgement] = {}
    if judge is not None and plan.rubrics:
        judging = time.perf_counter()
        asked = [rubric for rubric in plan.rubrics if rubric in judge.rubrics]
        try:
            for request in requests_for(case, answer, asked, plan.settings.k, trial):
                judgements[request.rubric] = await judge.judge(request)
        except JudgeError as error:
            spent = _ms(judging)
            return Unobserved(
                Problem(f"judge_{error.kind}", str(error), error.raw), replace(timings, judge_ms=spent), answer
            )
        timings = replace(timings, judge_ms=_ms(judging))
    return observe(
        case,
        answer,
        k=plan.settings.k,
        asked_k=plan.asked_k if is_called else None,
        judgements=judgements,
        timings=timings,
        trial=trial,
        gold_by=plan.settings.gold_by,
        params=question.params if is_called else NOTHING,
    )


def ask_request(case: EvalCase, plan: Plan, trial: int = 0) -> AskRequest:
    """What the system is asked: the case's question and scope, and what the user set."""
    return AskRequest(
        question=case.question,
        k=plan.asked_k,
        history=case.history,
        vaults=case.vaults,
        folders=case.folders,
        contexts=case.contexts,
        params=plan.settings.ask_params,
        case_key=case.key,
        trial=trial,
    )


def score_case(case: EvalCase, observed: Observed, plan: Plan) -> CaseResult:
    """Score an observation by every measure and gate it. Pure."""
    if isinstance(observed, Unobserved):
        return CaseResult(case, "error", error=observed.problem, timings=observed.timings, answer=observed.answer)
    scores, details, skipped, broken = {}, {}, {}, []
    for measure in plan.measures:
        try:
            scored = measure.score(observed)
        # A metric may be the user's own code, and whatever it raises is a record of this case, not a crash of the run.
        except Exception as error:  # noqa: BLE001 because of the line above
            broken.append(f"metric {measure.name} raised {type(error).__name__}: {error}")
            continue
        if isinstance(scored, NotApplicable):
            skipped[measure.name] = scored.reason
        elif isinstance(scored, Score):
            scores[measure.name] = scored.value
            if scored.detail:
                details[measure.name] = scored.detail
        else:
            scores[measure.name] = scored
    held, failed = check(plan.case_gates, observed, scores)
    problem = Problem("metric", "; ".join(broken)) if broken else None
    outcome: Outcome = "error" if broken else "failed" if failed else "passed" if scores else "skipped"
    return CaseResult(
        case,
        outcome,
        observation=observed,
        scores=scores,
        details=details,
        skipped_metrics=skipped,
        passed_gates=held,
        failed_gates=failed,
        error=problem,
        reason="nothing in it could be scored: " + "; ".join(sorted(set(skipped.values()))) if not scores else None,
        timings=observed.timings,
        trial=observed.trial,
    )


def _ms(since: float, until: float | None = None) -> float:
    return round(((time.perf_counter() if until is None else until) - since) * 1000, 3)
