"""The judging of one answer: whether it is an abstention, and its scores on all other rubrics that apply."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.judge import Judge, can_judge, is_local, judges_at_once, sum_costs
from pytest_rageval.judges.requests import requests_for
from pytest_rageval.judges.share_judge import phrasing_judgement
from pytest_rageval.model import NOTHING, Answer, EvalCase, Judgement, JudgeRequest, Problem, Rubric
from pytest_rageval.text import counted

CLASSIFIER = "abstention"
SPLIT, SUPPORT = "claim_split", "claim_support"

ASKED_WITH: Mapping[str, tuple[str, ...]] = {SUPPORT: (SPLIT,)}
"""Rubrics that another one needs; the classifier may be needed with any."""


async def judge_answer(
    judge: Judge,
    case: EvalCase,
    answer: Answer,
    rubrics: Sequence[str],
    k: int,
    *,
    wordings: Mapping[str, Rubric] = NOTHING,
    repeats: int = 1,
    trial: int = 0,
    phrases: Sequence[str] = (),
    on_error: Callable[[JudgeError], Problem] | None = None,
) -> dict[str, Judgement]:
    """Judge an answer and return the judgements by rubric, in the order of `rubrics`, without those that do not apply.

    Abstention comes first if the response leaves it open, since an abstention needs few other judgements. It is
    detected from the wording, including the project's `phrases`, if the judge has no such rubric or does so itself. The
    other requests run together, each `repeats` times, once for a heuristic. After all calls have ended, the first
    JudgeError in order is raised, or with `on_error` a failed judgement takes its place. If the classifier fails,
    nothing else is judged: it is unknown what applies.
    """
    known = [name for name in rubrics if can_judge(judge, name) and name != CLASSIFIER]
    requests = partial(requests_for, case, answer, k=k, trial=trial, wordings=wordings)
    times = 1 if judge.heuristic else repeats
    rest = requests(known)
    results: dict[str, Judgement] = {}

    async def attempt(call: Awaitable[Judgement], request: JudgeRequest) -> Judgement:
        try:
            return await call
        except JudgeError as error:
            if on_error is None:
                raise
            return _failed(judge, request, on_error(error))

    if answer.abstained is None and (rest or CLASSIFIER in rubrics):
        for request in requests([CLASSIFIER]):
            classified = results[CLASSIFIER] = await attempt(_classified(judge, request, times, phrases), request)
            if classified.error is not None:
                results |= {other.rubric: _failed(judge, other, classified.error) for other in rest}
                rest = []
            elif _abstained(classified):
                rest = requests(known, abstained=True)
    splits = SPLIT in judge.rubrics and any(request.rubric == SUPPORT for request in rest)
    split = next(iter(requests([SPLIT])), None) if splits else None
    in_turn = is_local(judge) or judges_at_once(judge)
    calls = (attempt(_repeated(judge, request, times, split), request) for request in rest)
    judgements = await ask_together(calls, in_turn=in_turn)
    results |= {request.rubric: judgement for request, judgement in zip(rest, judgements, strict=True)}
    return {name: results[name] for name in dict.fromkeys((*rubrics, CLASSIFIER)) if name in results}


async def _classified(judge: Judge, request: JudgeRequest, times: int, phrases: Sequence[str]) -> Judgement:
    if CLASSIFIER in judge.rubrics and not getattr(judge, "abstention_by_phrasing", False):
        return await _repeated(judge, request, times)
    return phrasing_judgement(request, model=judge.model, heuristic=judge.heuristic, phrases=phrases)


def _failed(judge: Judge, request: JudgeRequest, problem: Problem) -> Judgement:
    """Build the placeholder for a failed judgement."""
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


def _abstained(classified: Judgement) -> bool:
    """Return True if the classifier's score is at least half way to an abstention."""
    return classified.scores.get("abstained", 0.0) >= 0.5


async def _repeated(judge: Judge, request: JudgeRequest, times: int, split: JudgeRequest | None = None) -> Judgement:
    """Judge one request as `times` trials and return the median of each score."""
    if times == 1:
        return await _once(judge, request, split, request.trial)
    trials = range(request.trial * times, (request.trial + 1) * times)
    calls = (_once(judge, request, split, trial) for trial in trials)
    return _median(await ask_together(calls, in_turn=judges_at_once(judge)))


async def _once(judge: Judge, request: JudgeRequest, split: JudgeRequest | None, trial: int) -> Judgement:
    if request.rubric == SUPPORT and split is not None:
        return await judge_claims(judge, replace(split, trial=trial), replace(request, trial=trial))
    return await judge.judge(replace(request, trial=trial) if trial != request.trial else request)


def _median(parts: Sequence[Judgement]) -> Judgement:
    """Return the judgement nearest to the medians, with the medians as scores and all values and spreads in `extra`."""
    values: dict[str, list[float]] = {}
    for part in parts:
        for name, value in part.scores.items():
            values.setdefault(name, []).append(value)
    medians = {name: _middle(trials) for name, trials in values.items()}

    def distance(part: Judgement) -> float:
        return math.fsum(abs(part.scores.get(name, math.inf) - middle) for name, middle in medians.items())

    nearest = min(parts, key=distance)
    spread = {name: max(trials) - min(trials) for name, trials in values.items()}
    extra = {**nearest.extra, "repeats": values, "spread": spread}
    return replace(nearest, scores=medians, extra=extra, **merged_fields(parts))


def _middle(values: Sequence[float]) -> float:
    ranked, half = sorted(values), len(values) // 2
    return float(ranked[half] if len(values) % 2 else (ranked[half - 1] + ranked[half]) / 2)


MOST_CLAIMS = 50
"""Judged claims of an answer; if it has more, the first ones count, and a flag says so."""

CLAIMS_AT_ONCE = 10
"""Claims of one request: enough to share a copy of the contexts, few enough to be judged with care."""

LONGEST_CLAIM = 2000
"""Characters of a claim; a model may return any text as one."""


async def judge_claims(judge: Judge, split: JudgeRequest, support: JudgeRequest) -> Judgement:
    """Judge the rubric `claim_support`: supported claims / claims, from 0 to 1.

    Send `split`, then `support` for batches of claims, or for single claims if it reads `claim`. Without claims there
    is no score. Raise JudgeError for a reply without a list of claims, or without a verdict on one.
    """
    reply = await judge.judge(split)
    claims = _claims(reply, judge.model)
    judged = claims[:MOST_CLAIMS]
    at_once = CLAIMS_AT_ONCE if "claims" in support.variables else 1
    batches = [judged[start : start + at_once] for start in range(0, len(judged), at_once)]
    calls = (judge.judge(_support_of(batch, support)) for batch in batches)
    judgements = await ask_together(calls, in_turn=judges_at_once(judge))
    supported = [
        verdict
        for batch, judgement in zip(batches, judgements, strict=True)
        for verdict in _verdicts(judgement, len(batch), judge.model)
    ]
    parts = merged_fields([reply, *judgements])
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
        extra={name: value for name, value in reply.extra.items() if name != "claims"},
        **parts,
    )


def share_of_claims(supported: int, claims: int) -> str:
    """Return a phrase such as `3 of 4 claims are supported`."""
    return f"{supported} of {counted(claims, 'claim is', 'claims are')} supported"


def _claims(reply: Judgement, model: str) -> list[str]:
    """Return the distinct claims in order, with overlong ones cut and blank ones dropped."""
    claims = reply.extra.get("claims")
    if not isinstance(claims, list | tuple) or not all(isinstance(claim, str) for claim in claims):
        raise JudgeError("invalid_reply", f"judge {model!r}, rubric {SPLIT!r}: its reply has no list of claims")
    texts = (" ".join(claim[:LONGEST_CLAIM].split()) for claim in claims)
    return [*dict.fromkeys(filter(None, texts))]


def _support_of(claims: Sequence[str], support: JudgeRequest) -> JudgeRequest:
    """Return the request for these claims, or for the single one, as its prompt reads them."""
    values = {
        "claims": [{"number": number, "text": claim} for number, claim in enumerate(claims, start=1)],
        "claim": claims[0],
    }
    replaced = {name: value for name, value in values.items() if name in support.variables}
    return replace(support, variables={**support.variables, **replaced})


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


async def ask_together(calls: Iterable[Awaitable[Judgement]], *, in_turn: bool = False) -> list[Judgement]:
    """Await all judgements and return them in order; if any fails, await the rest (which keeps them), then raise it.

    `in_turn` awaits them one by one, which is as quick and cheaper for judges that never wait.
    """
    results: list[Judgement | BaseException]
    if in_turn:
        results = [await _result_or_error(call) for call in calls]
    else:
        waiting = list(calls)
        if len(waiting) == 1:
            return [await waiting[0]]
        results = [*await asyncio.gather(*map(_result_or_exit, waiting), return_exceptions=True)]
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if isinstance(result, Judgement)]


async def _result_or_error(call: Awaitable[Judgement]) -> Judgement | Exception:
    """Return the judgement or the exception."""
    try:
        return await call
    except Exception as error:  # noqa: BLE001  raised by the caller once the others have ended
        return error


async def _result_or_exit(call: Awaitable[Judgement]) -> Judgement | BaseException:
    """Return the judgement, or an exception that would end the event loop if a task raised it."""
    try:
        return await call
    except (SystemExit, KeyboardInterrupt) as error:
        return error


def merged_fields(parts: Sequence[Judgement]) -> dict[str, Any]:
    """Return the fields of a judgement made of others; cached parts add no cost, unless all are cached."""
    return {
        **sum_costs([part for part in parts if not part.cached] or parts),
        "cached": all(part.cached for part in parts),
        "heuristic": any(part.heuristic for part in parts),
        "flags": tuple(dict.fromkeys(flag for part in parts for flag in part.flags)),
    }
