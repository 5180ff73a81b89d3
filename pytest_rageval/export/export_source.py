"""The source of an export: each record of a run once, in key order, read one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rageval.comparison.gate_lines import failed_gate
from pytest_rageval.errors import SettingsError
from pytest_rageval.export.exported_calls import CALLS, call_columns
from pytest_rageval.export.exported_calls import COLUMNS as CALL_COLUMNS
from pytest_rageval.io.json_text import harmless, json_text
from pytest_rageval.io.sealed_lines import Place
from pytest_rageval.metrics.calls import OPERATION_UNITS
from pytest_rageval.model.case_fields import DESCRIPTIVE_NAMES
from pytest_rageval.runs.ratings import Rating, read_ratings, with_rating
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import OBSERVATION, OBSERVATIONS, RESULT, RESULTS
from pytest_rageval.runs.records.record_files import Key, index, record_at, record_paths, record_texts, whole_records

FIELDS = (
    "case_key",
    "test_case_id",
    "trial",
    "conversation",
    "turn",
    *DESCRIPTIVE_NAMES,
    "tags",
    "answerable",
    "outcome",
    "reason",
    "question",
    "answer",
    "reference_answers",
    "model_name",
    "timestamp",
    "meta",
    "failed_gates",
    *OPERATION_UNITS,
    *CALL_COLUMNS,
    "error",
    "thumb",
    "note",
)
"""The columns of the flat formats before the metrics."""
FLAT = "flat"
"""The member of a record under way to a flat format that holds the values of these columns."""


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A stored run after one pass: the places of its records, and what was measured.

    metrics     content of metrics.json; None if the run did not finish
    measured    names of the case metrics as configured, a column each
    judged      names of the metrics that a judge explained, a column each
    full        places of the complete observations, for records with uncut texts; None for records as stored
    calls       places of the complete observations, for the tool calls; None if no record has any
    notes       lines that the user should read
    watch       wraps the list of keys while their records are read, for a progress bar
    """

    run: StoredRun
    metrics: Mapping[str, Any] | None
    measured: tuple[str, ...]
    judged: tuple[str, ...]
    places: Mapping[Key, Place]
    full: Mapping[Key, Place] | None
    calls: Mapping[Key, Place] | None
    notes: tuple[str, ...]
    watch: Callable[[Sequence[Key]], Iterable[Key]] = iter

    def __len__(self) -> int:
        return len(self.places)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the record of each case and trial, in key order."""
        full = self.full or {}
        ratings = read_ratings(self.run.path)
        for key in self.watch(sorted(self.places)):
            record = with_rating(record_at(self.places[key]), ratings)
            if key in full:
                _with_texts(record, record_at(full[key]))
            yield record

    def flat_records(self) -> Iterator[dict[str, Any]]:
        """Yield the records with the values of `FIELDS`, in key order, for the flat formats."""
        calls = self.calls or {}
        for record in self.records():
            key = (record["case_key"], record["trial"])
            if record.get("tool_calls") is not None and key in calls:
                record[CALLS] = (record_at(calls[key])["answer"] or {}).get("tool_calls")
            record[FLAT] = flat(record, is_full=self.full is not None)
            yield record

    def texts(self) -> Iterator[str]:
        """Yield each record as JSON on one line, in the same order; do not parse lines with a correct checksum."""
        if self.full is not None:
            yield from (json_text(record, None) for record in self.records())
            return
        ratings = read_ratings(self.run.path)
        keys = self.watch(sorted(self.places))
        if ratings:
            for key in keys:
                yield from self._texts_of(key, ratings)
            return
        yield from map(harmless, record_texts(self.places[key] for key in keys))

    def _texts_of(self, key: Key, ratings: Mapping[str, Rating]) -> Iterator[str]:
        """Yield the record of a key as JSON, with its rating if it has one."""
        if key[0] in ratings:
            yield json_text(with_rating(record_at(self.places[key]), ratings), None)
        else:
            yield from map(harmless, record_texts([self.places[key]]))

    def columns(self) -> tuple[str, ...]:
        """Return the flat columns: fields, metrics, `NAME.explanation` of judged metrics, and `origin.NAME`.

        A metric with the name of a field is called `metric.NAME`.
        """
        scores = [f"metric.{name}" if name in FIELDS else name for name in self.measured]
        explanations = [f"{name}.explanation" for name in self.judged]
        origin = [f"origin.{name}" for name in self.origin]
        return (*FIELDS, *scores, *explanations, *origin)

    @property
    def origin(self) -> Mapping[str, Any]:
        """Return agent, dataset, their versions and the answers' source; empty unless the run began in the browser."""
        return self.run.config.get("origin") or {}

    def row(self, record: Mapping[str, Any]) -> list[Any]:
        """Return a record of `flat_records` with a value for each column: text, number, boolean or None."""
        scores = (record["scores"].get(name) for name in self.measured)
        judgements = record.get("judgements") or {}
        explanations = (judgements.get(name, {}).get("reasoning") for name in self.judged)
        return [*record[FLAT].values(), *scores, *explanations, *self.origin.values()]


def look_through(run: StoredRun, *, full_text: bool = False) -> ExportSource:
    """Find the records of a run, finished or not; raise SettingsError if there are none."""
    notes: list[str] = []
    scored: set[str] = set()
    judged: set[str] = set()

    places: dict[Key, Place] = {}
    has_calls = False
    for place, record in whole_records(record_paths(run.path, RESULTS), RESULT, notes):
        places[record["case_key"], record["trial"]] = place
        scored.update(record["scores"], record["skipped_metrics"])
        judged.update(record.get("judgements") or ())
        has_calls = has_calls or record.get("tool_calls") is not None
    if not places:
        raise SettingsError(f"run {run.run_id} has no results; there is nothing to export", *notes)
    metrics = run.metrics
    if metrics is None:
        notes.append(f"run {run.run_id} did not finish: no aggregates, and {len(places)} of its results")
    if run.damage is not None:
        notes.append(run.damage)
    configured = [name for name in run.config.get("metrics") or () if name in scored]
    measured = (*configured, *sorted(scored.difference(configured)))
    full = _observations(run, notes) if full_text else None
    calls = full
    if has_calls and full is None:
        calls = index(record_paths(run.path, OBSERVATIONS), OBSERVATION, notes)
    return ExportSource(
        run,
        metrics=metrics,
        measured=measured,
        judged=tuple(sorted(judged)),
        places=places,
        full=full,
        calls=calls,
        notes=tuple(notes),
    )


def flat(record: Mapping[str, Any], *, is_full: bool = False) -> dict[str, Any]:
    """Return the values of a record by the names of `FIELDS`; `is_full`: without cutting texts of tool calls."""
    values = {name: record.get(name) for name in FIELDS}
    values["tags"] = ", ".join(record["tags"])
    values["reference_answers"] = " | ".join(record.get("reference_answers") or ()) or None
    values["model_name"] = _as_text(record.get("model_name"))
    values["timestamp"] = _as_text(record.get("timestamp"))
    values["meta"] = as_json(record.get("meta"))
    values["failed_gates"] = "; ".join(map(failed_gate, record["verdict"]["failed_gates"])) or None
    operations = record.get("operations") or {}
    values |= {name: operations.get(name) for name in OPERATION_UNITS}
    values |= call_columns(record, is_full=is_full)
    error = record["error"]
    values["error"] = ": ".join(filter(None, (error["kind"], error["message"]))) if error else None
    return values


def _as_text(value: Any) -> str | None:
    return value if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str | None:
    """Return strict JSON; None for None."""
    return None if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False)


def _observations(run: StoredRun, notes: list[str]) -> dict[Key, Place]:
    files = record_paths(run.path, OBSERVATIONS)
    if not files:
        raise SettingsError(
            f"run {run.run_id} keeps no observations.jsonl, and so no full texts; leave out --full-text"
        )
    return index(files, OBSERVATION, notes)


def _with_texts(record: dict[str, Any], observation: Mapping[str, Any]) -> None:
    """Put uncut texts into a record: question, answer, chunks and judgements."""
    record["question"] = observation["case"]["question"]
    answer = observation["answer"] or {}
    record["answer"] = answer.get("answer", record["answer"])
    chunks = (answer.get("debug") or {}).get("retrieved_chunks") or []
    for shown, chunk in zip(record["retrieved_chunks"], chunks, strict=False):
        shown["text"] = chunk.get("text", shown["text"])
    # The uncut references, and the `meta` of an uploaded answer.
    references = (observation["case"].get("gold") or {}).get("answer")
    if references is not None:
        record["reference_answers"] = [references] if isinstance(references, str) else references
    if answer.get("meta") is not None:
        record["meta"] = answer["meta"]
    for judgement in observation["judgements"].values():
        _explain(record, judgement)
    if record["judge_input"] is not None:
        kept = len(record["judge_input"]["context_chunks_truncated"])
        record["judge_input"] |= {
            "question": record["question"],
            "answer": record["answer"],
            "context_chunks_truncated": [chunk["text"] for chunk in record["retrieved_chunks"][:kept]],
        }


def _explain(record: Mapping[str, Any], judgement: Mapping[str, Any]) -> None:
    """Put the uncut explanations of a judgement in each place of the record that shows one of its scores."""
    texts = ("reasoning", "supported_claims", "unsupported_claims")
    uncut = {name: judgement[name] for name in texts if name in judgement}
    flat_names = {name: record[name] for name in ("groundedness", "correctness")}
    for metric in judgement.get("scores", ()):
        for place in (flat_names, record.get("judgements") or {}):
            explained = place.get(metric)
            if explained is not None:
                explained |= uncut
