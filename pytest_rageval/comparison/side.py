"""One of two things that are compared: a run, a baseline, or a file of aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.baseline import read_baseline
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json
from pytest_rageval.runs.columns import Scores
from pytest_rageval.runs.reader import StoredRun, checked_config, checked_metrics, open_stored_run


@dataclass(frozen=True, slots=True)
class Side:
    """What is known of one side: scores always, configuration and texts where they are.

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
        return self.run is not None and self.run.has_records


def open_side(reports: Path, baseline: Path, reference: str) -> Side:
    """What a reference means: `baseline`, a file of metrics or a baseline, else a run by any of its names.

    SettingsError where there is no such thing, or it is not finished.
    """
    if reference == "baseline":
        return _of_baseline(reference, baseline, reports)
    path = Path(reference)
    if not path.is_file() or (path.parent / "config.json").is_file():
        return _of_run(reference, open_stored_run(reports, reference, baseline))
    content = read_json(path, "compare")
    if "cases" in content:
        return _of_baseline(reference, path, reports)
    metrics = checked_metrics(content, path)
    run = _run_of(metrics, reports)
    return _of_run(reference, run) if run else Side(reference, metrics, None, note=_only_means(reference))


def _of_run(name: str, run: StoredRun) -> Side:
    note = None if run.scores else _only_means(name)
    return Side(name, run.finished_metrics, run.scores, run.config, run, note)


def _of_baseline(name: str, path: Path, reports: Path) -> Side:
    baseline = read_baseline(path, is_required=True)
    assert baseline is not None  # because it is required
    metrics = baseline.metrics
    if run := _run_of(metrics, reports):
        categories = run.scores.categories if run.scores else None
        return Side(name, metrics, Scores(baseline.columns, categories or {}), run.config, run)
    note = (
        f"{name} holds no texts, and its run {baseline.run_id} is not in {reports / 'runs'}: "
        "of its cases the outcomes and scores are shown"
    )
    config = None if baseline.config is None else checked_config(baseline.config, path)
    return Side(name, metrics, Scores(baseline.columns, {}), config, None, note)


def _only_means(name: str) -> str:
    return f"{name} holds no cases: means are compared as they are, without pairing and without evidence"


def _run_of(metrics: Mapping[str, Any], reports: Path) -> StoredRun | None:
    """The run that these metrics are of, if its folder is still there and is the same run."""
    run_id = metrics["volatile"].get("run_id")
    if not isinstance(run_id, str) or not run_id or Path(run_id).name != run_id:
        return None
    run = StoredRun(reports / "runs" / run_id)
    try:
        stored = run.metrics
    except SettingsError:
        return None
    is_same = stored is not None and all(
        stored.get(name) == metrics.get(name) for name in ("config_hash", "metrics", "outcomes")
    )
    return run if is_same else None
