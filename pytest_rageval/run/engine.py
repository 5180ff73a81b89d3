"""One case asked, observed and judged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

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
    Dialogue,
    EvalCase,
    Judgement,
    Problem,
    Timings,
)
from pytest_rageval.run.ask import ask_system, problem_of
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.scoring import AskFailure, Observed
from pytest_rageval.targets.target import BaseTarget

CURRENT_TEST = "PYTEST_CURRENT_TEST"
"""The variable that pytest removes after each test."""
MOST_TRIES = 5
"""How often a case is asked that missed it."""
OnError = Callable[[JudgeError], Problem]


def are_at_once(target: BaseTarget, judge: BaseJudge | None) -> bool:
    """Return True if neither ever waits: then a case can be observed on demand, without a loop."""
    return target.answers_at_once and (judge is None or judge.answers_at_once)


def observed_at_once(observing: Coroutine[Any, Any, Observed]) -> Observed:
    """Return what a coroutine gives that never waits, on this thread."""
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
    asked = await ask_once(ask_request(case, plan, trial), target, plan, places, submitted)
    return await observe_answer(case, asked, target, judge, plan, trial=trial, places=places)


async def observe_answer(
    case: EvalCase,
    asked: TimedAnswer | AskFailure,
    target: BaseTarget,
    judge: BaseJudge | None,
    plan: Plan,
    *,
    trial: int = 0,
    places: CallPlaces | None = None,
    dialogue: Dialogue | None = None,
) -> Observed:
    """Judge the answer to one case, and match it with the golds. `dialogue`: what was said before, for a turn."""
    if isinstance(asked, AskFailure):
        return asked
    if judge is not None and (plan.rubrics or case.assertions):
        asked = await _judged(judge, case, asked, plan, trial, places, dialogue)
    settings = plan.settings
    has_called = target.is_called
    observation = observe(
        case,
        asked.answer,
        k=settings.k,
        asked_k=plan.asked_k if has_called else None,
        judgements=asked.judgements,
        timings=asked.timings,
        trial=trial,
        gold_by=settings.gold_by,
        params=plan.ask_params if has_called else NOTHING,
        refusals=settings.abstention.phrases,
        rules=plan.place_rules,
    )
    return observation if dialogue is None else replace(observation, dialogue=dialogue)


class TimedAnswer(NamedTuple):
    """An answer, its time so far, and its judgements."""

    answer: Answer
    timings: Timings
    judgements: Mapping[str, Judgement] = NOTHING


async def ask_once(
    question: AskRequest, target: BaseTarget, plan: Plan, places: CallPlaces | None, submitted: float | None
) -> TimedAnswer | AskFailure:
    """Ask one question; a failure is a value. Arguments as for `observe_case`.

    It is asked once more if it missed pytest's variable, before later turns of a conversation hear of that.
    """
    ask = _asked_at_once if target.answers_at_once else _asked
    for _ in range(MOST_TRIES):
        asked = await ask(target, question, plan, places, submitted)
        if not isinstance(asked, AskFailure) or CURRENT_TEST not in asked.problem.message:
            break
    return asked


async def _asked_at_once(
    target: BaseTarget, question: AskRequest, plan: Plan, _places: CallPlaces | None, submitted: float | None
) -> TimedAnswer | AskFailure:
    """Ask a target that never waits: without a place and a time limit."""
    queue_ms = None if submitted is None else _ms(submitted)
    started = time.perf_counter()
    answer = await ask_system(target, question, plan.mask)
    # An answer that calls nothing has no time of its own.
    timings = Timings(queue_ms, _ms(started) if target.is_called else None)
    if isinstance(answer, Problem):
        return AskFailure(answer, timings)
    return TimedAnswer(_fit(answer, plan), timings)


async def _asked(
    target: BaseTarget, question: AskRequest, plan: Plan, places: CallPlaces | None, submitted: float | None
) -> TimedAnswer | AskFailure:
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
    if tally.has_masked and not answer.repeats_credential:
        answer = replace(answer, repeats_credential=True)
    if places is not None:
        await asyncio.sleep(0)  # the next call that waits for the place is sent before we compute
    return TimedAnswer(_fit(answer, plan), timings)


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
    judge: BaseJudge,
    case: EvalCase,
    asked: TimedAnswer,
    plan: Plan,
    trial: int,
    places: CallPlaces | None,
    dialogue: Dialogue | None,
) -> TimedAnswer:
    takes_place = places is not None and not judge.answers_at_once and not judge.takes_turns
    async with places.place() if takes_place and places is not None else nullcontext():
        started = time.perf_counter()
        with nullcontext() if takes_place else in_places(places), call_clock() as clock:

            def on_error(error: JudgeError) -> Problem:
                return problem_of(f"judge_{error.kind}", error, plan.mask)

            judgements = await judgements_of(judge, case, asked.answer, plan, trial, on_error, dialogue)
        judge_ms = round(max(0.0, _ms(started) - 1000 * clock.waited_s), 3)
    if places is not None and not judge.answers_at_once:
        await asyncio.sleep(0)  # the next call that waits for the place is sent before we compute
    return TimedAnswer(asked.answer, replace(asked.timings, judge_ms=judge_ms), judgements)


async def judgements_of(
    judge: BaseJudge,
    case: EvalCase,
    answer: Answer,
    plan: Plan,
    trial: int = 0,
    on_error: OnError | None = None,
    dialogue: Dialogue | None = None,
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
        dialogue=dialogue,
    )


def ask_request(case: EvalCase, plan: Plan, trial: int = 0, dialogue: Dialogue | None = None) -> AskRequest:
    """Return the request for the system: the case's question and scope, and the configured parameters.

    `dialogue`: what was said before, for a turn of a conversation.
    """
    return AskRequest(
        question=case.question,
        k=plan.asked_k,
        history=case.history if dialogue is None else dialogue.history or None,
        vaults=case.vaults,
        folders=case.folders,
        contexts=case.contexts,
        params=plan.ask_params,
        case_key=case.key,
        trial=trial,
        conversation_id=None if dialogue is None else dialogue.conversation_id,
    )


def _ms(since: float) -> float:
    return round((time.perf_counter() - since) * 1000, 3)
