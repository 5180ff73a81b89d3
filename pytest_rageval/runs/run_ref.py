"""Names of stored runs: an id, `latest`, `latest~1`, `baseline`, or the path of a run's folder or of a file in it."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json
from pytest_rageval.io.suggestions import suggestion

LATEST = "latest"
BASELINE = "baseline"
FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)
LAST_MOMENT = datetime.max.replace(tzinfo=UTC)
SHOWN = 3
"""How many of the last ids an error names if none is similar."""


def find_run(reports: Path, reference: str, baseline: Path | None = None, *, is_finished: bool = False) -> Path:
    """Return the folder of a run; raise SettingsError with a suggestion if there is none.

    `baseline` is the file that the name `baseline` stands for: by default the one among the reports.
    With `is_finished`, `latest` is the last run that has ended, for a caller that is writing a run itself.
    """
    runs = reports / "runs"
    if reference == LATEST or reference.startswith(f"{LATEST}~"):
        return _back_from_latest(runs, reference, is_finished=is_finished)
    if reference == BASELINE:
        return _run_of_baseline(runs, reports / "baseline.json" if baseline is None else baseline)
    path = Path(reference)
    for folder in (runs / reference, path, path.parent):
        is_within = folder != path.parent or path.is_file()
        if is_within and (folder / "config.json").is_file() and folder != runs:
            return folder
    raise SettingsError(f"there is no run {reference!r}{_remedy(runs, reference)}")


def in_time(runs: Path) -> list[Path]:
    """Return the folders of runs in the order in which they began."""
    folders = (path.parent for path in runs.glob("*/config.json"))
    return sorted(folders, key=lambda path: (_begun_at(path / "config.json"), path.name))


def next_moment(runs: Path) -> datetime:
    """Return the present moment for a run that begins, later than the beginning of all others.

    A wall clock that was set back would else make an older run the latest one, whose verdict is then read for this one.
    """
    now = datetime.now(UTC)
    # A folder that was changed before now began before now: most need not be read.
    suspects = [path for path in runs.glob("*/config.json") if _changed(path.parent) >= now.timestamp() - 1]
    if not suspects:
        return now
    last = max(map(_begun_at, suspects))
    if last > LAST_MOMENT - timedelta(microseconds=1):
        return last  # nothing is later; the names decide
    return max(now, last + timedelta(microseconds=1))


def is_of_sweep(run: Path) -> bool:
    """Return True if a sweep made the run: it is one of its points, and nobody's last run."""
    sweep_id, _, _ = run.name.rpartition("-")
    return bool(sweep_id) and (run.parent.parent / "sweeps" / sweep_id).is_dir()


def _begun_at(config: Path) -> datetime:
    """Return when a run began; without a recorded time, when its configuration was written."""
    try:
        return datetime.fromisoformat(read_json(config, "run")["begun"]).astimezone(UTC)
    # OverflowError: a moment of the year 9999 that lies in the year 10000 here.
    except (SettingsError, ValueError, TypeError, KeyError, OverflowError):
        return _moment(_changed(config))


def _changed(path: Path) -> float:
    """Return when a file or folder was changed, in seconds; of one that another process has removed, long ago."""
    try:
        return path.stat().st_mtime
    except OSError:
        return -math.inf


def _moment(seconds: float) -> datetime:
    """Return a moment in seconds since 1970; file systems hold some that no date can have."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return FIRST_MOMENT if seconds < 0 else LAST_MOMENT


def _back_from_latest(runs: Path, reference: str, *, is_finished: bool) -> Path:
    folders = [path for path in in_time(runs) if not is_finished or (path / "metrics.json").is_file()]
    back = reference.partition("~")[2] or "0"
    if not back.isdecimal() or int(back) >= len(folders):
        number = f"{len(folders)} run{'' if len(folders) == 1 else 's'}"
        remedy = f"the last one is {LATEST}, the one before {LATEST}~1"
        raise SettingsError(f"run {reference!r}: {runs} holds {number}; {remedy}")
    return folders[-1 - int(back)]


def _run_of_baseline(runs: Path, file: Path) -> Path:
    volatile = read_json(file, "baseline").get("volatile")
    run_id = volatile.get("run_id") if isinstance(volatile, dict) else None
    # Baselines come from repositories: a path in place of an id must not lead elsewhere.
    if not isinstance(run_id, str) or Path(run_id).name != run_id:
        raise SettingsError(f"baseline: {file} does not name its run; write one with --rageval-update-baseline")
    if not (runs / run_id / "config.json").is_file():
        raise SettingsError(f"baseline: its run {run_id} is not in {runs} any more; name another run")
    return runs / run_id


def _remedy(runs: Path, reference: str) -> str:
    names = [path.name for path in in_time(runs)]
    if not names:
        return f"; {runs} holds no runs"
    # Ids of the same day are all similar: suggest one only for a single typing error.
    close = suggestion(reference, [*names, LATEST, BASELINE], cutoff=0.9 if reference[:1].isdigit() else 0.6)
    return f"; did you mean {close!r}?" if close else f"; the last ones are {', '.join(names[-SHOWN:])}"
