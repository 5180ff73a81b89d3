"""Checks of a line of results.jsonl or observations.jsonl: that it is a record, with the keys that readers rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pytest_rageval.io.messages import Unsound
from pytest_rageval.io.sealed_lines import DamagedLineError
from pytest_rageval.runs.records import SCHEMA

Keys = Mapping[str, frozenset[str]]


def check_result(record: Mapping[str, Any]) -> None:
    """DamagedLineError unless this is a record as a run writes it to results.jsonl."""
    _check(record, _RESULT_KEYS, _RESULT_PARTS, "result")


def check_observation(record: Mapping[str, Any]) -> None:
    """DamagedLineError unless this is a record as a run writes it to observations.jsonl."""
    _check(record, _OBSERVATION_KEYS, _OBSERVATION_PARTS, "observation")


def _check(
    record: Mapping[str, Any], keys: frozenset[str], parts: Keys, what: Literal["result", "observation"]
) -> None:
    if missing := keys - record.keys():
        raise DamagedLineError(f"is not a record: it has no {', '.join(sorted(missing))}")
    schema = record["schema"]
    if schema == SCHEMA:  # with a checksum: it is what this version writes
        return
    if not isinstance(schema, int) or schema > SCHEMA:
        raise DamagedLineError(f"is of schema {schema}, which this version does not know; read it with a newer one")
    from pytest_rageval.runs.disk.stored_kinds import READERS  # here, because what this version writes needs none

    try:
        READERS[what].read({name: record[name] for name in keys})
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
