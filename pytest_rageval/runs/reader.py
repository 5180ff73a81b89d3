"""A run that was written, read back: its configuration, its records, and each case's observation as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_rageval.cases import case_from_mapping
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.matching import observe
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import EvalCase, Judgement, Observation, Source, Timings
from pytest_rageval.runs.run_ref import find_run
from pytest_rageval.targets.native_contract import answer_from_response


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One folder below `reports/runs`."""

    path: Path
    config: Mapping[str, Any]

    @property
    def run_id(self) -> str:
        return self.path.name

    def records(self) -> Iterator[dict[str, Any]]:
        """Lines of results.jsonl; a last line that was cut off is left out."""
        yield from _lines(self.path / "results.jsonl")

    def find(self, wanted: str) -> dict[str, Any]:
        """The last record of a case, by key or by id; SettingsError where there is none, or more than one by id."""
        latest = {record["case_key"]: record for record in self.records()}
        if wanted in latest:
            return latest[wanted]
        found = [record for record in latest.values() if record["test_case_id"] == wanted]
        if len(found) == 1:
            return found[0]
        if found:
            keys = ", ".join(record["case_key"] for record in found)
            raise SettingsError(f"{wanted!r} is the id of {len(found)} cases of run {self.run_id}; write one of {keys}")
        known = [name for record in latest.values() for name in (record["test_case_id"], record["case_key"])]
        raise SettingsError(f"run {self.run_id} has no case {wanted!r}{did_you_mean(wanted, known)}")

    def observation(self, key: str) -> Observation | None:
        """A case's observation; None where it was an error, or the run keeps none."""
        found = [line for line in _lines(self.path / "observations.jsonl") if line["case_key"] == key]
        return observation_of(found[-1], self.config) if found and found[-1]["answer"] is not None else None


def observation_of(record: Mapping[str, Any], config: Mapping[str, Any]) -> Observation | None:
    """The observation of a line of observations.jsonl, matched to its gold anew."""
    if record["k"] is None:
        return None
    judgements = {name: _judgement(name, one) for name, one in record["judgements"].items()}
    return observe(
        recorded_case(record),
        answer_from_response(record["answer"], record["case_key"]),
        k=record["k"],
        asked_k=record["asked_k"],
        judgements=judgements,
        timings=Timings(**record["timings"]),
        trial=record["trial"],
        gold_by=config["settings"]["gold_by"],
        params=record.get("params", {}),
    )


def recorded_case(record: Mapping[str, Any]) -> EvalCase:
    """The case of a line of observations.jsonl."""
    written = dict(record["case"])
    file, line = written.pop("source")
    return replace(case_from_mapping(written), source=Source(file, line))


def _judgement(rubric: str, written: Mapping[str, Any]) -> Judgement:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in written.items()}
    return Judgement(**{"rubric": rubric, "scores": {}} | values)


def open_stored_run(reports: Path, reference: str, baseline: Path | None = None) -> StoredRun:
    """The run that a name means; see `run_ref.find_run`."""
    folder = find_run(reports, reference, baseline)
    return StoredRun(folder, read_json(folder / "config.json", "run"))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of records; none where there is no file, and not a last one that was cut off."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield _line(line, f"{path}:{number}")
    except FileNotFoundError:
        return
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None


def _line(line: bytes, where: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise SettingsError(f"{where}: not JSON: {error}; was the file changed?") from None
    return record


# ── metrics.json of any age ───────────────────────────────────────────────────────────────────────────────────


def in_present_form(content: Mapping[str, Any], config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The content with `run_level` at each metric: files written before that key was do not hold it.

    It is then what the metric's declaration says, of a metric of the project's own that in the run's `config`; where
    nobody knows the metric any more, operations are taken for metrics of the run.
    """
    metrics = content.get("metrics")
    if not isinstance(metrics, Mapping):
        return dict(content)
    own = (config or {}).get("own_metrics", {})
    return dict(content) | {"metrics": {name: _completed(name, metric, own) for name, metric in metrics.items()}}


def _completed(name: str, metric: Any, own: Mapping[str, Any]) -> Any:
    if not isinstance(metric, Mapping) or "run_level" in metric:
        return metric
    bare, registry = name.partition("@")[0], load_registry()
    if bare in registry:
        is_run_level = registry[bare].run_level
    else:
        is_run_level = bool(own.get(bare, {}).get("run_level", metric.get("layer") == "operations"))
    return {**metric, "run_level": is_run_level}


def run_level_names(metrics: Mapping[str, Any]) -> list[str]:
    """The metrics of a metrics.json that are scored once a run, by name."""
    return sorted(name for name, metric in metrics["metrics"].items() if metric["run_level"])
