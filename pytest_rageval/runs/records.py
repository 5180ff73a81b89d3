"""Records of one trial: a line of results.jsonl (texts cut) and a line of observations.jsonl (complete)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from functools import lru_cache
from itertools import chain, count, repeat
from typing import Any, NamedTuple

from pytest_rageval.cases.canonical import case_to_mapping
from pytest_rageval.config.settings import Settings
from pytest_rageval.engine import Evaluation, Observed
from pytest_rageval.io.masking import public_params
from pytest_rageval.io.sealed_lines import sealed_line
from pytest_rageval.judges.judge import served_model
from pytest_rageval.matching.places import gold_kind
from pytest_rageval.metrics.abstention import abstention
from pytest_rageval.metrics.answer import answer_kinds
from pytest_rageval.metrics.registry import LAYERS, Registry
from pytest_rageval.model import (
    Answer,
    CaseResult,
    EvalCase,
    FailedJudgement,
    Judgement,
    Matching,
    Observation,
    Problem,
    Timings,
    Trial,
)
from pytest_rageval.plan import Plan
from pytest_rageval.runs.decision_hash import decision_hash
from pytest_rageval.runs.record_texts import RecordTexts
from pytest_rageval.runs.row import SCHEMA
from pytest_rageval.targets.native_contract import answer_to_response, misplaced_fields

PHASES = ("folder_selection_ms", "retrieval_ms", "rerank_ms", "generation_ms")


def result_record(
    result: CaseResult, plan: Plan, config_hash: str, overall: CaseResult | None = None
) -> dict[str, Any]:
    """Return one line of results.jsonl; see docs/runs.md for every field.

    `overall`: the result over all trials of the case, which the verdict is about; None with a single trial.
    """
    overall = overall or result
    settings = plan.settings
    obs, text = result.observation, RecordTexts(settings)
    answer = obs.answer if obs else result.answer or Answer()
    doubts = obs.matching.doubts if obs else None
    return {
        "schema": SCHEMA,
        "case_key": result.key,
        **case_fields(result.case, plan),
        "gold": gold_kind(result.case.gold, settings.gold_by),
        "outcome": result.outcome,
        "reason": text.reason(result),
        "question": text(result.case.question),
        "reference_answers": text.all(result.case.gold.answers),
        "answer": text(answer.text),
        "references": [
            {"chunk_id": cited.chunk_id, "rel_path": cited.rel_path, "heading_path": cited.heading_path}
            for cited in answer.references or ()
        ],
        "retrieved_chunks": _chunks(answer, obs.matching if obs else Matching(), text),
        "folder_selection": _selection(answer, text),
        "model_name": answer.extra.get("model_name"),
        "timestamp": answer.extra.get("timestamp"),
        "meta": text.tree(answer.extra.get("meta")),
        "config": config_hash,
        "indexing_coverage": answer.indexing_coverage,
        "latency": _latency(result, answer),
        "retrieval_metrics": _retrieval_metrics(result.scores, settings.k),
        **_judged(obs, text),
        "abstention": _abstention(obs, result.scores, text),
        "layers": _layers(result.scores, plan.registry),
        "scores": dict(result.scores),
        "score_details": {name: text.detail(detail) for name, detail in result.details.items()},
        "trace": text.trace(answer),
        "judge_input": _judge_input(obs, settings.k, text) if obs and obs.judgements else None,
        "cost": _cost(obs),
        "verdict": verdict_record(result, overall),
        "error": _error(result.error, text),
        "skipped_metrics": dict(result.skipped_metrics),
        "metric_errors": {name: text.message(why) for name, why in result.metric_errors.items()},
        "flags": list(obs.matching.flags) if obs else [],
        "versions": _versions(answer),
        "reported": list(_reported(answer)),
        "unread": misplaced_fields(answer),
        "trial": result.trial,
        "attempts": result.attempts,
        "requests": result.timings.requests,
    } | ({"doubt": doubts} if doubts else {})


def _versions(answer: Answer) -> dict[str, Any] | None:
    """Return the versions that the system reports; the `model_name` of an uploaded answer counts as its `llm`."""
    versions = dict(answer.versions)
    model_name = answer.extra.get("model_name")
    if isinstance(model_name, str) and model_name:
        versions.setdefault("llm", model_name)
    return versions or None


def _chunks(answer: Answer, matching: Matching, text: RecordTexts) -> list[dict[str, Any]]:
    """Return the retrieved chunks in rank order, each with the golds that it matches and how."""
    loose = {match.at: match.kind for match in matching.loose}
    return [
        {
            "chunk_id": chunk.chunk_id,
            "rel_path": chunk.rel_path,
            "heading_path": chunk.heading_path,
            "rank": rank,
            "score_vector": chunk.score_vector,
            "score_lexical": chunk.score_lexical,
            "score_final": chunk.score_final,
            "text": text(chunk.text),
            "token_count": chunk.token_count,
            "matches": sorted(golds),
        }
        | ({"match": loose[rank - 1]} if rank - 1 in loose else {})
        for rank, chunk, golds in zip(
            count(1), answer.chunks or (), chain(matching.hits or (), repeat(())), strict=False
        )
    ]


def _selection(answer: Answer, text: RecordTexts) -> dict[str, Any] | None:
    selection = answer.folder_selection
    if selection is None:
        return None
    return {
        "folders": selection.folders,
        "reasoning": text(selection.reasoning),
        "fallback": selection.fallback,
        "extra": text.tree(selection.extra) or {},
    }


def _reported(answer: Answer) -> Iterator[str]:
    """Yield the fields that the system reported besides its answer; the searched folders follow from a setting."""
    yield from (name for name in ("references", "chunks") if getattr(answer, name) is not None)
    if answer.trace is not None:
        parts = (field.name for field in fields(answer.trace) if field.name != "extra")
        yield from (f"trace.{name}" for name in parts if getattr(answer.trace, name) is not None)


def verdict_record(result: CaseResult, overall: CaseResult) -> dict[str, Any]:
    """Return the verdict of the gates on a case, and whether this trial alone passes them."""
    return {
        "passed": not overall.failed_gates and overall.error is None,
        "gates_held": overall.passed_gates,
        "failed_gates": [asdict(gate) for gate in overall.failed_gates],
        "gold_examined": _gold_examined(overall),
        "unexamined": list(overall.unexamined),
        "unobserved": list(result.unobserved),
        "trial_passed": not result.failed_gates and result.error is None,
    }


def _gold_examined(overall: CaseResult) -> bool | None:
    """Return True if a gate examined gold of the case; None without gold or without an observation."""
    case = overall.case
    if overall.observation is None or (case.gold.is_empty and case.answerable):
        return None
    return overall.is_gold_examined


def _error(problem: Problem | None, text: RecordTexts) -> dict[str, Any] | None:
    if problem is None:
        return None
    return {"kind": problem.kind, "message": text.message(problem.message), "raw": text(problem.raw)}


def case_fields(case: EvalCase, plan: Plan) -> dict[str, Any]:
    """Return the fields of the case in its record: enough for every breakdown without the case file."""
    hashes = plan.hashes_of(case)
    return {
        "test_case_id": case.id,
        "content_hash": hashes.content,
        "decision_hash": decision_hash(case, hashes.asked, plan),
        "answerable": case.answerable,
        "category": case.category,
        "difficulty": case.difficulty,
        "domain": case.domain,
        "tags": list(case.tags),
        "requires_kg": case.requires_kg,
        "has_groups": bool(case.gold.support_groups),
        "gold_answer": sorted(answer_kinds(case.gold)),
        "source": {"file": case.source.file, "line": case.source.line},
    }


def observation_record(trial: Trial, observed: Observed, settings: Settings) -> dict[str, Any]:
    """Return one line of observations.jsonl: all that re-scoring and re-judging need."""
    obs = observed if isinstance(observed, Observation) else None
    problem = None if isinstance(observed, Observation) else observed.problem
    answer, timings = observed.answer, observed.timings
    if answer is not None and not settings.save_traces:
        answer = replace(answer, trace=None)
    return {
        "schema": SCHEMA,
        "case_key": trial.key,
        "trial": trial.number,
        "case": case_to_mapping(trial.case) | {"source": list(trial.case.source)},
        "answer": answer_to_response(answer) if answer else None,
        "judgements": {name: _judgement(judgement) for name, judgement in obs.judgements.items()} if obs else {},
        "asked_k": obs.asked_k if obs else None,
        "k": obs.k if obs else None,
        "params": public_params(obs.params) if obs else {},
        "timings": {name: getattr(timings, name) for name in _TIMINGS},
        "error": asdict(problem) if problem else None,
    }


def to_line(record: Mapping[str, Any]) -> str:
    """Return the record as strict JSON with its checksum; raise ValueError or TypeError if it has no such form."""
    return sealed_line(record).decode()


class RecordLine(NamedTuple):
    """A line of results.jsonl and its record, so that the process that wrote the line need not parse it."""

    data: bytes
    record: Mapping[str, Any]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> RecordLine:
        return cls(sealed_line(record), record)

    @property
    def text(self) -> str:
        """Return the line as text, to send between processes."""
        return self.data.decode()


def record_lines(evaluation: Evaluation, plan: Plan, config_hash: str) -> list[RecordLine]:
    """Return a line for each trial, without credentials."""
    return [
        RecordLine.of(plan.mask.value(result_record(result, plan, config_hash, evaluation.overall)))
        for result in evaluation.trials
    ]


def _latency(result: CaseResult, answer: Answer) -> dict[str, float | None]:
    """Return latencies in milliseconds: `total_ms` as we measured it, phases as the system reports them.

    If nothing was called, `total_ms` is the reported one.
    """
    return {
        "total_ms": result.timings.ask_ms if result.timings.ask_ms is not None else answer.latency.get("total_ms"),
        "queue_ms": result.timings.queue_ms,
        **{phase: answer.latency.get(phase) for phase in PHASES},
        "judge_ms": result.timings.judge_ms,
        "retry_wait_ms": result.timings.retry_wait_ms,
    }


LEGACY = {"recall_any": "recall_at_k", "recall_all": "recall_all_at_k", "precision": "precision_at_k",
          "mrr": "mrr", "scope_miss": "scope_miss", "attribution_hit": "attribution_hit"}  # fmt: skip
"""Flat names that other tools read, for the metrics at the configured cut-off."""
YES_OR_NO = ("scope_miss", "attribution_hit")


def legacy_names(scores: Mapping[str, Any], k: int) -> dict[str, Any]:
    """Return the values of `scores` by their flat legacy names; null for those without a value."""
    return {legacy: scores.get(at_k, scores.get(name)) for name, at_k, legacy in _legacy_at(k)}


@lru_cache
def _legacy_at(k: int) -> list[tuple[str, str, str]]:
    return [(name, f"{name}@{k}", legacy) for name, legacy in LEGACY.items()]


def _retrieval_metrics(scores: Mapping[str, float], k: int) -> dict[str, float | bool | None]:
    """Return scores by their legacy names, yes/no metrics as booleans."""
    values = legacy_names(scores, k)
    return values | {name: bool(value) for name in YES_OR_NO if (value := values[name]) is not None}


def _judged(obs: Observation | None, text: RecordTexts) -> dict[str, Any]:
    """Return the judgements by metric, groundedness and correctness again by themselves, and the judges."""
    judgements = {
        metric: _explained(judgement, metric, text)
        for judgement in (obs.judgements.values() if obs else ())
        for metric in judgement.scores
    }
    return {
        "groundedness": judgements.get("groundedness"),
        "correctness": judgements.get("correctness"),
        "judgements": judgements,
        "judge": _judge(obs, text),
    }


def _explained(judgement: Judgement, metric: str, text: RecordTexts) -> dict[str, Any]:
    return {
        "score": judgement.scores[metric],
        "reasoning": text(judgement.reasoning),
        "supported_claims": [text(claim) for claim in judgement.supported_claims],
        "unsupported_claims": [text(claim) for claim in judgement.unsupported_claims],
        "model": judgement.model,
        "heuristic": judgement.heuristic,
    }


def _judge(obs: Observation | None, text: RecordTexts) -> dict[str, Any] | None:
    judgements = list(obs.judgements.values()) if obs else []
    if not judgements:
        return None
    return {
        "model": judgements[0].model,
        "heuristic": judgements[0].heuristic,
        "prompt_versions": {judgement.rubric: judgement.prompt_version for judgement in judgements},
        "flags": {judgement.rubric: list(judgement.flags) for judgement in judgements if judgement.flags},
        "failed": {judgement.rubric: _error(judgement.error, text) for judgement in judgements if judgement.error},
        "served": sorted({served for judgement in judgements if (served := served_model(judgement)) is not None}),
    }


def _abstention(obs: Observation | None, scores: Mapping[str, float], text: RecordTexts) -> dict[str, Any] | None:
    if obs is None or obs.answer.text is None:
        return None
    try:
        abstained = abstention(obs)
    except FailedJudgement:
        return None
    hallucinated = scores.get("hallucinated", 0.0 if obs.case.answerable else None)
    return {
        "abstained": abstained.value,
        "hallucinated": None if hallucinated is None else hallucinated > 0,
        "decided_by": abstained.decided_by,
        "reason": text(obs.answer.abstain_reason),
    }


def _layers(scores: Mapping[str, float], registry: Registry) -> dict[str, dict[str, float]]:
    by_layer: dict[str, dict[str, float]] = {}
    for name, value in scores.items():
        by_layer.setdefault(registry.layer_of(name), {})[name] = value
    return {layer: by_layer[layer] for layer in LAYERS if layer in by_layer}


def _judge_input(obs: Observation, k: int, text: RecordTexts) -> dict[str, Any]:
    top = (obs.answer.chunks or ())[:k]
    return {
        "question": text(obs.case.question),
        "answer": text(obs.answer.text),
        "context_chunk_ids": [chunk.chunk_id for chunk in top],
        "context_chunks_truncated": [text(chunk.text) for chunk in top],
    }


def _cost(obs: Observation | None) -> dict[str, Any]:
    """Return what judging cost now and what the cache saved; a cached judgement costs nothing."""
    usage = dict(obs.answer.usage) or None if obs else None
    judgements = list(obs.judgements.values()) if obs else []
    if not judgements:
        return {**_NO_COST, "target_usage": usage}
    paid = [judgement for judgement in judgements if not judgement.cached]
    kept = [judgement for judgement in judgements if judgement.cached]
    is_free = bool(kept) and not paid
    return {
        "judge_tokens": 0 if is_free else _tokens(paid),
        "judge_cost_usd": 0.0 if is_free else _sum(judgement.cost_usd for judgement in paid),
        "judge_saved_usd": _sum(judgement.cost_usd for judgement in kept),
        "judgements": len(judgements),
        "judgements_cached": len(kept),
        "target_usage": usage,
    }


_UNKNOWN_COST = dict.fromkeys(("judge_tokens", "judge_cost_usd", "judge_saved_usd"))
_NO_COST = {**_UNKNOWN_COST, "judgements": 0, "judgements_cached": 0}


def _tokens(judgements: Iterable[Judgement]) -> int | None:
    total = _sum(tokens for judgement in judgements for tokens in (judgement.tokens_in, judgement.tokens_out))
    return None if total is None else int(total)


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum of the known amounts; None if all are unknown, which is not 0."""
    amounts = [value for value in values if value is not None]
    return math.fsum(amounts) if amounts else None


def _judgement(judgement: Judgement) -> dict[str, Any]:
    # Not `asdict`: it copies every text and list, 40 µs a judgement.
    members = ((name, getattr(judgement, name)) for name in _JUDGEMENT)
    written = {name: value for name, value in members if value not in (None, "", (), {})}
    return written if judgement.error is None else {**written, "error": asdict(judgement.error)}


_JUDGEMENT = tuple(field.name for field in fields(Judgement))
_TIMINGS = tuple(field.name for field in fields(Timings))
