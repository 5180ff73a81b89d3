"""Checks of a line of results.jsonl or observations.jsonl: that it is a record, with the keys that readers rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_rageval.io.sealed_lines import DamagedLineError
from pytest_rageval.runs.records import SCHEMA


def check_result(record: Mapping[str, Any]) -> None:
    """Raise DamagedLineError unless this is a record as a run writes it to results.jsonl."""
    _check(record, _RESULT_KEYS)


def check_observation(record: Mapping[str, Any]) -> None:
    """Raise DamagedLineError unless this is a record as a run writes it to observations.jsonl."""
    _check(record, _OBSERVATION_KEYS)


def _check(record: Mapping[str, Any], keys: frozenset[str]) -> None:
    if "schema" in record and record["schema"] != SCHEMA:
        raise DamagedLineError(f"is of schema {record['schema']!r}, this version reads {SCHEMA}; run the cases again")
    if missing := keys - record.keys():
        raise DamagedLineError(f"is not a record: it has no {', '.join(sorted(missing))}")


_RESULT_KEYS = frozenset(
    {"schema", "case_key", "trial", "test_case_id", "content_hash", "answerable", "category", "difficulty", "domain",
     "tags", "requires_kg", "source", "gold", "outcome", "reason", "question", "answer", "references",
     "retrieved_chunks", "indexing_coverage", "versions", "latency", "groundedness", "correctness", "judge",
     "judge_input", "abstention", "scores", "score_details", "cost", "verdict", "error", "skipped_metrics", "attempts"}
)  # fmt: skip
_OBSERVATION_KEYS = frozenset(
    {"schema", "case_key", "trial", "case", "answer", "judgements", "asked_k", "k", "timings", "error"}
)
