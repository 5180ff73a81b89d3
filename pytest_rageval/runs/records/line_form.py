"""The form of both lines of a trial: their files and schema, their fields, and the check that a record has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Literal, NotRequired

from pydantic import StrictInt, StrictStr, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from pytest_rageval.io.sealed_lines import DamagedLineError, check_seal, unsealed
from pytest_rageval.model.case_fields import DESCRIPTIVE_NAMES

RESULTS = "results.jsonl"
OBSERVATIONS = "observations.jsonl"
SCHEMA = 2
"""The schema of both lines; those of schema 1 have no checksum."""
REPEATS_CREDENTIAL = "repeats_credential"
"""The member of both lines that marks an answer in which a credential was masked; other lines are without it."""
PHASES = ("folder_selection_ms", "retrieval_ms", "rerank_ms", "generation_ms")
"""The parts of a latency that the system reports."""


@dataclass(frozen=True, slots=True)
class RecordKind:
    """One of the two lines of a trial.

    file    its file in the folder of a run
    check   raises DamagedLineError unless a record is of this kind
    source  the member with the place of the case
    """

    file: str
    check: Callable[[Mapping[str, Any]], None]
    source: str


def check_result(record: Mapping[str, Any]) -> None:
    """Raise DamagedLineError unless this is a record of results.jsonl."""
    _check(record, _RESULT_KEYS)


def check_observation(record: Mapping[str, Any]) -> None:
    """Raise DamagedLineError unless this is a record of observations.jsonl."""
    _check(record, _OBSERVATION_KEYS)


RESULT = RecordKind(RESULTS, check_result, "source")
OBSERVATION = RecordKind(OBSERVATIONS, check_observation, "case")


def _check(record: Mapping[str, Any], keys: frozenset[str]) -> None:
    if "schema" in record and record["schema"] != SCHEMA:
        raise DamagedLineError(f"is of schema {record['schema']!r}, this version reads {SCHEMA}; run the cases again")
    check_members(record, keys)


def check_members(record: Mapping[str, Any], members: Set[str]) -> None:
    """Raise DamagedLineError if a record lacks one of these members."""
    if missing := members - record.keys():
        raise DamagedLineError(f"is not a record: it has no {', '.join(sorted(missing))}")


# ── parts of a record ─────────────────────────────────────────────────────────────────────────────────────────


class Members:
    """Some members of a record, read without building the others: 13 µs for a line of 3 kB instead of 21.

    needed         what every record has; a line without one of these is read in full, and checked
    where_written  what records of older runs may lack
    """

    def __init__(self, *needed: str, where_written: tuple[str, ...] = ()) -> None:
        fields: dict[str, Any] = dict.fromkeys(needed, Any) | dict.fromkeys(where_written, NotRequired[Any])
        fields |= {"schema": Literal[SCHEMA], "case_key": StrictStr, "trial": StrictInt}
        self._reader = TypeAdapter(TypedDict("Members", fields)).validator  # type: ignore[operator]

    def of(self, line: bytes) -> dict[str, Any] | None:
        """Return the members; None if the line is not as a run writes it."""
        try:
            check_seal(line)
            record: dict[str, Any] = self._reader.validate_json(line)
        except (DamagedLineError, ValidationError):
            return None
        return record


def record_of(line: bytes, kind: RecordKind | None = None, members: Members | None = None) -> dict[str, Any]:
    """Return the record of a line; DamagedLineError if it is not one, or not one of this kind.

    A record that has the `members` is not checked further, and holds nothing else.
    """
    if members is not None and (some := members.of(line)) is not None:
        return some
    record = unsealed(line)
    if not isinstance(record.get("case_key"), str) or not isinstance(record.get("trial"), int):
        raise DamagedLineError("is not a record: it names no case and trial")
    if kind is not None:
        kind.check(record)
    return record


# ── fields ────────────────────────────────────────────────────────────────────────────────────────────────────


NEEDED = (
    "schema",
    "case_key",
    "trial",
    "test_case_id",
    "content_hash",
    "answerable",
    "tags",
    "requires_kg",
    "gold",
    "outcome",
    "reason",
    "latency",
    "judge",
    "abstention",
    "scores",
    "cost",
    "verdict",
    "error",
    "skipped_metrics",
    "indexing_coverage",
    "versions",
)
WHERE_WRITTEN = (
    *DESCRIPTIVE_NAMES,
    "conversation",
    "turn",
    "conversational",
    "decision_hash",
    "requests",
    "operations",
    "attempts",
    "has_groups",
    "gold_answer",
    "doubt",
    "cause",
    "gate_causes",
    "metric_errors",
    "reported",
    "unread",
    "flags",
    "model_name",
    "confirms",
    "records",
    "rewrite",
    REPEATS_CREDENTIAL,
)

NOTED = Members(*NEEDED, where_written=WHERE_WRITTEN)
"""What rows need of a record, and what a run notes of it besides."""
KEYS = Members()
"""Case key and trial alone."""
_RESULT_KEYS = frozenset(
    {
        *NEEDED,
        "source",
        "question",
        "answer",
        "references",
        "retrieved_chunks",
        "groundedness",
        "correctness",
        "judge_input",
        "score_details",
        "attempts",
    }
)
_OBSERVATION_KEYS = frozenset(
    {"schema", "case_key", "trial", "case", "answer", "matching", "judgements", "asked_k", "k", "timings", "error"}
)
