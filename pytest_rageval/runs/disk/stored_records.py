"""What readers rely on in a line of results.jsonl or observations.jsonl: its keys, and the kinds of their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from pytest_rageval.config.settings import Settings
from pytest_rageval.io.messages import Unsound
from pytest_rageval.io.records import RecordReader
from pytest_rageval.io.sealed_lines import DamagedLineError
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import CaseResult, EvalCase, Json
from pytest_rageval.plan import make_plan
from pytest_rageval.runs.records import SCHEMA, result_record

Keys = Mapping[str, frozenset[str]]


def check_result(record: Mapping[str, Any]) -> None:
    """DamagedLineError unless this is a record as a run writes it to results.jsonl."""
    _check(record, _RESULT_KEYS, _RESULT_PARTS, _RESULTS)


def check_observation(record: Mapping[str, Any]) -> None:
    """DamagedLineError unless this is a record as a run writes it to observations.jsonl."""
    _check(record, _OBSERVATION_KEYS, _OBSERVATION_PARTS, _OBSERVATIONS)


def _check(record: Mapping[str, Any], keys: frozenset[str], parts: Keys, reader: RecordReader[Any]) -> None:
    if missing := keys - record.keys():
        raise DamagedLineError(f"is not a record: it has no {', '.join(sorted(missing))}")
    schema = record["schema"]
    if schema == SCHEMA:  # with a checksum: it is what this version writes
        return
    if not isinstance(schema, int) or schema > SCHEMA:
        raise DamagedLineError(f"is of schema {schema}, which this version does not know; read it with a newer one")
    try:
        reader.read({name: record[name] for name in keys})
    except Unsound as unsound:
        raise DamagedLineError(f"is not a record: {'; '.join(map(str, unsound.findings.kept))}") from None
    for name, inner in parts.items():
        part = record[name]
        if part is not None and (lacking := inner - part.keys()):
            raise DamagedLineError(f"is not a record: {name} has no {', '.join(sorted(lacking))}")


# ── schema 1 ──────────────────────────────────────────────────────────────────────────────────────────────────

_RESULT_KEYS = frozenset(
    {"schema", "case_key", "trial", "test_case_id", "content_hash", "answerable", "category", "difficulty", "domain",
     "tags", "requires_kg", "source", "gold", "outcome", "reason", "question", "answer", "references",
     "retrieved_chunks", "indexing_coverage", "versions", "latency", "groundedness", "correctness", "judge",
     "judge_input", "abstention", "scores", "score_details", "cost", "verdict", "error", "skipped_metrics", "attempts"}
)  # fmt: skip
_RESULT_PARTS: Keys = {
    "source": frozenset({"file", "line"}),
    "latency": frozenset({"total_ms", "queue_ms", "judge_ms"}),
    "judge": frozenset({"model", "heuristic", "prompt_versions"}),
    "cost": frozenset({"judge_tokens", "judge_cost_usd", "target_usage", "judgements", "judgements_cached"}),
    "verdict": frozenset({"passed", "gates_held", "failed_gates"}),
    "error": frozenset({"kind", "message"}),
}
_OBSERVATION_KEYS = frozenset(
    {"schema", "case_key", "trial", "case", "answer", "judgements", "asked_k", "k", "timings", "error"}
)
_OBSERVATION_PARTS: Keys = {"case": frozenset({"source"}), "error": frozenset({"kind", "message"})}


@dataclass(frozen=True, slots=True)
class _FailedGate:
    metric: str
    threshold: str
    value: float | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class _Verdict:
    passed: bool
    gates_held: int
    failed_gates: list[_FailedGate]


@dataclass(frozen=True, slots=True)
class _Result:
    """The kinds of what a result holds; null is absent, so what may be null has a default."""

    case_key: str
    trial: int
    test_case_id: str
    content_hash: str
    answerable: bool
    tags: list[str]
    source: dict[str, Json]
    outcome: Literal["passed", "failed", "error", "skipped", "xfailed"]
    references: list[dict[str, Json]]
    retrieved_chunks: list[dict[str, Json]]
    latency: dict[str, float | None]
    scores: dict[str, float]
    score_details: dict[str, dict[str, Json]]
    cost: dict[str, Json]
    verdict: _Verdict
    skipped_metrics: dict[str, str | None]
    attempts: int
    category: str | None = None
    difficulty: str | None = None
    domain: str | None = None
    reason: str | None = None
    question: str | None = None
    answer: str | None = None
    judge: dict[str, Json] | None = None
    abstention: dict[str, Json] | None = None
    error: dict[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class _Observation:
    """The kinds of what an observation holds."""

    case_key: str
    trial: int
    case: dict[str, Json]
    judgements: dict[str, dict[str, Json]]
    timings: dict[str, float | None]
    answer: dict[str, Json] | None = None
    asked_k: int | None = None
    k: int | None = None
    error: dict[str, Json] | None = None


_RESULTS: RecordReader[_Result] = RecordReader(_Result, skips_unknown=True)
_OBSERVATIONS: RecordReader[_Observation] = RecordReader(_Observation, skips_unknown=True)


# ── for other programs ────────────────────────────────────────────────────────────────────────────────────────


def result_schema() -> dict[str, Json]:
    """JSON Schema (draft 2020-12) of a line of results.jsonl: every key that is written, with the kind of its value as
    far as readers rely on it."""
    plan = make_plan(Settings(), load_registry())
    written = result_record(CaseResult(EvalCase(id="", question=""), "error"), plan, "")
    kinds = TypeAdapter(_Result).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Result of a case",
        "description": f"One line of results.jsonl, schema {SCHEMA}; docs/runs.md says what each key means.",
        "type": "object",
        "properties": {name: kinds["properties"].get(name, {}) for name in written},
        "required": [*written],
        "$defs": kinds["$defs"],
    }
