"""The metrics of all runs over time, and the changes between them, from each run's small files alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.lock import is_locked
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.model import Json
from pytest_rageval.runs.config_diff import SettingChange, dataset_change, flat_settings, setting_changes, with_reported
from pytest_rageval.runs.flaky_cases import flaky_ids
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.reader import CONFIG, METRICS, File, State, StoredRun


@dataclass(frozen=True, slots=True)
class PastRun:
    """A finished run.

    timestamp  UTC, ISO 8601, for example 2025-12-18T06:36:17+00:00
    metrics    name → mean over the cases to which the metric applies, on its own scale; None without a value.
               Operations are among them, scored or not
    settings   flat: what was configured and what the system reported of itself
    flaky      the ids of flaky cases
    changes    of `settings`, against the previous run with the same cases, or else the previous run
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
    judge_requests: int = 0
    judge_usd: float | None = None
    flaky: tuple[str, ...] = ()

    def value(self, name: str) -> float | None:
        """Return a metric's mean by its name; `recall_any` and `recall_any@k` stand for the run's own k."""
        mean = self.metrics.get(name)
        if mean is None:
            at_own_k = f"{name.removesuffix('@k')}@{self.k}"
            mean = self.metrics.get(at_own_k)
        return mean


class UnreadableFolder(NamedTuple):
    """A folder among the runs that cannot be read as a finished run, and why."""

    run_id: str
    reason: str


def read_history(reports: Path) -> tuple[list[PastRun], list[UnreadableFolder]]:
    """Return the finished runs below `reports/runs` in the order in which they ended, and the skipped folders."""
    runs: list[PastRun] = []
    skipped: list[UnreadableFolder] = []
    for path in run_folders(reports):
        try:
            runs.append(past_run(StoredRun(path)))
        except SettingsError as error:
            skipped.append(UnreadableFolder(path.name, str(error)))
    # The id decides between runs that ended within the same second.
    runs.sort(key=lambda run: (run.timestamp, run.run_id))
    return list(with_changes(runs)), skipped


def run_folders(reports: Path) -> list[Path]:
    """Return the folders below `reports/runs`; raise SettingsError if they cannot be listed."""
    runs = reports / "runs"
    try:
        return sorted(path for path in runs.iterdir() if path.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SettingsError(f"reports: {runs} cannot be read: {error.strerror}") from None


def by_dataset(runs: Iterable[PastRun]) -> list[list[PastRun]]:
    """Group the runs by dataset: metrics are only comparable within one group."""
    groups: dict[str, list[PastRun]] = {}
    for run in runs:
        groups.setdefault(run.dataset_hash, []).append(run)
    return list(groups.values())


def check_metrics(runs: Sequence[PastRun], asked: Iterable[str]) -> None:
    """Raise SettingsError for names that no run has."""
    names: set[str] = set()
    for run in runs:
        names.update(run.metrics)
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
    """Read a finished run; raise SettingsError if the folder holds none."""
    if not (run.path / CONFIG).is_file():
        raise SettingsError(f"no run: it has no {CONFIG}")
    if run.metrics is None:
        raise SettingsError(f"not finished: it has no {METRICS}")
    config = run.config
    metrics = run.metrics
    operations = metrics.get("volatile", {}).get("operations") or {}
    means = {name: operation["mean"] for name, operation in operations.items()}
    means |= {name: metric["mean"] for name, metric in metrics["metrics"].items()}
    cost = metrics.get("volatile", {}).get("cost") or {}
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
        metrics=means,
        description=metrics.get("description"),
        settings=flat_settings(config),
        judge_requests=cost.get("judge_requests", 0),
        judge_usd=cost.get("judge_total_usd"),
        flaky=tuple(flaky_ids(metrics)),
    )


def with_changes(runs: Iterable[PastRun]) -> Iterator[PastRun]:
    """Yield the runs, each with its changes against the previous one."""
    last: dict[str, PastRun] = {}
    before: PastRun | None = None
    for run in runs:
        # The last run of the same cases, since only with that one metrics are compared.
        other = last.get(run.dataset_hash, before)
        if other is not None:
            settings = with_reported(run.settings, other.settings)
            changes = (
                *dataset_change(_dataset(other), _dataset(run)),
                *setting_changes(other.settings, settings),
            )
            run = replace(run, settings=settings, changes=changes)
        before = last[run.dataset_hash] = run
        yield run


def _dataset(run: PastRun) -> dict[str, str | None]:
    return {"dataset_hash": run.dataset_hash, "dataset_version": run.dataset_version}


# ── stored runs ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A folder below `reports/runs` that holds a run.

    timestamp  UTC: when it ended; if it did not end, when it began
    total, outcomes, overall  None if the run did not end or cannot be read
    """

    path: Path
    timestamp: datetime
    state: State
    files: tuple[File, ...]
    total: int | None = None
    outcomes: Mapping[str, int] | None = None
    overall: float | None = None
    description: str | None = None

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def bytes(self) -> int:
        """Return the total size of its files."""
        return sum(file.bytes for file in self.files)


class PruneResult(NamedTuple):
    """The removed runs, and the runs that had to stay with the reason."""

    removed: list[RunSummary]
    kept: list[tuple[RunSummary, str]]


def run_summaries(reports: Path) -> list[RunSummary]:
    """Return all runs, by time, from the folders with a config.json that are no symbolic links."""
    paths = [path for path in run_folders(reports) if (path / CONFIG).is_file() and not path.is_symlink()]
    summaries = [run_summary(StoredRun(path)) for path in paths]
    return sorted(summaries, key=lambda run: (run.timestamp, run.run_id))


def run_summary(run: StoredRun) -> RunSummary:
    """Summarise one run, even if it did not end or cannot be read."""
    summary = RunSummary(run.path, run.timestamp, run.state, run.files)
    if summary.state not in ("complete", "partial"):
        return summary
    metrics = run.finished_metrics
    return replace(
        summary,
        total=metrics["total_tests"],
        outcomes=metrics["outcomes"],
        overall=metrics.get("overall_score"),
        description=metrics.get("description"),
    )


# ── pruning ───────────────────────────────────────────────────────────────────────────────────────────────────


def runs_to_prune(
    runs: Sequence[RunSummary], *, keep: int | None, older_than_days: float | None, baseline: str | None
) -> PruneResult:
    """Select the runs beyond the last `keep` and older than so many days; if both are given, both must apply.

    `runs` are sorted by time. Keep the baseline's run and runs that are being written, with the reason.
    """
    beyond = runs if keep is None else runs[: max(len(runs) - keep, 0)]
    before = None if older_than_days is None else datetime.now(UTC) - timedelta(days=older_than_days)
    pruned = PruneResult([], [])
    for run in beyond:
        if before is not None and run.timestamp > before:
            continue
        # Without its run a baseline has no texts to compare with.
        if run.run_id == baseline:
            pruned.kept.append((run, "the baseline came from it"))
        elif run.state == "being written" or is_locked(run.path):
            pruned.kept.append((run, "it is being written"))
        else:
            pruned.removed.append(run)
    return pruned


def remove(runs: Iterable[RunSummary]) -> PruneResult:
    """Delete the folders of these runs, each under its lock; report those that cannot be deleted."""
    done = PruneResult([], [])
    for run in runs:
        folder = RunFolder(run.path)
        try:
            # Under its lock, since the run may have been resumed after it was listed.
            folder.lock()
            shutil.rmtree(run.path)
        except SettingsError:
            done.kept.append((run, "it is being written"))
        except OSError as error:
            done.kept.append((run, f"it cannot be deleted: {error.strerror}: {error.filename}"))
        else:
            done.removed.append(run)
        finally:
            folder.close()
    return done
