"""The runs that are kept, the room they take, and the removal of old ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import is_locked
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.history import run_folders
from pytest_rageval.runs.reader import CONFIG, File, State, StoredRun


@dataclass(frozen=True, slots=True)
class KeptRun:
    """One folder below `reports/runs` that holds a run.

    timestamp  UTC: when it ended; of one that did not end, when it began
    total, outcomes, overall  None where the run did not end or cannot be read
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
        """Length of all its files."""
        return sum(file.bytes for file in self.files)


class Pruned(NamedTuple):
    """Runs that went, and those that had to stay, with the reason."""

    removed: list[KeptRun]
    kept: list[tuple[KeptRun, str]]


def kept_runs(reports: Path) -> list[KeptRun]:
    """All runs, by time. A folder without config.json is none, nor is a link to one."""
    paths = (path for path in run_folders(reports) if (path / CONFIG).is_file() and not path.is_symlink())
    return sorted((kept_run(StoredRun(path)) for path in paths), key=lambda run: (run.timestamp, run.run_id))


def kept_run(run: StoredRun) -> KeptRun:
    """One run, also one that did not end or that cannot be read."""
    kept = KeptRun(run.path, run.timestamp, run.state, run.files)
    if kept.state not in ("complete", "partial"):
        return kept
    metrics = run.finished_metrics
    return replace(
        kept,
        total=metrics["total_tests"],
        outcomes=metrics["outcomes"],
        overall=metrics.get("overall_score"),
        description=metrics.get("description"),
    )


# ── what may go ───────────────────────────────────────────────────────────────────────────────────────────────


def may_go(runs: Sequence[KeptRun], *, keep: int | None, older_than_days: float | None, baseline: str | None) -> Pruned:
    """Of the runs, by time, those beyond the last `keep` and older than so many days; both must hold where both are
    given. Never the one with the id that the baseline names, nor one that is being written: these are said."""
    beyond = runs if keep is None else runs[: max(len(runs) - keep, 0)]
    before = None if older_than_days is None else datetime.now(UTC) - timedelta(days=older_than_days)
    pruned = Pruned([], [])
    for run in beyond:
        if before is not None and run.timestamp > before:
            continue
        if run.run_id == baseline:
            pruned.kept.append((run, "the baseline came from it"))
        elif run.state == "being written" or is_locked(run.path):
            pruned.kept.append((run, "it is being written"))
        else:
            pruned.removed.append(run)
    return pruned


def remove(runs: Iterable[KeptRun]) -> Pruned:
    """Delete the folders of these runs, each under its lock; what could not be deleted is said."""
    done = Pruned([], [])
    for run in runs:
        folder = RunFolder(run.path)
        try:
            folder.claim()
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
