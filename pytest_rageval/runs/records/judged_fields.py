"""What a record says of judging: the judgements, the judges, their input and their cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_rageval.judges.judge import asked_of, served_model
from pytest_rageval.model import Observation
from pytest_rageval.runs.records.record_texts import RecordTexts, error_record

UNJUDGED: Mapping[str, Any] = {"groundedness": None, "correctness": None, "judgements": {}, "judge": None}
NO_COST: Mapping[str, Any] = {
    **dict.fromkeys(("judge_tokens", "judge_cost_usd", "judge_saved_usd")),
    "judgements": 0,
    "judgements_cached": 0,
}


def judged_fields(obs: Observation, text: RecordTexts) -> dict[str, Any]:
    """Return the judgements by metric, groundedness and correctness again by themselves, and the judges."""
    every = list(obs.judgements.values())
    by_metric = {
        metric: {
            "score": score,
            "reasoning": text(judgement.reasoning),
            "supported_claims": [text(claim) for claim in judgement.supported_claims],
            "unsupported_claims": [text(claim) for claim in judgement.unsupported_claims],
            "model": judgement.model,
            "heuristic": judgement.heuristic,
        }
        for judgement in every
        for metric, score in judgement.scores.items()
    }
    return {
        "groundedness": by_metric.get("groundedness"),
        "correctness": by_metric.get("correctness"),
        "judgements": by_metric,
        "judge": {
            "model": every[0].model,
            "heuristic": every[0].heuristic,
            "prompt_versions": {judgement.rubric: judgement.prompt_version for judgement in every},
            "flags": {judgement.rubric: list(judgement.flags) for judgement in every if judgement.flags},
            "failed": {judgement.rubric: error_record(judgement.error, text) for judgement in every if judgement.error},
            "served": sorted({served for judgement in every if (served := served_model(judgement)) is not None}),
        },
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


def judge_cost(obs: Observation) -> dict[str, Any]:
    """Return what judging cost now and what the cache saved; a cached judgement costs nothing."""
    judgements = list(obs.judgements.values())
    paid, kept = ([each for each in judgements if each.cached == cached] for cached in (False, True))
    tokens = _sum(count for judgement in paid for count in (judgement.tokens_in, judgement.tokens_out))
    is_free = bool(kept) and not paid
    return {
        **{f"judge_{name}": count for name, count in asked_of(paid).items()},
        "judge_tokens": 0 if is_free else None if tokens is None else int(tokens),
        "judge_cost_usd": 0.0 if is_free else _sum(judgement.cost_usd for judgement in paid),
        "judge_saved_usd": _sum(judgement.cost_usd for judgement in kept),
        "judgements": len(judgements),
        "judgements_cached": len(kept),
    }


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum of the known amounts; None if all are unknown, which is not 0."""
    amounts = [value for value in values if value is not None]
    return math.fsum(amounts) if amounts else None
