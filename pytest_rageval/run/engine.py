"""One case asked, observed and judged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from pytest_rageval.abstention.detector import declines
from pytest_rageval.errors import JudgeError
from pytest_rageval.http.call_limit import CallPlaces, in_places
from pytest_rageval.http.call_tally import CallTally, call_clock, tallied
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.judges.judging import judge_answer
from pytest_rageval.matching.places import observe
from pytest_rageval.model import (
    NOTHING,
    Answer,
    AskRequest,
    EvalCase,
    Judgement,
    Problem,
    Timings,
)
from pytest_rageval.run.ask import ask_system, problem_of
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.scoring import AskFailure, Observed
from pytest_rageval.targets.target import BaseTarget

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
    if judge is not None and (plan.rubrics or case.assertions):
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
    if plan.scores_answers:
        _load_detector()
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


@cache
def _load_detector() -> None:
    """Load what reads the wording of answers before the first call is timed.

    Its patterns take 300 ms to compile, in which no reply is noticed: the first calls would seem that much slower.
    """
    declines("It is so.", "Is it so?")


def _ask_timings(queue_ms: float | None, taken_ms: float, tally: CallTally) -> Timings:
    """Return the time of the answered request, apart from the waits before it."""
    if queue_ms is not None:
        queue_ms = round(queue_ms + tally.queued_ms, 3)
    ask_ms = round(max(0.0, taken_ms - tally.queued_ms - tally.retry_wait_ms), 3)
    if not tally.requests and not tally.retry_wait_ms:
        return Timings(queue_ms, ask_ms, ttft_ms=tally.ttft_ms)
    return Timings(
        queue_ms,
        ask_ms,
        retry_wait_ms=round(tally.retry_wait_ms, 3),
        requests=tally.requests or None,
        ttft_ms=tally.ttft_ms,
    )


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


def _ms(since: float) -> float:
    return round((time.perf_counter() - since) * 1000, 3)
