"""What a record says of judging: the judgements, the judges, their input and their cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_rageval.judges.judge import asked_of, served_model
from pytest_rageval.model import Judgement, Observation
from pytest_rageval.runs.records.record_texts import RecordTexts, error_record

UNJUDGED: Mapping[str, Any] = {"groundedness": None, "correctness": None, "judgements": {}, "judge": None}
NO_COST: Mapping[str, Any] = {
    **dict.fromkeys(("judge_tokens", "judge_cost_usd", "judge_saved_usd")),
    "judgements": 0,
    "judgements_cached": 0,
}


def judged_fields(obs: Observation, text: RecordTexts) -> dict[str, Any]:
    """Return the judgements by metric, groundedness and correctness again by themselves, and the judges."""
    judgements = list(obs.judgements.values())
    by_metric: dict[str, dict[str, Any]] = {}
    for judgement in judgements:
        for metric, score in judgement.scores.items():
            by_metric[metric] = _judgement_record(judgement, score, text)
    return {
        "groundedness": by_metric.get("groundedness"),
        "correctness": by_metric.get("correctness"),
        "judgements": by_metric,
        "judge": _judge_record(judgements, text),
    }


def _judgement_record(judgement: Judgement, score: float, text: RecordTexts) -> dict[str, Any]:
    return {
        "score": score,
        "reasoning": text(judgement.reasoning),
        "supported_claims": [text(claim) for claim in judgement.supported_claims],
        "unsupported_claims": [text(claim) for claim in judgement.unsupported_claims],
        "model": judgement.model,
        "heuristic": judgement.heuristic,
    }


def _judge_record(judgements: Sequence[Judgement], text: RecordTexts) -> dict[str, Any]:
    """Return who judged, by which prompts, and what is to be said of single judgements, by rubric."""
    served: set[str] = set()
    flags: dict[str, list[str]] = {}
    failed: dict[str, Any] = {}
    for judgement in judgements:
        model = served_model(judgement)
        if model is not None:
            served.add(model)
        if judgement.flags:
            flags[judgement.rubric] = list(judgement.flags)
        if judgement.error:
            failed[judgement.rubric] = error_record(judgement.error, text)
    return {
        "model": judgements[0].model,
        "heuristic": judgements[0].heuristic,
        "prompt_versions": {judgement.rubric: judgement.prompt_version for judgement in judgements},
        "flags": flags,
        "failed": failed,
        "served": sorted(served),
    }


def judge_input(obs: Observation, k: int, text: RecordTexts) -> dict[str, Any]:
    """Return what the judge was shown, in short."""
    top = (obs.answer.chunks or ())[:k]
    return {
        "question": text(obs.case.question),
        "answer": text(obs.answer.text),
        "context_chunk_ids": [chunk.chunk_id for chunk in top],
        "context_chunks_truncated": [text(chunk.text) for chunk in top],
    }


def judgements_of_case(obs: Observation | None) -> list[Judgement]:
    """Return the judgements of a case, with those of its answer to the rewrite."""
    if obs is None:
        return []
    judgements = list(obs.judgements.values())
    if isinstance(obs.rewritten, Observation):
        judgements += obs.rewritten.judgements.values()
    return judgements


def judge_cost(judgements: Iterable[Judgement]) -> dict[str, Any]:
    """Return what judging cost now and what the cache saved; a cached judgement costs nothing."""
    paid: list[Judgement] = []
    kept: list[Judgement] = []
    for judgement in judgements:
        if judgement.cached:
            kept.append(judgement)
        else:
            paid.append(judgement)
    cost: dict[str, Any] = {f"judge_{name}": count for name, count in asked_of(paid).items()}
    # Known to be nothing, since all came from the cache; without any judgement it is unknown.
    if kept and not paid:
        cost["judge_tokens"] = 0
        cost["judge_cost_usd"] = 0.0
    else:
        counts: list[float | None] = []
        for judgement in paid:
            counts += [judgement.tokens_in, judgement.tokens_out]
        tokens = _sum(counts)
        cost["judge_tokens"] = None if tokens is None else int(tokens)
        cost["judge_cost_usd"] = _sum(judgement.cost_usd for judgement in paid)
    cost["judge_saved_usd"] = _sum(judgement.cost_usd for judgement in kept)
    cost["judgements"] = len(paid) + len(kept)
    cost["judgements_cached"] = len(kept)
    return cost


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum of the known amounts; None if all are unknown, which is not 0."""
    amounts = [value for value in values if value is not None]
    return math.fsum(amounts) if amounts else None
