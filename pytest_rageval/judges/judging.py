"""The judging of one answer: whether it is an abstention, and its scores on all other rubrics that apply."""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeVar

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.assertion_requests import assertion_requests
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
from pytest_rageval.model import NOTHING, Answer, Dialogue, EvalCase, Judgement, JudgeRequest, Problem, Rubric
from pytest_rageval.text import counted

CLASSIFIER = "abstention"
SPLIT = "claim_split"
SUPPORT = "claim_support"

ASKED_WITH: Mapping[str, tuple[str, ...]] = {SUPPORT: (SPLIT,)}
"""Rubrics that another one needs; the classifier may be needed with any."""


T = TypeVar("T")
Result = Judgement | JudgeError
IsNear = Callable[[Judgement], bool]
"""Returns True if a score of the judgement lies within one step of a gate's limit, on either side."""
NEAR_GATE_TRIALS = 3
"""The fewest of which the median is a majority."""


class Wording(NamedTuple):
    """The texts that an answer is compared with when its wording is read for an abstention."""

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
    dialogue: Dialogue | None = None,
) -> dict[str, Judgement]:
    """Judge an answer and return the judgements by rubric, in the order of `rubrics`, without those that do not apply.

    Abstention comes first if the response leaves it open, since an abstention needs few other judgements. It is
    detected from the wording, including the project's `phrases`, if the judge has no such rubric or does so itself.
    The other requests, those for assertions of the case among them, run together, as one if the judge joins
    rubrics. Each is put `repeats` times, once to a heuristic; with `near-gate`, three times if its first judgement
    `is_near`. After all calls have ended, the first JudgeError in order is raised, or with `on_error` a failed
    judgement takes its place. If the classifier fails, nothing else is judged: it is unknown what applies. `dialogue`:
    what was said before, for a turn of a conversation.
    """
    if dialogue is not None:
        case = replace(case, history=dialogue.history)
    known = [name for name in rubrics if can_judge(judge, name) and name != CLASSIFIER]
    requests = partial(requests_for, case, answer, k=k, trial=trial, wordings=wordings, dialogue=dialogue)
    # A heuristic gives equal requests equal scores: it is asked once.
    times = 1 if judge.heuristic else repeats
    asserted = assertion_requests(judge, case, answer, k, trial, dialogue)
    by_rubric = requests(known)
    rest = by_rubric + asserted
    results: dict[str, Judgement] = {}

    def settled(request: JudgeRequest, result: Result) -> Judgement:
        if isinstance(result, Judgement):
            return result
        if on_error is None:
            raise result
        return replace(_failed(judge, request, on_error(result)), **result.spent)

    # Assertions ask the same of an abstention as of any other answer.
    if answer.abstained is None and (by_rubric or CLASSIFIER in rubrics):
        for request in requests([CLASSIFIER]):
            golds = case.gold.answers or ()
            wording = Wording(phrases, context_texts(case, answer, k), golds if case.answerable else ())
            result = await _classified(judge, request, times, is_near, wording)
            classified = settled(request, result)
            results[CLASSIFIER] = classified
            if classified.error is not None:
                # Whether anything else applies is unknown now.
                results |= {other.rubric: _failed(judge, other, classified.error) for other in rest}
                rest = []
            elif classified.scores.get("abstained", 0.0) >= 0.5:
                rest = requests(known, abstained=True) + asserted
    # Splitting costs a request: only for an answer whose claims are judged.
    split = None
    if SPLIT in judge.rubrics and any(request.rubric == SUPPORT for request in rest):
        split = next(iter(requests([SPLIT])), None)
    judged = await _judged(judge, rest, times, is_near, split)
    for request, result in zip(rest, judged, strict=True):
        results[request.rubric] = settled(request, result)
    in_order = dict.fromkeys((*rubrics, CLASSIFIER, *(request.rubric for request in asserted)))
    return {name: results[name] for name in in_order if name in results}


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
    (result,) = await _judged(judge, [request], times, is_near)
    return result


def _failed(judge: BaseJudge, request: JudgeRequest, problem: Problem) -> Judgement:
    unscored = tuple(request.wording.scores) if request.wording is not None else (request.rubric,)
    return Judgement(
        rubric=request.rubric,
        scores={},
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
    if isinstance(repeats, int):
        trials = await _trials(judge, requests, range(repeats), repeats, split)
        return [_together(results) for results in trials.values()]
    trials = await _trials(judge, requests, range(1), NEAR_GATE_TRIALS, split)
    near: list[JudgeRequest] = []
    for request in requests:
        (first,) = trials[request.rubric]
        if isinstance(first, Judgement) and is_near(first):
            near.append(request)
    further = await _trials(judge, near, range(1, NEAR_GATE_TRIALS), NEAR_GATE_TRIALS, split)
    for rubric, results in further.items():
        trials[rubric] += results
    return [_together(results) for results in trials.values()]


async def _trials(
    judge: BaseJudge, requests: Sequence[JudgeRequest], numbers: range, of: int, split: JudgeRequest | None
) -> dict[str, list[Result]]:
    """Judge each request in the trials of these numbers, `of` so many, all together; return the results by rubric."""
    calls: list[Awaitable[list[tuple[str, Result]]]] = []
    for number in numbers:
        trial: Sequence[JudgeRequest] = requests
        if of > 1:
            # A case that is asked several times has trials of its own: no two of all these have one number.
            trial = [replace(request, trial=request.trial * of + number) for request in requests]
        calls += _calls(judge, trial, split)
    in_turn = judge.answers_at_once or (judge.is_local and of == 1)
    by_rubric: dict[str, list[Result]] = {request.rubric: [] for request in requests}
    for results in await ask_together(calls, in_turn=in_turn):
        for rubric, result in results:
            by_rubric[rubric].append(result)
    return by_rubric


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
        results = await together(joined)
        return [(request.rubric, result) for request, result in zip(joined, results, strict=True)]

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
    failures = [part for part in parts if isinstance(part, JudgeError)]
    if failures:
        return _failure_of(failures, judgements)
    values: dict[str, list[float]] = {}
    for judgement in judgements:
        for name, value in judgement.scores.items():
            values.setdefault(name, []).append(value)
    medians = {name: float(statistics.median(trials)) for name, trials in values.items()}

    def distance(judgement: Judgement) -> float:
        scores = judgement.scores
        return math.fsum(abs(scores.get(name, math.inf) - median) for name, median in medians.items())

    # The median belongs to no single judgement: the nearest one lends its reasons.
    nearest = min(judgements, key=distance)
    spread = {name: max(trials) - min(trials) for name, trials in values.items()}
    extra = {**nearest.extra, "repeats": values, "spread": spread, **asked_of(_paid(judgements))}
    return replace(nearest, scores=medians, extra=extra, **merged_fields(judgements))


def _failure_of(failures: Sequence[JudgeError], judgements: Sequence[Judgement]) -> JudgeError:
    """Return the first failure, with the cost of all trials."""
    # A failed judgement was paid for as well: a run of 8 requests once reported 2.
    bill = [judgement for judgement in judgements if not judgement.cached]
    bill += [Judgement("", {}, **failure.spent) for failure in failures if failure.spent]
    spent = {**sum_costs(bill), "extra": asked_of(bill)} if bill else {}
    first = failures[0]
    return JudgeError(first.kind, str(first), first.raw, first.status, spent)


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
    # A model may state a claim twice: counted twice, it would weigh double.
    bounded = [" ".join(claim[:LONGEST_CLAIM].split()) for claim in stated]
    claims = list(dict.fromkeys(filter(None, bounded)))
    judged = claims[:MOST_CLAIMS]
    at_once = CLAIMS_AT_ONCE if "claims" in support.variables else 1
    batches = [judged[start : start + at_once] for start in range(0, len(judged), at_once)]
    calls = [judge.judge(_about(batch, support)) for batch in batches]
    judgements = await ask_together(calls, in_turn=judge.answers_at_once)

    supported: list[str] = []
    unsupported: list[str] = []
    for batch, judgement in zip(batches, judgements, strict=True):
        verdicts = _verdicts(judgement, len(batch), judge.model)
        pairs = list(zip(batch, verdicts, strict=True))
        supported += [claim for claim, is_supported in pairs if is_supported]
        unsupported += [claim for claim, is_supported in pairs if not is_supported]
    scores: dict[str, float] = {}
    reasoning = "the answer makes no claim"
    if judged:
        scores[SUPPORT] = len(supported) / len(judged)
        reasoning = share_of_claims(len(supported), len(judged))
    parts = [reply, *judgements]
    extra = {**reply.extra, **asked_of(_paid(parts))}
    extra.pop("claims", None)  # they are in the lists of claims
    merged = merged_fields(parts)
    if len(claims) > MOST_CLAIMS:
        merged["flags"] += (f"of {len(claims)} claims the first {MOST_CLAIMS} were judged",)
    return Judgement(
        rubric=SUPPORT,
        scores=scores,
        reasoning=reasoning,
        supported_claims=tuple(supported),
        unsupported_claims=tuple(unsupported),
        model=reply.model,
        prompt_version=f"{split.prompt_version},{support.prompt_version}",
        extra=extra,
        **merged,
    )


def _about(claims: Sequence[str], support: JudgeRequest) -> JudgeRequest:
    """Return the request whether these claims are supported; a rubric that reads `claim` is given only one."""
    variables = dict(support.variables)
    if "claims" in variables:
        variables["claims"] = [{"number": number, "text": claim} for number, claim in enumerate(claims, start=1)]
    if "claim" in variables:
        variables["claim"] = claims[0]
    return replace(support, variables=variables)


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
        # Without a task of its own.
        return [await waiting[0]]
    if in_turn:
        outcomes = [await _outcome(call) for call in waiting]
    else:
        outcomes = await asyncio.gather(*map(_outcome, waiting))
    results: list[T] = []
    for outcome in outcomes:
        if isinstance(outcome, _RaisedError):
            raise outcome.error
        results.append(outcome)
    return results


class _RaisedError(NamedTuple):
    """The exception of a call that failed."""

    error: BaseException


async def _outcome(call: Awaitable[T]) -> T | _RaisedError:
    """Return the result or the exception, also one that would end the event loop if a task raised it."""
    try:
        return await call
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  raised by the caller once the others have ended
        return _RaisedError(error)


def merged_fields(parts: Sequence[Judgement]) -> dict[str, Any]:
    """Return the fields of a judgement made of others; cached parts add no cost, unless all are cached."""
    flags = chain.from_iterable(part.flags for part in parts)
    return {
        **sum_costs(_paid(parts)),
        "cached": all(part.cached for part in parts),
        "heuristic": any(part.heuristic for part in parts),
        "flags": tuple(dict.fromkeys(flags)),
    }


def _paid(parts: Sequence[Judgement]) -> Sequence[Judgement]:
    return [part for part in parts if not part.cached] or parts
