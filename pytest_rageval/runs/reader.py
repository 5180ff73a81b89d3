"""A run that was written, read back: its configuration, its records, and each case's observation as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pytest_rageval.cases import case_from_mapping
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json
from pytest_rageval.matching import observe
from pytest_rageval.model import EvalCase, Judgement, Observation, Source, Timings
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
        near = get_close_matches(wanted, known, n=1)
        remedy = f"; did you mean {near[0]!r}?" if near else ""
        raise SettingsError(f"run {self.run_id} has no case {wanted!r}{remedy}")

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
        refusals=tuple(config["settings"].get("abstention", {}).get("phrases", ())),
    )


def recorded_case(record: Mapping[str, Any]) -> EvalCase:
    """The case of a line of observations.jsonl."""
    written = dict(record["case"])
    file, line = written.pop("source")
    return replace(case_from_mapping(written), source=Source(file, line))


def _judgement(rubric: str, written: Mapping[str, Any]) -> Judgement:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in written.items()}
    return Judgement(**{"rubric": rubric, "scores": {}} | values)


def open_run(reports: Path, wanted: str) -> StoredRun:
    """The run of this id, `latest` or `latest~1`; a path to a run's folder works too."""
    runs = reports / "runs"
    known = [path.name for path in in_time(runs)]
    name = wanted
    if wanted == "latest" or wanted.startswith("latest~"):
        back = wanted.partition("~")[2] or "0"
        if not back.isdecimal() or int(back) >= len(known):
            raise SettingsError(f"run {wanted!r}: {runs} holds {len(known)} runs")
        name = known[-1 - int(back)]
    path = runs / name if name in known else Path(wanted)
    if not (path / "config.json").is_file():
        last = f"; the last ones are {', '.join(known[-3:])}" if known else f"; {runs} holds no runs"
        raise SettingsError(f"there is no run {wanted!r}{last}")
    return StoredRun(path, read_json(path / "config.json", "run"))


def in_time(runs: Path) -> list[Path]:
    """The folders of runs in the order in which these were begun, whatever they are called."""
    folders = (path.parent for path in runs.glob("*/config.json"))
    return sorted(folders, key=lambda path: (_begun(path), path.name))


def _begun(folder: Path) -> float:
    """When a run was begun, in seconds; of one that does not say so, when its configuration was written."""
    path = folder / "config.json"
    try:
        return datetime.fromisoformat(json.loads(path.read_bytes())["begun"]).timestamp()
    except (OSError, ValueError, TypeError, KeyError):
        return path.stat().st_mtime


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
