"""Kinds of the values in a line of results.jsonl, for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from pytest_rageval.config.settings import Settings
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import CaseResult, EvalCase, Json
from pytest_rageval.plan import make_plan
from pytest_rageval.runs.records import SCHEMA, result_record


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
