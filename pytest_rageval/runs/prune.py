"""Which runs are kept, how much room do they take, and which may go?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json
from pytest_rageval.io.lock import is_locked
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.history import run_folders

State = Literal["complete", "partial", "interrupted", "being written", "broken"]
RUN_ID = "%Y%m%d_%H%M%S"


class File(NamedTuple):
    """One file of a run."""

    name: str
    bytes: int


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
    found = [
        kept_run(path) for path in run_folders(reports) if (path / "config.json").is_file() and not path.is_symlink()
    ]
    return sorted(found, key=lambda run: (run.timestamp, run.run_id))


def kept_run(path: Path) -> KeptRun:
    """One run, also one that did not end or that cannot be read."""
    run = KeptRun(path, _began(path), "broken", _files(path))
    try:
        read_json(path / "config.json", "run")
        if (path / "metrics.json").exists():
            return _ended(run, read_json(path / "metrics.json", "run"))
    except (SettingsError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return run
    return replace(run, state="being written" if is_locked(path) else "interrupted")


# ── what may go ───────────────────────────────────────────────────────────────────────────────────────────────


def may_go(runs: Sequence[KeptRun], *, keep: int | None, older_than_days: float | None, baseline: str | None) -> Pruned:
    """Of the runs, by time, those beyond the last `keep` and older than so many days; both must hold where both are
    given. Never the one with the id that the baseline names, nor one that is being written: these are said."""
    beyond = runs if keep is None else runs[: max(len(runs) - keep, 0)]
    before = None if older_than_days is None else datetime.now(UTC) - timedelta(days=older_than_days)
    found = Pruned([], [])
    for run in beyond:
        if before is not None and run.timestamp > before:
            continue
        if run.run_id == baseline:
            found.kept.append((run, "the baseline came from it"))
        elif run.state == "being written" or is_locked(run.path):
            found.kept.append((run, "it is being written"))
        else:
            found.removed.append(run)
    return found


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


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def _ended(run: KeptRun, metrics: Mapping[str, Any]) -> KeptRun:
    overall = metrics["overall_score"]
    return replace(
        run,
        timestamp=datetime.fromisoformat(metrics["volatile"]["timestamp"]).astimezone(UTC),
        state="partial" if metrics["partial"] else "complete",
        total=int(metrics["total_tests"]),
        outcomes={str(name): int(number) for name, number in metrics["outcomes"].items()},
        overall=None if overall is None else float(overall),
        description=metrics["description"],
    )


def _began(path: Path) -> datetime:
    """From the run's id, or else the time of its configuration."""
    try:
        return datetime.strptime(path.name[:15], RUN_ID).replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp((path / "config.json").stat().st_mtime, UTC)


def _files(path: Path) -> tuple[File, ...]:
    """The files directly in the folder, by name."""
    with os.scandir(path) as entries:
        found = [File(entry.name, entry.stat(follow_symlinks=False).st_size) for entry in entries]
    return tuple(sorted(found))
