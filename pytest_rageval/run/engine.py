"""One case, from question to result: ask, observe, score, gate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pytest_rageval.abstention.own_words import own_words
from pytest_rageval.errors import JudgeError, OddScoreError, ends_the_run, message_of
from pytest_rageval.gates.verdict import GatedTrial, MeasuredTrial, ending_by_gates, gate_verdict, over_trials
from pytest_rageval.http.call_limit import CallPlaces, in_places
from pytest_rageval.http.call_tally import CallTally, call_clock, tallied
from pytest_rageval.io.masking import Mask
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.judges.judging import judge_answer
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.registry import GENERATED, Scored
from pytest_rageval.model import (
    NOTHING,
    Answer,
    AskRequest,
    CaseResult,
    EvalCase,
    FailedJudgement,
    Json,
    Judgement,
    NotApplicable,
    Observation,
    Problem,
    Score,
    Timings,
    Trial,
)
from pytest_rageval.run.ask import LONGEST_MESSAGE, ask_system, problem_of, raised
from pytest_rageval.run.plan import Plan
from pytest_rageval.targets.target import BaseTarget
from pytest_rageval.text import excerpt


@dataclass(frozen=True, slots=True)
class AskFailure:
    """A failure to ask, or of user code: no scores, and the case is an error. `answer` is what was received before."""

    problem: Problem
    timings: Timings = Timings()
    answer: Answer | None = None


Observed = Observation | AskFailure
OnError = Callable[[JudgeError], Problem]


def are_at_once(target: BaseTarget, judge: BaseJudge | None) -> bool:
    """Return True if neither ever waits: then a case can be observed on demand, without a loop."""
    return target.answers_at_once and (judge is None or judge.answers_at_once)


def observe_at_once(
    case: EvalCase, target: BaseTarget, judge: BaseJudge | None, plan: Plan, *, submitted: float, trial: int
) -> Observed:
    """Ask and judge one case on this thread, with a target and a judge that never wait."""
    observing = observe_case(case, target, judge, plan, submitted=submitted, trial=trial)
    try:
        observing.send(None)
    except StopIteration as end:
        observed: Observed = end.value
        return observed
    observing.close()
    raise RuntimeError("`answers_at_once` is said of a target or judge that waits; take the attribute away")


async def observe_case(
    case: EvalCase,
    target: BaseTarget,
    judge: BaseJudge | None,
    plan: Plan,
    *,
    submitted: float | None = None,
    trial: int = 0,
    places: CallPlaces | None = None,
) -> Observed:
    """Ask and judge one case. Failures of the system, the judge or the network are values, not exceptions.

    submitted  when it was queued, on the clock of time.perf_counter
    places     of the calls in flight, shared with other cases; None: without such a limit
    """
    question = ask_request(case, plan, trial)
    ask = _asked_at_once if target.answers_at_once else _asked
    asked = await ask(target, question, plan, places, submitted)
    if isinstance(asked, AskFailure):
        return asked
    if judge is not None and plan.rubrics:
        asked = await _judged(judge, case, asked, plan, trial, places)
    settings = plan.settings
    has_called = target.is_called
    return observe(
        case,
        asked.answer,
        k=settings.k,
        asked_k=plan.asked_k if has_called else None,
        judgements=asked.judgements,
        timings=asked.timings,
        trial=trial,
        gold_by=settings.gold_by,
        params=question.params if has_called else NOTHING,
        refusals=settings.abstention.phrases,
        rules=plan.place_rules,
    )


class _TimedAnswer(NamedTuple):
    """An answer, its time so far, and its judgements."""

    answer: Answer
    timings: Timings
    judgements: Mapping[str, Judgement] = NOTHING


async def _asked_at_once(
    target: BaseTarget, question: AskRequest, plan: Plan, _places: CallPlaces | None, submitted: float | None
) -> _TimedAnswer | AskFailure:
    """Ask a target that never waits: without a place and a time limit."""
    queue_ms = None if submitted is None else _ms(submitted)
    started = time.perf_counter()
    answer = await ask_system(target, question, plan.mask)
    # An answer that calls nothing has no time of its own.
    timings = Timings(queue_ms, _ms(started) if target.is_called else None)
    if isinstance(answer, Problem):
        return AskFailure(answer, timings)
    return _TimedAnswer(_fit(answer, plan), timings)


async def _asked(
    target: BaseTarget, question: AskRequest, plan: Plan, places: CallPlaces | None, submitted: float | None
) -> _TimedAnswer | AskFailure:
    """Ask within the call's time limit, which does not run while a request waits for its turn."""
    queue_ms = _ms(submitted) if submitted is not None else None
    started = time.perf_counter()
    limit = asyncio.timeout(plan.settings.longest_call)

    with in_places(places), tallied() as tally:
        answer = await ask_system(
            target, question, plan.mask, limit, plan.settings.longest_call_in_words, in_turns=plan.settings
        )
    timings = _ask_timings(queue_ms, _ms(started), tally) if target.is_called else Timings(queue_ms)
    if isinstance(answer, Problem):
        return AskFailure(answer, timings)
    if places is not None:
        await asyncio.sleep(0)  # the next call that waits for the place is sent before we compute
    return _TimedAnswer(_fit(answer, plan), timings)


def _ask_timings(queue_ms: float | None, taken_ms: float, tally: CallTally) -> Timings:
    """Return the time of the answered request, apart from the waits before it."""
    if queue_ms is not None:
        queue_ms = round(queue_ms + tally.queued_ms, 3)
    ask_ms = round(max(0.0, taken_ms - tally.queued_ms - tally.retry_wait_ms), 3)
    if not tally.requests and not tally.retry_wait_ms:
        return Timings(queue_ms, ask_ms)
    return Timings(queue_ms, ask_ms, None, round(tally.retry_wait_ms, 3), tally.requests or None)


def _fit(answer: Answer, plan: Plan) -> Answer:
    """For retrieval alone, drop a blank text beside chunks: it neither answers nor abstains."""
    if not plan.settings.retrieval_only or answer.text is None or answer.chunks is None:
        return answer
    return answer if answer.text.strip() or answer.abstained is not None else replace(answer, text=None)


async def _judged(
    judge: BaseJudge, case: EvalCase, asked: _TimedAnswer, plan: Plan, trial: int, places: CallPlaces | None
) -> _TimedAnswer:
    takes_place = places is not None and not judge.answers_at_once and not judge.takes_turns
    async with places.place() if takes_place and places is not None else nullcontext():
        started = time.perf_counter()
        with nullcontext() if takes_place else in_places(places), call_clock() as clock:

            def on_error(error: JudgeError) -> Problem:
                return problem_of(f"judge_{error.kind}", error, plan.mask)

            judgements = await judgements_of(judge, case, asked.answer, plan, trial, on_error)
        judge_ms = round(max(0.0, _ms(started) - 1000 * clock.waited_s), 3)
    if places is not None and not judge.answers_at_once:
        await asyncio.sleep(0)  # the next call that waits for the place is sent before we compute
    return _TimedAnswer(asked.answer, replace(asked.timings, judge_ms=judge_ms), judgements)


async def judgements_of(
    judge: BaseJudge, case: EvalCase, answer: Answer, plan: Plan, trial: int = 0, on_error: OnError | None = None
) -> dict[str, Judgement]:
    """Return the judgements of one answer by rubric, as a run of this plan does; `on_error` as for `judge_answer`."""
    settings = plan.settings
    return await judge_answer(
        judge,
        case,
        answer,
        plan.rubrics,
        settings.k,
        wordings=plan.wordings,
        repeats=settings.judge_repeats,
        is_near=plan.is_near_gate,
        phrases=settings.abstention.phrases,
        trial=trial,
        on_error=on_error,
    )


def failed_metric(name: str, error: BaseException, mask: Mask) -> str:
    """Return in one line why a metric gave no score: it raised something, or what it returned is none."""
    if isinstance(error, OddScoreError):
        return f"metric {excerpt(mask.text(message_of(error)), LONGEST_MESSAGE)}"
    return f"metric {name} raised {raised(error, mask)}"


def ask_request(case: EvalCase, plan: Plan, trial: int = 0) -> AskRequest:
    """Return the request for the system: the case's question and scope, and the configured parameters."""
    return AskRequest(
        question=case.question,
        k=plan.asked_k,
        history=case.history,
        vaults=case.vaults,
        folders=case.folders,
        contexts=case.contexts,
        params=plan.ask_params,
        case_key=case.key,
        trial=trial,
    )


def score_case(case: EvalCase, observed: Observed, plan: Plan, stored: Mapping[str, Scored] = NOTHING) -> CaseResult:
    """Score an observation by every measure and gate it, as the only trial of its case. Pure.

    `stored`: what some measures gave before, which are not asked again.
    """
    if isinstance(observed, AskFailure):
        return CaseResult(case, "error", error=observed.problem, timings=observed.timings, answer=observed.answer)
    if (missing := _missing_answer(observed, plan)) is not None:
        return CaseResult(case, "error", observation=observed, error=missing, timings=observed.timings)
    measured = _measured(observed, plan, stored)
    if measured.failed and (problem := _gated_failure(observed, measured.failed, plan)) is not None:
        return CaseResult(case, "error", observation=observed, error=problem, timings=observed.timings)
    return CaseResult(
        case,
        observation=observed,
        scores=measured.scores,
        details=measured.details,
        skipped_metrics=measured.skipped_metrics,
        unobserved=measured.unobserved,
        error=measured.error,
        metric_errors=measured.metric_errors,
        timings=observed.timings,
        trial=observed.trial,
        **_decided(measured, [(observed, measured)], plan),
    )


def _decided(case: MeasuredTrial, trials: Sequence[tuple[Observation, MeasuredTrial]], plan: Plan) -> dict[str, Any]:
    """Gate a case, or one trial as its only one; return the result's fields. An error stays an error."""
    obs = trials[0][0]
    gates = plan.gates_in_effect.of(obs.case, obs.matching.kind).gates
    gated_trials = [GatedTrial(observation, measured.scores, measured.unobserved) for observation, measured in trials]
    gated = gate_verdict(gates, gated_trials)
    outcome, reason = ending_by_gates(case, gated, [measured for _, measured in trials])
    return {
        "outcome": outcome,
        "reason": reason,
        "passed_gates": gated.held,
        "failed_gates": gated.failed,
        "unexamined": gated.unexamined,
        "is_gold_examined": gated.is_gold_examined,
        "has_ungated_facts": gated.has_ungated_facts,
    }


def _gated_failure(obs: Observation, failed: Mapping[str, FailedJudgement], plan: Plan) -> Problem | None:
    """Return the judgement failure that makes the case an error: a gate in effect reads its metric."""
    for gate in plan.gates_reading(obs.case, obs.matching.kind):
        if gate.name in failed and not (gate.is_default and failed[gate.name].judgement.heuristic):
            return failed[gate.name].problem
    return None


class _Measurements(NamedTuple):
    """The scores of one observation."""

    scores: Mapping[str, float]
    details: Mapping[str, Mapping[str, Json]]
    skipped_metrics: Mapping[str, str]
    unobserved: tuple[str, ...]
    error: Problem | None
    failed: Mapping[str, FailedJudgement]

    @property
    def metric_errors(self) -> Mapping[str, str]:
        return {name: str(failure) for name, failure in self.failed.items()}


def _measured(observation: Observation, plan: Plan, stored: Mapping[str, Scored]) -> _Measurements:
    scores: dict[str, float] = {}
    details: dict[str, Mapping[str, Json]] = {}
    skipped: dict[str, str] = {}
    unobserved: list[str] = []
    broken: list[str] = []
    failed: dict[str, FailedJudgement] = {}
    for measure in plan.measures:
        try:
            scored = stored[measure.name] if stored and measure.name in stored else measure.score(observation)
        except FailedJudgement as failure:
            failed[measure.name] = failure
            continue
        # A metric may be user code: whatever it raises, pytest.skip() included, is recorded for this case.
        except BaseException as error:
            if ends_the_run(error):
                raise
            broken.append(failed_metric(measure.name, error, plan.mask))
            continue
        if isinstance(scored, float):
            scores[measure.name] = scored
        elif isinstance(scored, NotApplicable):
            skipped[measure.name] = scored.reason
            if scored.is_unobserved:
                unobserved.append(measure.name)
        elif isinstance(scored, Score):
            scores[measure.name] = scored.value
            if scored.detail:
                details[measure.name] = scored.detail
    problem = Problem("metric", "; ".join(broken)) if broken else None
    return _Measurements(scores, details, skipped, tuple(unobserved), problem, failed)


NO_ANSWER = Problem(
    "no_answer",
    "the system gave no answer, and the case has a gold answer; a system that declines says so (`abstained`), and "
    "--rageval-retrieval-only measures retrieval alone",
)


def _missing_answer(obs: Observation, plan: Plan) -> Problem | None:
    """Return why a wanted answer is missing: there is none, or it only says what the system is going to do."""
    if _lacks_answer(obs, plan):
        return NO_ANSWER
    text = obs.answer.text
    if text is None or obs.answer.abstained is not None or not plan.scores_answers or plan.settings.retrieval_only:
        return None
    if not own_words(text).is_announcement:
        return None
    message = f"the system only said what it is going to do: {excerpt(plan.mask.text(text))!r}; send its last answer"
    return Problem("no_answer", message)


def _lacks_answer(obs: Observation, plan: Plan) -> bool:
    """Return True if a wanted and scored answer is missing. A blank answer is present: it abstains."""
    if obs.answer.text is not None or obs.answer.abstained or not obs.case.answerable or plan.settings.retrieval_only:
        return False
    is_looked_at = any(measure.metric.layer in GENERATED for measure in plan.measures)
    if not is_looked_at:
        return False
    gold = obs.case.gold
    wanted = (*(gold.answers or ()), *(gold.key_facts or ()))
    return any(text.strip() for text in wanted)


class Evaluation(NamedTuple):
    """All trials of one case, and their overall result."""

    overall: CaseResult
    trials: tuple[CaseResult, ...]


def evaluation(
    trials: Sequence[Trial],
    observed: Sequence[Observed],
    plan: Plan,
    attempts: int = 1,
    stored: Sequence[Mapping[str, Scored]] | None = None,
) -> Evaluation:
    """Score all trials of one case. Pure. `stored`: for each trial as for `score_case`."""
    results = []
    for trial, observation, scores in zip(trials, observed, stored or [NOTHING] * len(trials), strict=True):
        result = score_case(trial.case, observation, plan, scores)
        if (result.trial, result.test, result.attempts) != (trial.number, trial.test, attempts):
            result = replace(result, trial=trial.number, test=trial.test, attempts=attempts)
        results.append(result)
    # A single trial is its own mean, and has been gated.
    return Evaluation(results[0] if len(results) == 1 else overall_result(results, plan), tuple(results))


def overall_result(results: Sequence[CaseResult], plan: Plan) -> CaseResult:
    """Combine the trials of a case: gate the mean of each score; an error if a trial is an error."""
    stands, scores = over_trials(results, lambda result: result.error is not None)
    if stands.error is not None or stands.observation is None:
        return stands
    unobserved = dict.fromkeys(name for result in results for name in result.unobserved if name not in scores)
    errors = {name: why for result in results for name, why in result.metric_errors.items()}
    mean = replace(stands, scores=scores, unobserved=tuple(unobserved), metric_errors=errors)
    trials = [(trial.observation, trial) for trial in results if trial.observation is not None]
    return replace(mean, **_decided(mean, trials, plan))


def _ms(since: float) -> float:
    return round((time.perf_counter() - since) * 1000, 3)
