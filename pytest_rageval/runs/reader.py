"""A stored run, read part by part: configuration, aggregates, records, observations, scores, and its state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json
from pytest_rageval.io.lock import is_locked
from pytest_rageval.io.messages import format_path, shown_value
from pytest_rageval.io.records import flaws_of
from pytest_rageval.io.sealed_lines import Place
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.model import Observation
from pytest_rageval.runs.case_place import conversation_unit
from pytest_rageval.runs.columns import CaseColumns, read_scores, scores_of_records
from pytest_rageval.runs.record_seal import Damage, records_damage
from pytest_rageval.runs.records.line_form import (
    OBSERVATION,
    OBSERVATIONS,
    RESULT,
    RESULTS,
)
from pytest_rageval.runs.records.observation_line import observation_of
from pytest_rageval.runs.records.record_files import Key, index, record_at, whole_records
from pytest_rageval.runs.run_ref import find_run

CONFIG = "config.json"
METRICS = "metrics.json"
RUN_ID = "%Y%m%d_%H%M%S"
State = Literal["complete", "partial", "interrupted", "being written", "broken"]


class File(NamedTuple):
    """One file of a run."""

    name: str
    bytes: int


@dataclass(frozen=True)
class StoredRun:
    """A folder below `reports/runs`, each part read on first access.

    A damaged part raises a SettingsError of one line that names its file.
    """

    path: Path

    @property
    def run_id(self) -> str:
        return self.path.name

    # ── small files ───────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _written_config(self) -> Mapping[str, Any]:
        return read_json(self.path / CONFIG, "run")

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """Return the content of config.json."""
        return checked_config(self._written_config, self.path / CONFIG)

    @cached_property
    def metrics(self) -> Mapping[str, Any] | None:
        """Return the content of metrics.json; None if the run has not ended."""
        path = self.path / METRICS
        if not path.exists():
            return None
        return checked_metrics(read_json(path, "run"), path)

    @property
    def finished_metrics(self) -> Mapping[str, Any]:
        """Return the content of metrics.json; raise SettingsError if the run has not ended."""
        if self.metrics is not None:
            return self.metrics
        if is_locked(self.path):
            raise SettingsError(f"run {self.run_id} is being written; wait until it has ended")
        raise SettingsError(f"run {self.run_id} was interrupted; finish it first with --rageval-resume {self.run_id}")

    @cached_property
    def scores(self) -> CaseColumns | None:
        """Return the outcome and scores of each case; None without a score table and without records."""
        scores = read_scores(self.path)
        if scores is None and (self.path / RESULTS).is_file():
            scores = scores_of_records(self.path / RESULTS)
        return scores

    # ── state ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> State:
        """Return the progress of the run, from its files and its lock."""
        try:
            # Read first, since a folder without a configuration holds no run, whatever else it holds.
            _ = self._written_config
            if self.metrics is not None:
                return "partial" if self.metrics["partial"] else "complete"
        except SettingsError:
            return "broken"
        return "being written" if is_locked(self.path) else "interrupted"

    @property
    def timestamp(self) -> datetime:
        """Return when the run ended, in UTC; if it did not end or cannot be read, when it began."""
        with suppress(SettingsError):
            if self.metrics and (written := self.metrics["volatile"].get("timestamp")):
                return datetime.fromisoformat(written).astimezone(UTC)
        try:  # the run's id, unless it was given another one
            return datetime.strptime(self.path.name[:15], RUN_ID).replace(tzinfo=UTC)
        except ValueError:
            return datetime.fromtimestamp((self.path / CONFIG).stat().st_mtime, UTC)

    @property
    def files(self) -> tuple[File, ...]:
        """Return the files directly in the folder, by name."""
        return tuple(sorted(File(entry.name, entry.lstat().st_size) for entry in self.path.iterdir()))

    # ── records ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def has_records(self) -> bool:
        return (self.path / RESULTS).is_file()

    @cached_property
    def _damage(self) -> Damage | None:
        if self.metrics is None or not self.has_records:
            return None
        return records_damage(self.path / RESULTS, self.config, self.metrics)

    @property
    def damage(self) -> str | None:
        """Return in one line how the records differ from those that the run wrote; None if they are whole.

        None also before the end of the run, and where the file was not brought along.
        """
        return self._damage.said if self._damage is not None else None

    @property
    def can_be_resumed(self) -> bool:
        """Return True if all records that are there are those of the run."""
        return self._damage is None or self._damage.can_be_resumed

    @property
    def undecidable(self) -> str | None:
        """Return why no case can be decided again: records are damaged, or not there at all; None if they are whole."""
        if self.has_records or not self.finished_metrics["total_tests"]:
            return self.damage
        return (
            f"run {self.run_id}: {RESULTS} is not there, so that no case can be decided; bring it along, or run it "
            "again"
        )

    def check_records(self) -> None:
        """Raise SettingsError if the records are not those that the run wrote: what is made of them would be false."""
        if self.undecidable is not None:
            raise SettingsError(self.undecidable)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records of results.jsonl, except a last line that was cut off."""
        yield from (record for _, record in whole_records([self.path / RESULTS], RESULT))

    def record_places(self) -> dict[Key, Place]:
        """Return the place of the last record of each case and trial."""
        return index([self.path / RESULTS], RESULT)

    def cases(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the last record of each trial, by case, in the order in which the cases were first recorded."""
        by_case: dict[str, list[tuple[int, Place]]] = {}
        for (key, trial), place in self.record_places().items():
            by_case.setdefault(key, []).append((trial, place))
        for places in by_case.values():
            yield [record_at(place) for _, place in sorted(places)]

    def find(self, reference: str) -> dict[str, Any]:
        """Return the last record of a case by key or id; raise SettingsError if it is unknown or the id ambiguous."""
        latest = {record["case_key"]: record for record in self.records()}
        if reference in latest:
            return latest[reference]
        namesakes = [record for record in latest.values() if record["test_case_id"] == reference]
        if len(namesakes) == 1:
            return namesakes[0]
        problem = f"{reference!r} is the id of {len(namesakes)} cases of run {self.run_id}; write one of "
        if namesakes:
            raise SettingsError(problem + ", ".join(record["case_key"] for record in namesakes))
        names: list[str] = []
        for record in latest.values():
            names += [record["test_case_id"], record["case_key"]]
            if record.get("conversation"):
                names.append(record["conversation"])
        raise SettingsError(f"run {self.run_id} has no case {reference!r}{did_you_mean(reference, names)}")

    def conversation(self, reference: str) -> str | None:
        """Return the key of the conversation with this id or key, `FILE::ID`; None if there is none.

        Raise SettingsError if conversations of several files have the id.
        """
        units: dict[str, None] = {}
        for record in self.records():
            unit = conversation_unit(record)
            if unit is not None and reference in (unit, record["conversation"]):
                units[unit] = None
        if len(units) > 1:
            problem = f"{reference!r} is the id of {len(units)} conversations of run {self.run_id}; write one of "
            raise SettingsError(problem + ", ".join(units))
        return next(iter(units), None)

    def observation_places(self) -> dict[Key, Place]:
        """Return the place of the last observation of each case and trial; empty if the run stores none."""
        return index([self.path / OBSERVATIONS], OBSERVATION)

    def observation(self, key: str, trial: int) -> Observation | None:
        """Return the observation of a trial; None if it ended in an error or the run stores none."""
        place = self.observation_places().get((key, trial))
        if place is None:
            return None
        record = record_at(place)
        return None if record["answer"] is None else observation_of(record, self.config)


def open_stored_run(reports: Path, reference: str, baseline: Path | None = None) -> StoredRun:
    """Open the run that a name refers to; see `run_ref.find_run`."""
    return StoredRun(find_run(reports, reference, baseline))


def run_level_names(metrics: Mapping[str, Any]) -> list[str]:
    """Return the names of the run-level metrics in a metrics.json."""
    return sorted(name for name, metric in metrics["metrics"].items() if metric["run_level"])


# ── what a run writes ─────────────────────────────────────────────────────────────────────────────────────────


class _Lenient(BaseModel):
    """The members of a file that readers rely on; others are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False, defer_build=True)


class _Metric(_Lenient):
    mean: float | None
    layer: str
    better: Literal["higher", "lower"]
    scale: list[float] = Field(min_length=2, max_length=2)
    run_level: bool

    @model_validator(mode="after")
    def _has_room(self) -> _Metric:
        if self.scale[0] >= self.scale[1]:
            raise ValueError("a scale ends above its beginning")
        return self


class _Judge(_Lenient):
    model: str
    heuristic: bool
    prompt_versions: dict[str, str]


def _date_and_time(written: str) -> str:
    try:
        datetime.fromisoformat(written)
    except ValueError:
        raise ValueError(f"is {shown_value(written)}, expected a date and time") from None
    return written


class _Volatile(_Lenient):
    timestamp: Annotated[str, AfterValidator(_date_and_time)] | None = None


class _Metrics(_Lenient):
    metrics: dict[str, _Metric]
    volatile: _Volatile
    outcomes: dict[str, int]
    partial: bool
    total_tests: int
    judge: _Judge | None
    overall_score: float | None = None
    description: str | None = None


class _Config(_Lenient):
    k: int
    dataset_hash: str
    settings: dict[str, Any]
    reported_fields: list[str] | None = None


def checked_config(content: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Return the content of a config.json, whatever its file; raise SettingsError if it is not one."""
    return _checked(content, path, _Config)


def checked_metrics(content: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Return the content of a metrics.json, whatever its file; raise SettingsError if it is not one."""
    return _checked(content, path, _Metrics)


def _checked(content: Mapping[str, Any], path: Path, form: type[_Lenient]) -> Mapping[str, Any]:
    """Validate content that may come from elsewhere: raise SettingsError instead of a traceback."""
    try:
        form.model_validate(content)
    except ValidationError as invalid:
        flaw = flaws_of(invalid, content, form)[0]
        problem = "is missing" if flaw.is_missing else flaw.message
        raise SettingsError(f"{path} is not what a run writes: {format_path(flaw.path)} {problem}") from None
    return content
