"""The record of one trial in results.jsonl, whose texts are cut."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import zip_longest
from typing import Any, NamedTuple

from pytest_rageval.abstention.languages import untrained_language
from pytest_rageval.cases.canonical import content_hash
from pytest_rageval.config.settings import Settings
from pytest_rageval.io.sealed_lines import sealed_line
from pytest_rageval.judges.judge import asked_of, served_model
from pytest_rageval.matching.places import gold_kind, matching_fields
from pytest_rageval.metrics.abstention import abstention
from pytest_rageval.metrics.answer import answer_kinds
from pytest_rageval.model import (
    Answer,
    CaseResult,
    Chunk,
    EvalCase,
    FailedJudgement,
    GoldKind,
    Matching,
    Observation,
    Problem,
    Trace,
)
from pytest_rageval.model.case_fields import descriptions_of
from pytest_rageval.model.versions import is_version
from pytest_rageval.run.engine import Evaluation
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.decision_hash import decision_hash
from pytest_rageval.runs.row import PHASES, SCHEMA, legacy_names
from pytest_rageval.targets.native_contract import answer_to_response, misplaced_fields
from pytest_rageval.text import cut

CUT = 200
"""The length in characters of a text in results.jsonl."""
LONGEST_MESSAGE = 2_000
"""In characters; messages of this package are shorter."""


def result_record(
    result: CaseResult, plan: Plan, config_hash: str, overall: CaseResult | None = None
) -> dict[str, Any]:
    """Return one line of results.jsonl; see docs/runs.md for every field.

    `overall`: the result over all trials of the case, which the verdict is about; None with a single trial.
    """
    case, scores, timings = result.case, result.scores, result.timings
    obs, text = result.observation, RecordTexts(plan.settings)
    answer = obs.answer if obs else result.answer or _NO_ANSWER
    judged = obs if obs and obs.judgements else None
    kind = obs.matching.kind if obs else gold_kind(case.gold, plan.settings.gold_by)
    extra, phases = answer.extra, answer.latency
    flat = legacy_names(scores, plan.settings.k)
    for name in YES_OR_NO:
        if flat[name] is not None:
            flat[name] = bool(flat[name])
    # Most members of most records are empty: their functions are called for the others alone.
    return {
        "schema": SCHEMA,
        "case_key": result.key,
        **case_fields(case, plan, kind),
        "gold": kind,
        "outcome": result.outcome,
        "reason": text.reason(result) if result.reason is not None else None,
        "question": text(case.question),
        "reference_answers": text.all(case.gold.answers),
        "answer": text(answer.text),
        "references": [
            {"chunk_id": cited.chunk_id, "rel_path": cited.rel_path, "heading_path": cited.heading_path}
            for cited in answer.references or ()
        ],
        "retrieved_chunks": _chunks(answer.chunks, obs.matching if obs else _UNMATCHED, text) if answer.chunks else (),
        "folder_selection": _selection(answer, text),
        "model_name": extra.get("model_name"),
        "timestamp": extra.get("timestamp"),
        "meta": text.tree(extra["meta"]) if "meta" in extra else None,
        "config": config_hash,
        "indexing_coverage": answer.indexing_coverage,
        "latency": {
            # As we measured it; if nothing was called, as the system reports it, like its phases.
            "total_ms": timings.ask_ms if timings.ask_ms is not None else phases.get("total_ms"),
            "queue_ms": timings.queue_ms,
            **{phase: phases.get(phase) for phase in PHASES},
            "judge_ms": timings.judge_ms,
            "retry_wait_ms": timings.retry_wait_ms,
        },
        "retrieval_metrics": flat,
        **(_judged(judged, text) if judged else _UNJUDGED),
        "abstention": _abstention(obs, scores, text, plan) if obs and answer.text is not None else None,
        "layers": plan.registry.by_layer(scores),
        "scores": scores,
        "score_details": {name: text.detail(detail) for name, detail in result.details.items()},
        "trace": text.trace(answer.trace) if answer.trace is not None else None,
        "judge_input": _judge_input(judged, plan.settings.k, text) if judged else None,
        "cost": {**(_judge_cost(judged) if judged else _NO_COST), "target_usage": (obs and obs.answer.usage) or None},
        "verdict": verdict_record(result, overall or result),
        "error": _error(result.error, text),
        "skipped_metrics": result.skipped_metrics,
        "metric_errors": {name: text.message(why) for name, why in result.metric_errors.items()},
        **matching_fields(result, plan.place_rules),
        "versions": _versions(answer),
        "reported": _reported(answer),
        "unread": misplaced_fields(answer) if extra else [],
        "trial": result.trial,
        "attempts": result.attempts,
        "requests": timings.requests,
    }


_NO_ANSWER, _UNMATCHED = Answer(), Matching()
_UNJUDGED: Mapping[str, Any] = {"groundedness": None, "correctness": None, "judgements": {}, "judge": None}
_NO_COST: Mapping[str, Any] = {
    **dict.fromkeys(("judge_tokens", "judge_cost_usd", "judge_saved_usd")),
    "judgements": 0,
    "judgements_cached": 0,
}
YES_OR_NO = ("scope_miss", "attribution_hit")
"""Retrieval metrics that are booleans under their flat names."""


def case_fields(case: EvalCase, plan: Plan, kind: GoldKind | None = None) -> dict[str, Any]:
    """Return the fields of the case in its record: enough for every breakdown without the case file."""
    return {
        "test_case_id": case.id,
        "content_hash": content_hash(case),
        "decision_hash": decision_hash(case, kind or gold_kind(case.gold, plan.settings.gold_by), plan),
        "answerable": case.answerable,
        **descriptions_of(case),
        "tags": case.tags,
        "requires_kg": case.requires_kg,
        "has_groups": bool(case.gold.support_groups),
        "gold_answer": sorted(answer_kinds(case.gold)),
        "source": {"file": case.source.file, "line": case.source.line},
    }


def verdict_record(result: CaseResult, overall: CaseResult) -> dict[str, Any]:
    """Return the verdict of the gates on a case, and whether this trial alone passes them."""
    # False for a case whose gold no gate examined; None without gold or without an observation.
    has_gold = overall.observation is not None and (not overall.case.answerable or not overall.case.gold.is_empty)
    facts = {"facts_examined": False} if overall.has_ungated_facts else {}
    return {
        "passed": not overall.failed_gates and overall.error is None,
        "gates_held": overall.passed_gates,
        "failed_gates": [gate._asdict() for gate in overall.failed_gates],
        "gold_examined": overall.is_gold_examined or (False if has_gold else None),
        "unexamined": overall.unexamined,
        **facts,
        "unobserved": result.unobserved,
        "trial_passed": not result.failed_gates and result.error is None,
    }


def _chunks(chunks: Sequence[Chunk], matching: Matching, text: RecordTexts) -> list[dict[str, Any]]:
    """Return the retrieved chunks in rank order, each with the golds that it matches and how."""
    written = [
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
            "matches": sorted(golds) if golds else (),
        }
        for rank, (chunk, golds) in enumerate(zip_longest(chunks, matching.hits or ()), start=1)
    ]
    for match in matching.loose:
        written[match.at]["match"] = match.kind
    return written


def _selection(answer: Answer, text: RecordTexts) -> dict[str, Any] | None:
    if (selection := answer.folder_selection) is None:
        return None
    return {
        "folders": selection.folders,
        "reasoning": text(selection.reasoning),
        "fallback": selection.fallback,
        "extra": text.tree(selection.extra) or {},
    }


def _versions(answer: Answer) -> dict[str, Any] | None:
    """Return the versions that the system reports; the `model_name` of an uploaded answer counts as its `llm`."""
    versions, name = dict(answer.versions), answer.extra.get("model_name")
    if isinstance(name, str) and name and is_version(name):
        versions.setdefault("llm", name)
    return versions or None


def _reported(answer: Answer) -> list[str]:
    """Return the fields that the system reported besides its answer; the searched folders follow from a setting."""
    reported = [name for name in ("references", "chunks") if getattr(answer, name) is not None]
    if (trace := answer.trace) is not None:
        parts = (field.name for field in fields(trace) if field.name != "extra")
        reported += [f"trace.{name}" for name in parts if getattr(trace, name) is not None]
    return reported


def _error(problem: Problem | None, text: RecordTexts) -> dict[str, Any] | None:
    if problem is None:
        return None
    return {"kind": problem.kind, "message": text.message(problem.message), "raw": text(problem.raw)}


def _abstention(obs: Observation, scores: Mapping[str, float], text: RecordTexts, plan: Plan) -> dict[str, Any] | None:
    is_worded = obs.answer.abstained is None and obs.answer.text is not None and bool(obs.answer.text.strip())
    if is_worded and not plan.scores_answers:  # to read the wording takes a third of the time of a recorded case
        return None
    try:
        abstained = abstention(obs)
    except FailedJudgement:
        return None
    hallucinated = scores.get("hallucinated", 0.0 if obs.case.answerable else None)
    recorded: dict[str, Any] = {
        "abstained": abstained.value,
        "hallucinated": None if hallucinated is None else hallucinated > 0,
        "decided_by": abstained.decided_by,
        "reason": text(obs.answer.abstain_reason),
    }
    if abstained.value is None:
        recorded["undecided"] = True
    if abstained.decided_by == "phrasing" and (language := untrained_language(obs.answer.text or "")) is not None:
        recorded["untrained_language"] = language
    return recorded


# ── judgements ────────────────────────────────────────────────────────────────────────────────────────────────


def _judged(obs: Observation, text: RecordTexts) -> dict[str, Any]:
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
            "failed": {judgement.rubric: _error(judgement.error, text) for judgement in every if judgement.error},
            "served": sorted({served for judgement in every if (served := served_model(judgement)) is not None}),
        },
    }


def _judge_input(obs: Observation, k: int, text: RecordTexts) -> dict[str, Any]:
    top = (obs.answer.chunks or ())[:k]
    return {
        "question": text(obs.case.question),
        "answer": text(obs.answer.text),
        "context_chunk_ids": [chunk.chunk_id for chunk in top],
        "context_chunks_truncated": [text(chunk.text) for chunk in top],
    }


def _judge_cost(obs: Observation) -> dict[str, Any]:
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


# ── texts and lines ───────────────────────────────────────────────────────────────────────────────────────────


class RecordTexts:
    """Texts of a record in the form that the settings allow: whole, cut, or left out."""

    def __init__(self, settings: Settings) -> None:
        self._saves_traces, self._redacts = settings.save_traces, settings.redact
        self._longest = sys.maxsize if settings.store_full_text else CUT

    def __call__(self, text: str | None) -> str | None:
        if text is None or self._redacts:
            return None
        return text if len(text) <= self._longest else text[:CUT] + "…"

    def all(self, texts: Iterable[str] | None) -> list[str] | None:
        """Return each of several texts; None without texts or with `redact`."""
        return None if texts is None or self._redacts else [self(text) or "" for text in texts]

    def detail(self, detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return the details of a score; with `redact` only its numbers and booleans."""
        if self._redacts:
            return {name: value for name, value in detail.items() if isinstance(value, bool | int | float)}
        return {name: self.tree(value) for name, value in detail.items()}

    def message(self, message: str) -> str | None:
        """Return an error's message, which may quote what the system sent; None with `redact`."""
        return None if self._redacts else cut(message, LONGEST_MESSAGE)

    def reason(self, result: CaseResult) -> str | None:
        """Return the reason for the outcome; with `redact` only if skipped or xfailed, which quote no exception."""
        is_quotable = result.outcome in ("skipped", "xfailed") and result.error is None
        if result.reason is None or (self._redacts and not is_quotable):
            return None
        return cut(result.reason, LONGEST_MESSAGE)

    def tree(self, value: Any) -> Any:
        """Apply the limits to each text in a nested value; return None with `redact`."""
        if self._redacts:
            return None
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {name: self.tree(member) for name, member in value.items()}
        return [self.tree(item) for item in value] if isinstance(value, list | tuple) else value

    def trace(self, trace: Trace) -> Any:
        return self.tree(answer_to_response(Answer(trace=trace))["debug"]["trace"]) if self._saves_traces else None


class RecordLine(NamedTuple):
    """A line of results.jsonl and its record, so that the process that wrote the line need not parse it."""

    data: bytes
    record: Mapping[str, Any]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> RecordLine:
        """Write a record; raise ValueError or TypeError if strict JSON cannot hold it."""
        return cls(sealed_line(record), record)

    @property
    def text(self) -> str:
        """Return the line as text, to send between processes."""
        return self.data.decode()


def to_line(record: Mapping[str, Any]) -> str:
    """Return the record as a line with its checksum; raise ValueError or TypeError if it has no such form."""
    return RecordLine.of(record).text


def record_lines(evaluation: Evaluation, plan: Plan, config_hash: str) -> list[RecordLine]:
    """Return a line for each trial, without credentials."""
    return [
        RecordLine.of(plan.mask.value(result_record(result, plan, config_hash, evaluation.overall)))
        for result in evaluation.trials
    ]
