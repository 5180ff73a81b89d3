"""The metrics of all runs in time, and what was changed in between, from each run's small files alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.model import Json
from pytest_rageval.runs.config_diff import SettingChange, dataset_change, flat_settings, setting_changes, with_reported
from pytest_rageval.runs.reader import CONFIG, METRICS, StoredRun


@dataclass(frozen=True, slots=True)
class PastRun:
    """What a finished run came to.

    timestamp  UTC, ISO 8601, as in 2025-12-18T06:36:17+00:00
    metrics    name → mean over the cases to which the metric applies, on its own scale; None where there is no value
    settings   flat: what was configured and what the system reported of itself
    changes    of `settings`, against the run before with the same cases; for the first of these, against the run
               before it, whatever its cases
    """

    run_id: str
    timestamp: str
    dataset_version: str | None
    dataset_hash: str
    is_partial: bool
    k: int
    total: int
    outcomes: Mapping[str, int]
    overall: float | None
    metrics: Mapping[str, float | None]
    description: str | None
    settings: Mapping[str, Json]
    changes: tuple[SettingChange, ...] = ()

    def value(self, name: str) -> float | None:
        """A metric's mean: by its name, or by `recall_any` or `recall_any@k` at the run's own k."""
        mean = self.metrics.get(name)
        return self.metrics.get(f"{name.removesuffix('@k')}@{self.k}") if mean is None else mean


class Skipped(NamedTuple):
    """A folder among the runs of which nothing can be told, and why."""

    run_id: str
    reason: str


def read_history(reports: Path) -> tuple[list[PastRun], list[Skipped]]:
    """The finished runs below `reports/runs` in the order in which they ended, and what was passed over."""
    runs: list[PastRun] = []
    skipped: list[Skipped] = []
    for path in run_folders(reports):
        try:
            runs.append(past_run(StoredRun(path)))
        except SettingsError as error:
            skipped.append(Skipped(path.name, str(error)))
    runs.sort(key=lambda run: (run.timestamp, run.run_id))
    return list(with_changes(runs)), skipped


def run_folders(reports: Path) -> list[Path]:
    """The folders below `reports/runs`; SettingsError where they cannot be listed."""
    runs = reports / "runs"
    try:
        return sorted(path for path in runs.iterdir() if path.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SettingsError(f"reports: {runs} cannot be read: {error.strerror}") from None


def by_dataset(runs: Iterable[PastRun]) -> list[list[PastRun]]:
    """The runs in groups of the same cases: only within one of these can metrics be compared."""
    groups: dict[str, list[PastRun]] = {}
    for run in runs:
        groups.setdefault(run.dataset_hash, []).append(run)
    return list(groups.values())


def check_metrics(runs: Sequence[PastRun], asked: Iterable[str]) -> None:
    """SettingsError for names that no run has."""
    names = {name for run in runs for name in run.metrics}
    names |= {name.partition("@")[0] for name in names}
    problems = []
    for name in asked:
        if name.removesuffix("@k") not in names:
            remedy = did_you_mean(name, sorted(names), "; `rageval metrics` lists all")
            problems.append(f"--metric: no run has {name!r}{remedy}")
    if problems and runs:
        raise SettingsError(*problems)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def past_run(run: StoredRun) -> PastRun:
    """SettingsError where the folder does not hold a finished run."""
    if not (run.path / CONFIG).is_file():
        raise SettingsError(f"no run: it has no {CONFIG}")
    if run.metrics is None:
        raise SettingsError(f"not finished: it has no {METRICS}")
    config, metrics = run.config, run.metrics
    return PastRun(
        run_id=run.run_id,
        timestamp=run.timestamp.isoformat(timespec="seconds"),
        dataset_version=config.get("dataset_version"),
        dataset_hash=config["dataset_hash"],
        is_partial=metrics["partial"],
        k=config["k"],
        total=metrics["total_tests"],
        outcomes=metrics["outcomes"],
        overall=metrics.get("overall_score"),
        metrics={name: metric["mean"] for name, metric in metrics["metrics"].items()},
        description=metrics.get("description"),
        settings=flat_settings(config),
    )


def with_changes(runs: Iterable[PastRun]) -> Iterator[PastRun]:
    """The runs, each with what was changed against the one before."""
    last: dict[str, PastRun] = {}
    before: PastRun | None = None
    for run in runs:
        other = last.get(run.dataset_hash, before)
        if other is None:
            dated = run
        else:
            settings = with_reported(run.settings, other.settings)
            dated = replace(run, settings=settings, changes=_changes(other, run, settings))
        before = last[run.dataset_hash] = dated
        yield dated


def _changes(before: PastRun, after: PastRun, settings: Mapping[str, Json]) -> tuple[SettingChange, ...]:
    cases = ({"dataset_hash": run.dataset_hash, "dataset_version": run.dataset_version} for run in (before, after))
    return (*dataset_change(*cases), *setting_changes(before.settings, settings))
