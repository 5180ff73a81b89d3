"""Canaries put to a judge, each with the material that its rubric reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.cache.cached_judge import unfit
from pytest_rageval.judges.canaries.canary import Canary, Verdict
from pytest_rageval.judges.canaries.canary_answers import CANARIES, MATERIAL, OF_AN_OWN_RUBRIC, PASSAGES
from pytest_rageval.judges.judge import Judge, can_judge
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.model import NOTHING, Json, Judgement, JudgeRequest, Rubric
from pytest_rageval.text import excerpt


def canaries_for(judge: Judge, wordings: Mapping[str, Rubric] = NOTHING) -> list[tuple[Rubric, Canary]]:
    """All canaries of the rubrics that the judge can answer, those that the project adds among them."""
    names = [name for name in dict.fromkeys((*CANARIES, *wordings)) if can_judge(judge, name)]
    rubrics = [wordings.get(name) or load_rubric(name) for name in names]
    return [(rubric, canary) for rubric in rubrics for canary in CANARIES.get(rubric.name, OF_AN_OWN_RUBRIC)]


async def try_canaries(judge: Judge, wordings: Mapping[str, Rubric] = NOTHING, repeats: int = 1) -> list[Verdict]:
    """One verdict for each canary, put to the judge so many times.

    `wordings` are a project's own rubrics by name; the shipped ones are used where it has none. All canaries are put
    to the judge at once (it limits itself); an error of the judge is the verdict's.
    """
    pairs = canaries_for(judge, wordings)
    return await asyncio.gather(*(_verdict(judge, rubric, canary, repeats) for rubric, canary in pairs))


def request_of(rubric: Rubric, canary: Canary, trial: int = 0) -> JudgeRequest:
    """The request that shows a canary to a judge."""
    passages = (*PASSAGES, *((f"note-{number}.md", text) for number, text in enumerate(canary.contexts, start=1)))
    material: dict[str, Json] = {
        **MATERIAL,
        "answer": canary.answer,
        "claim": canary.answer,
        "claims": [{"number": 1, "text": canary.answer}],
        "contexts": [{"chunk_id": name, "text": text} for name, text in passages],
        **canary.material,
    }
    variables = {name: material[name] for name in rubric.variables}
    return JudgeRequest(rubric.name, rubric.prompt_version, variables, trial, wording=rubric)


async def _verdict(judge: Judge, rubric: Rubric, canary: Canary, repeats: int) -> Verdict:
    trials = await asyncio.gather(*(_trial(judge, rubric, canary, trial) for trial in range(repeats)))
    scores = tuple(score for score, _ in trials if score is not None)
    error = next((error for _, error in trials if error is not None), None)
    return Verdict(rubric.name, canary.name, canary.band(rubric.scale), scores, error, canary.is_attack)


async def _trial(judge: Judge, rubric: Rubric, canary: Canary, trial: int) -> tuple[float | None, str | None]:
    """The score that came, or why none did."""
    try:
        judgement = await judge.judge(request_of(rubric, canary, trial))
        error = unfit(judgement)
        score = None if error is not None else _value(judgement, rubric, canary)
        if error is None and score is None and not canary.claims_nothing:
            error = f"gave no score for {_metric(rubric, canary)}"
    except JudgeError as failed:
        score, error = None, str(failed)
    except Exception as failed:  # noqa: BLE001  a user's own judge may raise anything; it is this canary's error
        score, error = None, f"{type(failed).__name__}: {failed}"
    return score, None if error is None else excerpt(error, 300)


def _metric(rubric: Rubric, canary: Canary) -> str:
    return canary.metric or next(iter(rubric.scores), rubric.name)


def _value(judgement: Judgement, rubric: Rubric, canary: Canary) -> float | None:
    """The score on the rubric's scale; of a rubric that takes answers apart, the number of claims."""
    if canary.claims is not None:
        claims = judgement.extra.get("claims")
        return float(len(claims)) if isinstance(claims, Sequence) and not isinstance(claims, str) else None
    score = judgement.scores.get(_metric(rubric, canary))
    if score is None:
        return None
    (low, high), (from_low, from_high) = rubric.scale, judgement.scale
    return low + (score - from_low) * (high - low) / (from_high - from_low)


def rubrics_of(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """Verdicts by rubric, in their order."""
    by_rubric: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_rubric.setdefault(verdict.rubric, []).append(verdict)
    return by_rubric
