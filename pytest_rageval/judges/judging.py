"""The judging of one answer: whether it is an abstention, and its scores on all other rubrics that apply."""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.judge import (
    BaseJudge,
    asked_of,
    can_judge,
    phrasing_judgement,
    sum_costs,
)
from pytest_rageval.judges.requests import can_join, requests_for
from pytest_rageval.judges.rubrics import rubric_of
from pytest_rageval.matching.passages import context_texts
from pytest_rageval.model import NOTHING, Answer, EvalCase, Judgement, JudgeRequest, Problem, Rubric
from pytest_rageval.text import counted

CLASSIFIER = "abstention"
SPLIT, SUPPORT = "claim_split", "claim_support"

ASKED_WITH: Mapping[str, tuple[str, ...]] = {SUPPORT: (SPLIT,)}
"""Rubrics that another one needs; the classifier may be needed with any."""


T = TypeVar("T")
Result = Judgement | JudgeError
IsNear = Callable[[Judgement], bool]
"""Returns True if a score of the judgement lies within one step of a gate's limit, on either side."""
NEAR_GATE_TRIALS = 3


class Wording(NamedTuple):
    """What is known beside the wording of an answer when it is read for an abstention."""

    phrases: Sequence[str]
    passages: Sequence[str]
    golds: Sequence[str]


async def judge_answer(
    judge: BaseJudge,
    case: EvalCase,
    answer: Answer,
    rubrics: Sequence[str],
    k: int,
    *,
    wordings: Mapping[str, Rubric] = NOTHING,
    repeats: int | Literal["near-gate"] = 1,
    is_near: IsNear = lambda _: False,
    trial: int = 0,
    phrases: Sequence[str] = (),
    on_error: Callable[[JudgeError], Problem] | None = None,
) -> dict[str, Judgement]:
    """Judge an answer and return the judgements by rubric, in the order of `rubrics`, without those that do not apply.

    Abstention comes first if the response leaves it open, since an abstention needs few other judgements. It is
    detected from the wording, including the project's `phrases`, if the judge has no such rubric or does so itself. The
    other requests run together, as one if the judge joins rubrics. Each is put `repeats` times, once to a heuristic;
    with `near-gate`, three times if its first judgement `is_near`. After all calls have ended, the first
    JudgeError in order is raised, or with `on_error` a failed judgement takes its place. If the classifier fails,
    nothing else is judged: it is unknown what applies.
    """
    known = [name for name in rubrics if can_judge(judge, name) and name != CLASSIFIER]
    requests = partial(requests_for, case, answer, k=k, trial=trial, wordings=wordings)
    times = 1 if judge.heuristic else repeats
    rest = requests(known)
    results: dict[str, Judgement] = {}

    def settled(request: JudgeRequest, result: Result) -> Judgement:
        if isinstance(result, Judgement):
            return result
        if on_error is None:
            raise result
        return replace(_failed(judge, request, on_error(result)), **result.spent)

    if answer.abstained is None and (rest or CLASSIFIER in rubrics):
        for request in requests([CLASSIFIER]):
            wording = Wording(
                phrases, context_texts(case, answer, k), (case.gold.answers or ()) if case.answerable else ()
            )
            result = await _classified(judge, request, times, is_near, wording)
            classified = results[CLASSIFIER] = settled(request, result)
            if classified.error is not None:
                results |= {other.rubric: _failed(judge, other, classified.error) for other in rest}
                rest = []
            elif classified.scores.get("abstained", 0.0) >= 0.5:
                rest = requests(known, abstained=True)
    splits = SPLIT in judge.rubrics and any(request.rubric == SUPPORT for request in rest)
    split = next(iter(requests([SPLIT])), None) if splits else None
    judged = await _judged(judge, rest, times, is_near, split)
    results |= {request.rubric: settled(request, result) for request, result in zip(rest, judged, strict=True)}
    return {name: results[name] for name in dict.fromkeys((*rubrics, CLASSIFIER)) if name in results}


async def _classified(
    judge: BaseJudge,
    request: JudgeRequest,
    times: int | Literal["near-gate"],
    is_near: IsNear,
    wording: Wording,
) -> Result:
    """Judge whether an answer is an abstention; by its wording unless the judge has a rubric for that."""
    if CLASSIFIER not in judge.rubrics or judge.abstention_by_phrasing:
        return phrasing_judgement(
            request,
            model=judge.model,
            heuristic=judge.heuristic,
            phrases=wording.phrases,
            passages=wording.passages,
            golds=wording.golds,
        )
    return (await _judged(judge, [request], times, is_near))[0]


def _failed(judge: BaseJudge, request: JudgeRequest, problem: Problem) -> Judgement:
    unscored = tuple(request.wording.scores) if request.wording is not None else (request.rubric,)
    return Judgement(
        request.rubric,
        {},
        model=judge.model,
        prompt_version=request.prompt_version,
        heuristic=judge.heuristic,
        error=problem,
        unscored=unscored,
    )


async def _judged(
    judge: BaseJudge,
    requests: Sequence[JudgeRequest],
    repeats: int | Literal["near-gate"],
    is_near: IsNear,
    split: JudgeRequest | None = None,
) -> list[Result]:
    """Judge requests in one or more trials, and return the median or the first error of each."""
    most = repeats if isinstance(repeats, int) else NEAR_GATE_TRIALS

    async def trials(numbers: Iterable[int], again: Sequence[JudgeRequest]) -> list[list[Result]]:
        put = (
            again if most == 1 else [replace(each, trial=each.trial * most + number) for each in again]
            for number in numbers
        )
        calls = [call for requests in put for call in _calls(judge, requests, split)]
        in_turn = judge.answers_at_once or (judge.is_local and most == 1)
        by_rubric: dict[str, list[Result]] = {request.rubric: [] for request in again}
        for results in await ask_together(calls, in_turn=in_turn):
            for rubric, result in results:
                by_rubric[rubric].append(result)
        return list(by_rubric.values())

    if isinstance(repeats, int):
        return [_together(parts) for parts in await trials(range(most), requests)]
    firsts = [first for (first,) in await trials([0], requests)]
    near = [number for number, first in enumerate(firsts) if isinstance(first, Judgement) and is_near(first)]
    others = await trials(range(1, most), [requests[number] for number in near])
    return [_together([first, *dict(zip(near, others, strict=True)).get(n, [])]) for n, first in enumerate(firsts)]


def _calls(
    judge: BaseJudge, requests: Sequence[JudgeRequest], split: JudgeRequest | None
) -> Iterator[Awaitable[list[tuple[str, Result]]]]:
    """Yield a call for all rubrics that the judge joins, and one for each other; they return results by rubric."""
    together = judge.judge_together
    joined = [request for request in requests if together is not None and can_join(rubric_of(request))]

    async def single(request: JudgeRequest) -> list[tuple[str, Result]]:
        try:
            if request.rubric == SUPPORT and split is not None:
                return [(SUPPORT, await judge_claims(judge, replace(split, trial=request.trial), request))]
            return [(request.rubric, await judge.judge(request))]
        except JudgeError as error:
            return [(request.rubric, error)]

    async def joint() -> list[tuple[str, Result]]:
        assert together is not None
        return [*zip((request.rubric for request in joined), await together(joined), strict=True)]

    if joined:
        yield joint()
    yield from (single(request) for request in requests if request not in joined)


def _together(parts: Sequence[Result]) -> Result:
    """Return the first error of several trials with the cost of all, or the median of their judgements.

    It is the one nearest to the medians, with these as scores and all values and spreads in `extra`.
    """
    if len(parts) == 1:
        return parts[0]
    judgements = [part for part in parts if isinstance(part, Judgement)]
    if failures := [part for part in parts if isinstance(part, JudgeError)]:
        bill = [part for part in judgements if not part.cached]
        bill += (Judgement("", {}, **failure.spent) for failure in failures if failure.spent)
        first, spent = failures[0], {**sum_costs(bill), "extra": asked_of(bill)} if bill else {}
        return JudgeError(first.kind, str(first), first.raw, first.status, spent)
    values: dict[str, list[float]] = {}
    for part in judgements:
        for name, value in part.scores.items():
            values.setdefault(name, []).append(value)
    medians = {name: float(statistics.median(trials)) for name, trials in values.items()}

    nearest = min(
        judgements,
        key=lambda part: math.fsum(abs(part.scores.get(name, math.inf) - middle) for name, middle in medians.items()),
    )
    spread = {name: max(trials) - min(trials) for name, trials in values.items()}
    extra = {**nearest.extra, "repeats": values, "spread": spread, **asked_of(_paid(judgements))}
    return replace(nearest, scores=medians, extra=extra, **merged_fields(judgements))


MOST_CLAIMS = 50
"""Judged claims of an answer; if it has more, the first ones count, and a flag says so."""

CLAIMS_AT_ONCE = 10
"""Claims of one request: enough to share a copy of the contexts, few enough to be judged with care."""

LONGEST_CLAIM = 2000
"""Characters of a claim; a model may return any text as one."""


async def judge_claims(judge: BaseJudge, split: JudgeRequest, support: JudgeRequest) -> Judgement:
    """Judge the rubric `claim_support`: supported claims / claims, from 0 to 1.

    Send `split`, then `support` for batches of claims, or for single claims if it reads `claim`. Without claims there
    is no score. Raise JudgeError for a reply without a list of claims, or without a verdict on one.
    """
    reply = await judge.judge(split)
    stated = reply.extra.get("claims")
    if not isinstance(stated, list | tuple) or not all(isinstance(claim, str) for claim in stated):
        raise JudgeError("invalid_reply", f"judge {judge.model!r}, rubric {SPLIT!r}: its reply has no list of claims")
    claims = [*dict.fromkeys(filter(None, (" ".join(claim[:LONGEST_CLAIM].split()) for claim in stated)))]
    judged = claims[:MOST_CLAIMS]
    at_once = CLAIMS_AT_ONCE if "claims" in support.variables else 1
    batches = [judged[start : start + at_once] for start in range(0, len(judged), at_once)]

    def request_of(batch: Sequence[str]) -> JudgeRequest:
        numbered = [{"number": number, "text": claim} for number, claim in enumerate(batch, start=1)]
        values = {"claims": numbered, "claim": batch[0]}
        replaced = {name: value for name, value in values.items() if name in support.variables}
        return replace(support, variables={**support.variables, **replaced})

    judgements = await ask_together(map(judge.judge, map(request_of, batches)), in_turn=judge.answers_at_once)
    supported = [
        verdict
        for batch, judgement in zip(batches, judgements, strict=True)
        for verdict in _verdicts(judgement, len(batch), judge.model)
    ]
    parts, asked = merged_fields([reply, *judgements]), asked_of(_paid([reply, *judgements]))
    if len(claims) > MOST_CLAIMS:
        parts["flags"] += (f"of {len(claims)} claims the first {MOST_CLAIMS} were judged",)
    return Judgement(
        rubric=SUPPORT,
        scores={SUPPORT: sum(supported) / len(judged)} if judged else {},
        reasoning=share_of_claims(sum(supported), len(judged)) if judged else "the answer makes no claim",
        supported_claims=tuple(claim for claim, verdict in zip(judged, supported, strict=True) if verdict),
        unsupported_claims=tuple(claim for claim, verdict in zip(judged, supported, strict=True) if not verdict),
        model=reply.model,
        prompt_version=f"{split.prompt_version},{support.prompt_version}",
        extra={name: value for name, value in {**reply.extra, **asked}.items() if name != "claims"},
        **parts,
    )


def share_of_claims(supported: int, claims: int) -> str:
    """Return a phrase such as `3 of 4 claims are supported`."""
    return f"{supported} of {counted(claims, 'claim is', 'claims are')} supported"


def _verdicts(judgement: Judgement, claims: int, model: str) -> list[bool]:
    """Return whether each claim of a request is supported: its verdict, or for a single claim the score."""
    verdicts = judgement.extra.get("verdicts")
    if isinstance(verdicts, list | tuple) and len(verdicts) == claims:
        return [verdict is True for verdict in verdicts]
    if SUPPORT not in judgement.scores:
        raise JudgeError("invalid_reply", f"judge {model!r}, rubric {SUPPORT!r}: its judgement has no score")
    if claims > 1:
        raise JudgeError(
            "invalid_reply",
            f"judge {model!r}, rubric {SUPPORT!r}: extra['verdicts'] is no list of {claims} truths, one a claim",
        )
    return [judgement.scores[SUPPORT] >= sum(judgement.scale) / 2]


async def ask_together(calls: Iterable[Awaitable[T]], *, in_turn: bool = False) -> list[T]:
    """Await all calls and return their results in order; raise the first failure once all others have ended.

    `in_turn` awaits them one by one, which is as quick and cheaper for judges that never wait.
    """
    waiting = list(calls)
    if len(waiting) == 1:
        return [await waiting[0]]
    outcomes = [await _outcome(call) for call in waiting] if in_turn else await asyncio.gather(*map(_outcome, waiting))
    for _, error in outcomes:
        if error is not None:
            raise error
    return [result for results, _ in outcomes for result in results]


async def _outcome(call: Awaitable[T]) -> tuple[list[T], BaseException | None]:
    """Return the result or the exception, also one that would end the event loop if a task raised it."""
    try:
        return [await call], None
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  raised by the caller once the others have ended
        return [], error


def merged_fields(parts: Sequence[Judgement]) -> dict[str, Any]:
    """Return the fields of a judgement made of others; cached parts add no cost, unless all are cached."""
    return {
        **sum_costs(_paid(parts)),
        "cached": all(part.cached for part in parts),
        "heuristic": any(part.heuristic for part in parts),
        "flags": tuple(dict.fromkeys(flag for part in parts for flag in part.flags)),
    }


def _paid(parts: Sequence[Judgement]) -> Sequence[Judgement]:
    return [part for part in parts if not part.cached] or parts
