"""Lines of results.jsonl with what rows and lists need of them alone: half of the time that whole records take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic_core import SchemaValidator, ValidationError, core_schema

from pytest_rageval.io.line_index import lines_of, record_in
from pytest_rageval.io.sealed_lines import DamagedLineError, check_seal
from pytest_rageval.runs.records import SCHEMA

NEEDED = ("schema", "case_key", "test_case_id", "trial", "content_hash", "answerable", "category", "difficulty",
          "domain", "tags", "requires_kg", "gold", "source",
          "outcome", "reason", "question", "answer", "latency", "judge", "abstention",
          "scores", "cost", "verdict", "error", "skipped_metrics")  # fmt: skip
WHERE_WRITTEN = ("decision_hash", "requests", "has_groups", "gold_answer")
# Whatever else a line holds (chunks, details, traces) is never made into objects: 13 µs a line of 3 kB instead of 21.
_READER = SchemaValidator(
    core_schema.typed_dict_schema(
        {name: core_schema.typed_dict_field(core_schema.any_schema(), required=True) for name in NEEDED}
        | {name: core_schema.typed_dict_field(core_schema.any_schema(), required=False) for name in WHERE_WRITTEN},
        extra_behavior="ignore",
    )
)


def row_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file, in order; a last line that was cut off is left out, any other damage a SettingsError."""
    for place, line in lines_of(path):
        if line.endswith(b"\n"):
            record = _slim(line)
            yield record_in(line, place, check_result) if record is None else record


def _slim(line: bytes) -> dict[str, Any] | None:
    """None of a line that is not what this version writes: it is read as a whole, and refused."""
    try:
        check_seal(line)
        record: dict[str, Any] = _READER.validate_json(line)
        if record["schema"] == SCHEMA and isinstance(record["case_key"], str) and isinstance(record["trial"], int):
            return record
    except (DamagedLineError, ValidationError):
        pass
    return None


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
