"""Which run does a reference mean, and what is known of it: scores always, configuration and texts where they are?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pytest_rageval.compare.baseline import Baseline, read_baseline
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json
from pytest_rageval.runs.reader import StoredRun, open_stored_run
from pytest_rageval.runs.score_table import Scores, read_scores, scores_of_records


@dataclass(frozen=True, slots=True)
class Side:
    """One of two things that are compared.

    `name` is what the user called it. `metrics` is the content of metrics.json. `config` and `run` are None where
    nothing tells the configuration and there are no records. `scores` is None for aggregates alone: means, no cases.
    """

    name: str
    metrics: Mapping[str, Any]
    scores: Scores | None
    config: Mapping[str, Any] | None = None
    run: StoredRun | None = None
    note: str | None = None

    @property
    def run_id(self) -> str:
        return str(self.metrics["volatile"].get("run_id") or self.name)

    @property
    def has_records(self) -> bool:
        return self.run is not None and (self.run.path / "results.jsonl").is_file()


def open_side(reports: Path, baseline: Path, wanted: str) -> Side:
    """What a reference means: `baseline`, a file of metrics or a baseline, else a run as `open_run` knows it.

    SettingsError where there is no such thing, or it is not finished.
    """
    if wanted == "baseline":
        return _of_baseline(wanted, baseline, reports)
    path = Path(wanted)
    if not path.is_file():
        return _of_run(wanted, open_stored_run(reports, wanted))
    if path.name == "metrics.json" and (path.parent / "config.json").is_file():
        return _of_run(wanted, open_stored_run(reports, str(path.parent)))
    if "cases" in read_json(path, "compare"):
        return _of_baseline(wanted, path, reports)
    return _of_metrics(wanted, path, reports)


def _of_run(wanted: str, run: StoredRun) -> Side:
    file = run.path / "metrics.json"
    if not file.is_file():
        raise SettingsError(f"run {wanted!r} did not finish: it has no metrics.json; pytest --rageval-resume ends it")
    metrics = _metrics(file)
    _check(run.config, run.path / "config.json", _Config)
    records = run.path / "results.jsonl"
    scores = read_scores(run.path)
    if scores is None and records.is_file():
        scores = scores_of_records(records)
    return Side(wanted, metrics, scores, run.config, run, None if scores else _only_means(wanted))


def _of_baseline(wanted: str, path: Path, reports: Path) -> Side:
    baseline: Baseline | None = read_baseline(path, is_required=True)
    assert baseline is not None  # because it is required
    _check(baseline.metrics, path)
    if run := _at_hand(baseline.metrics, reports):
        known = read_scores(run.path)
        scores = Scores.of(baseline.cases, known.categories if known else None)
        return Side(wanted, baseline.metrics, scores, run.config, run)
    note = (
        f"{wanted} holds no texts, and its run {baseline.run_id} is not in {reports / 'runs'}: "
        "of its cases the outcomes and scores are shown"
    )
    if baseline.config is not None:
        _check(baseline.config, path, _Config)
    return Side(wanted, baseline.metrics, Scores.of(baseline.cases), baseline.config, None, note)


def _of_metrics(wanted: str, path: Path, reports: Path) -> Side:
    metrics = _metrics(path)
    run = _at_hand(metrics, reports)
    if run is not None:
        return _of_run(wanted, run)
    return Side(wanted, metrics, None, note=_only_means(wanted))


def _only_means(wanted: str) -> str:
    return f"{wanted} holds no cases: means are compared as they are, without pairing and without evidence"


def _at_hand(metrics: Mapping[str, Any], reports: Path) -> StoredRun | None:
    """The run that these metrics are of, if its folder is still there and is the same run."""
    run_id = metrics["volatile"].get("run_id")
    if not isinstance(run_id, str) or not run_id or Path(run_id).name != run_id:
        return None
    folder = reports / "runs" / run_id
    if not all((folder / name).is_file() for name in ("config.json", "metrics.json")):
        return None
    there = read_json(folder / "metrics.json", "compare")
    is_same = all(there.get(name) == metrics.get(name) for name in ("config_hash", "metrics", "outcomes"))
    if not is_same:
        return None
    run = StoredRun(folder, read_json(folder / "config.json", "compare"))
    _check(run.config, folder / "config.json", _Config)
    return run


def _metrics(path: Path) -> dict[str, Any]:
    metrics = read_json(path, "compare")
    _check(metrics, path)
    return metrics


class _Lenient(BaseModel):
    """What the comparison reads; whatever else a file holds is let be."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class _Metric(_Lenient):
    mean: float | None
    layer: str
    better: Literal["higher", "lower"]
    scale: list[float] = Field(min_length=2, max_length=2)

    @model_validator(mode="after")
    def _has_room(self) -> _Metric:
        if self.scale[0] >= self.scale[1]:
            raise ValueError("a scale ends above its beginning")
        return self


class _Judge(_Lenient):
    model: str
    heuristic: bool
    prompt_versions: dict[str, str]


class _Metrics(_Lenient):
    metrics: dict[str, _Metric]
    volatile: dict[str, Any]
    outcomes: dict[str, int]
    partial: bool
    total_tests: int
    judge: _Judge | None


class _Config(_Lenient):
    k: int
    dataset_hash: str
    settings: dict[str, Any]
    reported_fields: list[str] | None = None


def _check(content: Mapping[str, Any], path: Path, what: type[_Lenient] = _Metrics) -> None:
    """SettingsError unless this is what a run writes: a file from elsewhere must not end in a traceback."""
    try:
        what.model_validate(content)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise SettingsError(f"compare: {path}: not what a run writes: {place}: {first['msg']}") from None
