"""A run for other programs: each record once, in the order of the keys, read one at a time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.line_index import Key, Place, index, record_in
from pytest_rageval.runs.disk.reader import OBSERVATIONS, RESULTS, StoredRun
from pytest_rageval.runs.disk.resume import journals
from pytest_rageval.runs.disk.stored_records import check_observation, check_result

FIELDS = ("case_key", "test_case_id", "trial", "category", "difficulty", "domain", "tags", "answerable", "outcome",
          "reason", "question", "answer", "failed_gates", "total_ms", "error")  # fmt: skip
"""Columns of the flat formats, in front of a column for each metric."""


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A stored run, looked through once: where its records stand, and what was measured.

    metrics     content of metrics.json; None where the run did not finish
    measured    names of the metrics of cases, as configured; what a column is for
    full        where the complete observations stand, for records with their texts uncut; None: as they were recorded
    notes       what a person should know, a line each
    watch       sees the list of keys go by as their records are read: for a progress bar
    """

    run: StoredRun
    metrics: Mapping[str, Any] | None
    measured: tuple[str, ...]
    places: Mapping[Key, Place]
    full: Mapping[Key, Place] | None
    notes: tuple[str, ...]
    watch: Callable[[Sequence[Key]], Iterable[Key]] = iter

    def __len__(self) -> int:
        return len(self.places)

    def records(self) -> Iterator[dict[str, Any]]:
        """Each case and trial once, by key and trial."""
        full = self.full or {}
        with ExitStack() as files:
            paths = {place.path for place in (*self.places.values(), *full.values())}
            opened = {path: files.enter_context(path.open("rb")) for path in paths}
            for key in self.watch(sorted(self.places)):
                place = self.places[key]
                record = _read(opened[place.path], place)
                if key in full:
                    _with_texts(record, _read(opened[full[key].path], full[key]))
                yield record

    def columns(self) -> tuple[str, ...]:
        """Names of the flat formats: the fields, and the metrics; one that is called like a field as `metric.NAME`."""
        return (*FIELDS, *(f"metric.{name}" if name in FIELDS else name for name in self.measured))

    def row(self, record: Mapping[str, Any]) -> list[Any]:
        """A record as a value for each column: texts, numbers, booleans, None."""
        return [*flat(record).values(), *(record["scores"].get(name) for name in self.measured)]


def look_through(run: StoredRun, *, full_text: bool = False) -> ExportSource:
    """Find the records of a run, also of one that did not finish; SettingsError where there are none."""
    notes: list[str] = []
    scored: set[str] = set()

    def see(record: dict[str, Any]) -> None:
        check_result(record)
        scored.update(record["scores"], record["skipped_metrics"])

    places = index(
        [run.path / RESULTS, *journals(run.path, RESULTS)],
        notes,
        see,
    )
    if not places:
        raise SettingsError(f"run {run.run_id} has no results; there is nothing to export", *notes)
    metrics = run.metrics
    if metrics is None:
        notes.append(f"run {run.run_id} did not finish: no aggregates, and {len(places)} of its results")
    configured = [name for name in run.config.get("metrics") or () if name in scored]
    measured = (*configured, *sorted(scored.difference(configured)))
    return ExportSource(run, metrics, measured, places, _observations(run, notes) if full_text else None, tuple(notes))


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a record by the names of `FIELDS`."""
    error = record["error"]
    return {name: record.get(name) for name in FIELDS} | {
        "tags": ", ".join(record["tags"]),
        "failed_gates": "; ".join(map(_failed, record["verdict"]["failed_gates"])) or None,
        "total_ms": record["latency"]["total_ms"],
        "error": ": ".join(filter(None, (error["kind"], error["message"]))) if error else None,
    }


def _failed(gate: Mapping[str, Any]) -> str:
    tag = f" ({gate['tag']})" if gate["tag"] else ""
    return f"{gate['metric']} is {gate['value']:.4g}, gate {gate['threshold']}{tag}"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside this one, which takes its place when all went well, and is gone otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        yield temporary
        os.fsync(handle)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        os.close(handle)
        temporary.unlink(missing_ok=True)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def _observations(run: StoredRun, notes: list[str]) -> dict[Key, Place]:
    files = [run.path / OBSERVATIONS, *journals(run.path, OBSERVATIONS)]
    if not any(path.exists() for path in files):
        raise SettingsError(
            f"run {run.run_id} keeps no observations.jsonl, and so no full texts; leave out --full-text"
        )
    return index(files, notes, check_observation)


def _read(file: BinaryIO, place: Place) -> dict[str, Any]:
    file.seek(place.offset)
    return record_in(file.read(place.length), place)


def _with_texts(record: dict[str, Any], observation: Mapping[str, Any]) -> None:
    """Put uncut texts into a record: question, answer, chunks, and what a judge said of it."""
    record["question"] = observation["case"]["question"]
    answer = observation["answer"] or {}
    record["answer"] = answer.get("answer", record["answer"])
    chunks = (answer.get("debug") or {}).get("retrieved_chunks") or []
    for shown, chunk in zip(record["retrieved_chunks"], chunks, strict=False):
        shown["text"] = chunk.get("text", shown["text"])
    for metric in ("groundedness", "correctness"):
        judgements = observation["judgements"].values()
        judgement = next((judgement for judgement in judgements if metric in judgement.get("scores", ())), None)
        if record[metric] is not None and judgement is not None:
            texts = ("reasoning", "supported_claims", "unsupported_claims")
            record[metric] |= {name: judgement[name] for name in texts if name in judgement}
    if record["judge_input"] is not None:
        kept = len(record["judge_input"]["context_chunks_truncated"])
        record["judge_input"] |= {
            "question": record["question"],
            "answer": record["answer"],
            "context_chunks_truncated": [chunk["text"] for chunk in record["retrieved_chunks"][:kept]],
        }
