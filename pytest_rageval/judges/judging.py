"""One answer before the judge: is it an abstention, and what are the scores of all else that can be asked about it?"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.claims import SPLIT, SUPPORT, judge_claims
from pytest_rageval.judges.gathering import ask_together, taken
from pytest_rageval.judges.judge import Judge, can_judge, is_local, judges_at_once, tells_by_phrasing
from pytest_rageval.judges.phrasing import phrasing_judgement
from pytest_rageval.judges.requests import requests_for
from pytest_rageval.model import NOTHING, Answer, EvalCase, Judgement, JudgeRequest, Problem, Rubric

CLASSIFIER = "abstention"

ASKED_WITH: Mapping[str, tuple[str, ...]] = {SUPPORT: (SPLIT,)}
"""Rubrics that another one needs; the classifier may be asked with any."""


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
    """The judgements by rubric, in the order of `rubrics`; those that the judge lacks or that do not apply are absent.

    Abstention comes first, where the response leaves it open and anything else is to be judged, whether or not it is
    among `rubrics` (else it is the last): of an answer that declines, little else is asked and paid for. The rest is
    asked at the same time. Where the judge lacks this rubric, or says of itself `abstention_by_phrasing`, phrasing
    decides; `phrases` are the project's own refusals beside the known ones. Every rubric is put to a judge `repeats`
    times, to a heuristic one once: it says the same every time. The first JudgeError, in the order of `rubrics`, is
    raised once all calls have ended; with `on_error` a failed judgement stands in its place, with the problem that this
    makes of it. Where the classifier failed, nothing else is asked: nobody knows what applies.
    """
    known = [name for name in rubrics if can_judge(judge, name) and name != CLASSIFIER]
    requests = partial(requests_for, case, answer, k=k, trial=trial, wordings=wordings)
    times = 1 if judge.heuristic else repeats
    rest = requests(known)
    found: dict[str, Judgement] = {}

    async def kept(asked: Awaitable[Judgement], request: JudgeRequest) -> Judgement:
        try:
            return await asked
        except JudgeError as error:
            if on_error is None:
                raise
            return _failed(judge, request, on_error(error))

    if answer.abstained is None and (rest or CLASSIFIER in rubrics):
        for request in requests([CLASSIFIER]):
            said = found[CLASSIFIER] = await kept(_classified(judge, request, times, phrases), request)
            if said.error is not None:
                found |= {other.rubric: _failed(judge, other, said.error) for other in rest}
                rest = []
            elif _abstained(said):
                rest = requests(known, abstained=True)
    splits = SPLIT in judge.rubrics and any(request.rubric == SUPPORT for request in rest)
    split = next(iter(requests([SPLIT])), None) if splits else None
    in_turn = is_local(judge) or judges_at_once(judge)
    asked = (kept(_repeated(judge, request, times, split), request) for request in rest)
    judgements = await ask_together(asked, in_turn=in_turn)
    found |= {request.rubric: judgement for request, judgement in zip(rest, judgements, strict=True)}
    return {name: found[name] for name in dict.fromkeys((*rubrics, CLASSIFIER)) if name in found}


async def _classified(judge: Judge, request: JudgeRequest, times: int, phrases: Sequence[str]) -> Judgement:
    if CLASSIFIER in judge.rubrics and not tells_by_phrasing(judge):
        return await _repeated(judge, request, times)
    return phrasing_judgement(request, model=judge.model, heuristic=judge.heuristic, phrases=phrases)


def _failed(judge: Judge, request: JudgeRequest, problem: Problem) -> Judgement:
    """What stands for a judgement that failed."""
    unscored = tuple(request.wording.scores) if request.wording is not None else (request.rubric,)
    return Judgement(
        request.rubric, {}, model=judge.model, prompt_version=request.prompt_version, heuristic=judge.heuristic,
        error=problem, unscored=unscored,
    )  # fmt: skip


def _abstained(said: Judgement) -> bool:
    """What the classifier said; half way is an abstention."""
    return said.scores.get("abstained", 0.0) >= 0.5


async def _repeated(judge: Judge, request: JudgeRequest, times: int, split: JudgeRequest | None = None) -> Judgement:
    """One request, `times` over as trials of its own; the median of each score counts."""
    if times == 1:
        return await _once(judge, request, split, request.trial)
    trials = range(request.trial * times, (request.trial + 1) * times)
    asked = (_once(judge, request, split, trial) for trial in trials)
    return _median(await ask_together(asked, in_turn=judges_at_once(judge)))


async def _once(judge: Judge, request: JudgeRequest, split: JudgeRequest | None, trial: int) -> Judgement:
    if request.rubric == SUPPORT and split is not None:
        return await judge_claims(judge, replace(split, trial=trial), replace(request, trial=trial))
    return await judge.judge(replace(request, trial=trial) if trial != request.trial else request)


def _median(parts: Sequence[Judgement]) -> Judgement:
    """The judgement nearest to the medians, with these for scores; `extra` has all values and their spread by score."""
    values: dict[str, list[float]] = {}
    for part in parts:
        for name, value in part.scores.items():
            values.setdefault(name, []).append(value)
    medians = {name: _middle(found) for name, found in values.items()}

    def distance(part: Judgement) -> float:
        return math.fsum(abs(part.scores.get(name, math.inf) - middle) for name, middle in medians.items())

    nearest = min(parts, key=distance)
    spread = {name: max(found) - min(found) for name, found in values.items()}
    extra = {**nearest.extra, "repeats": values, "spread": spread}
    return replace(nearest, scores=medians, extra=extra, **taken(parts))


def _middle(values: Sequence[float]) -> float:
    ranked, half = sorted(values), len(values) // 2
    return float(ranked[half] if len(values) % 2 else (ranked[half - 1] + ranked[half]) / 2)
