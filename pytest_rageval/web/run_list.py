"""The list of everything started: the run folders, their filter, their trends and their history."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.lock import is_locked
from pytest_rageval.render.html.figures import Spark, spark
from pytest_rageval.render.html.first_screen import PREFERRED
from pytest_rageval.runs.history import PastRun, with_changes
from pytest_rageval.runs.reader import CONFIG, METRICS
from pytest_rageval.runs.records.line_form import RESULTS
from pytest_rageval.text import printable
from pytest_rageval.web.jobs.job import (
    ENDED,
    ENDED_WITH_A_VERDICT,
    JOB,
    Job,
    JobStatus,
    ProgressReader,
    number_in,
    read_job,
    status,
)
from pytest_rageval.web.run_rows import RUN_STATES, RunRow, iso_time, read_run
from pytest_rageval.web.run_shelf import RunShelf
from pytest_rageval.web.site import Site, of_app
from pytest_rageval.web.versions.version_folder import versions_title

Rows = Sequence[RunRow]
"""All runs, the newest first."""


class RunFolders:
    """The rows of the run folders, and of jobs that died before they had one."""

    def __init__(self, site: Site) -> None:
        self._runs = site.runs
        self._jobs = site.settings.data / "jobs"
        self._shelf = RunShelf(site)
        self._reading = threading.Lock()
        self._known: dict[str, tuple[object, RunRow | None]] = {}

    def rows(self, *, is_archived: bool = False) -> list[RunRow]:
        """Return the runs as they are now, the newest first: those that are archived, or the others.

        Raise OSError if the folders cannot be listed.
        """
        folders = self._folders()
        with self._reading:  # a later request waits, and has little left to read
            for run_id, (path, stamp) in folders.items():
                # Only folders that changed are read: each has a file of aggregates, and there may be hundreds.
                if self._known.get(run_id, (None,))[0] != stamp:
                    self._known[run_id] = stamp, self._row(Path(path))
            # Deleted runs are forgotten.
            self._known = {run_id: self._known[run_id] for run_id in folders}
            rows = [row for _, row in self._known.values() if row is not None]
        archived = self._shelf.archived()
        shown = (row for row in rows if (row.run_id in archived) is is_archived)
        return sorted(shown, key=lambda row: (row.begun, row.run_id), reverse=True)

    def _folders(self) -> dict[str, tuple[str, object]]:
        """Return the path of each run by id, with a stamp that changes when its row does."""
        jobs = _entries(self._jobs)
        # A job's own folder stands for it only until its run has one.
        paths = jobs | _entries(self._runs)
        return {printable(name): (path, _stamp(path, jobs.get(name))) for name, path in paths.items()}

    def _row(self, folder: Path) -> RunRow | None:
        """Return the row of a run with the end of its job, or None for a job that is still starting."""
        job = self._jobs / folder.name
        if folder.parent == self._jobs:
            return row_of_job(job, self._runs / folder.name)
        run = read_run(folder)
        if run.state == "stopped" and (ended := _ended_job(job, folder)) is not None:
            return replace(run, problem=printable(ended.sentence))
        return run


def _entries(folder: Path) -> dict[str, str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.path for entry in entries if entry.is_dir() and not entry.name.startswith(".")}
    except FileNotFoundError:
        return {}


def _stamp(folder: str, job: str | None) -> object:
    """Return the state of a run's files and job, and whether a process writes it."""
    files = states_of([f"{folder}/{name}" for name in (METRICS, CONFIG, RESULTS)])
    ended = states_of([f"{job}/{JOB}", f"{job}/{ENDED}"]) if job else ()
    # A killed run changes no file: only its lock is free.
    return files, ended, files[0] is None and is_locked(Path(folder))


def _ended_job(folder: Path, run_folder: Path) -> JobStatus | None:
    """Return the job of an ended run, or None if the run goes on or has no job."""
    try:
        job = read_job(folder)
    except SettingsError:
        return None
    state = status(folder, job, run_folder, ProgressReader(run_folder, job.cases).read())
    return None if state.is_going else state


def row_of_job(folder: Path, run_folder: Path) -> RunRow | None:
    """Return the row of a run that died before it had a folder, or None for any other run."""
    ended = _ended_job(folder, run_folder)
    if ended is None or number_in(folder / ENDED, "exit_code") in ENDED_WITH_A_VERDICT:
        return None  # it goes on, or it completed and its folder was deleted
    job = ended.job
    return RunRow(
        printable(folder.name),
        "failed",
        iso_time(datetime.fromisoformat(job.created).timestamp()),
        job.source,
        job.agent,
        job.agent_version,
        job.dataset,
        job.dataset_version,
        description=printable(job.description) or None,
        tone="red",
        problem=printable(ended.sentence),
    )


def states_of(paths: Iterable[Path | str]) -> tuple[tuple[int, int] | None, ...]:
    """Return the times and sizes of files, which change when the files do; None for a missing one."""
    return tuple(_state_of(path) for path in paths)


def _state_of(path: Path | str) -> tuple[int, int] | None:
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    return state.st_mtime_ns, state.st_size


TheFolders = Annotated[RunFolders, of_app("run_folders")]
"""A route parameter: the run folders."""

UNVERSIONED = "unversioned"
"""The filter value for runs without an agent or dataset of this app."""
UNVERSIONED_TITLE = "unversioned (pytest)"


class RunFilter(NamedTuple):
    """A filter of a list of runs; blank fields match every run."""

    agent: str = ""
    dataset: str = ""
    source: str = ""
    state: str = ""
    text: str = ""

    @property
    def asked(self) -> dict[str, str]:
        """Return the fields in use, as query parameters."""
        return {name: value for name, value in self._asdict().items() if value}

    def of(self, rows: Rows) -> list[RunRow]:
        """Return the runs that meet all fields."""
        exact = {name: value for name, value in self.asked.items() if name != "text"}
        words = set(self.text.lower().split())

        def matches(run: RunRow) -> bool:
            has_values = all((getattr(run, name) or UNVERSIONED) == value for name, value in exact.items())
            return has_values and all(word in run.searched for word in words)

        return [run for run in rows if matches(run)]


def run_choices(rows: Rows) -> dict[str, list[str]]:
    """Return the values of the exact fields of the filter among these runs, `UNVERSIONED` last."""
    states = {run.state for run in rows}
    choices: dict[str, list[str]] = {"state": [state for state in RUN_STATES if state in states]}
    for name in ("agent", "dataset", "source"):
        values = {getattr(run, name) or UNVERSIONED for run in rows}
        choices[name] = sorted(values, key=lambda value: (value == UNVERSIONED, value))
    return choices


def made_from(run: RunRow | Job, data: Path) -> str:
    """Return `Shop bot v4 × Products v2`, with the current names; for a run of pytest its target."""
    if run.agent or run.dataset:
        return versions_title(data, (run.agent, run.agent_version), (run.dataset, run.dataset_version))
    if isinstance(run, RunRow) and run.target:
        return f"{UNVERSIONED_TITLE} · {run.target}"
    return UNVERSIONED_TITLE


TREND = 20
CARD_METRICS = 3


def latest_of_series(rows: Rows, most: int) -> list[RunRow]:
    """Return the last complete run of each series, the newest first, for the dashboard."""
    latest: dict[object, RunRow] = {}
    for run in rows:
        if run.is_complete:
            # Newest first, so the first of each is its last.
            latest.setdefault(run.series, run)
    return list(latest.values())[:most]


def card_metrics(run: RunRow) -> list[tuple[str, float]]:
    """Return the names and means of a run's main metrics, the preferred ones first."""
    means = run.past.metrics if run.past else {}
    by_bare: dict[str, tuple[str, float]] = {}
    for name, mean in means.items():
        if mean is not None:
            by_bare.setdefault(name.partition("@")[0], (name, mean))
    preferred = [by_bare.pop(name) for name in PREFERRED if name in by_bare]
    return [*preferred, *by_bare.values()][:CARD_METRICS]


def trends_of(rows: Rows, shown: Rows) -> dict[str, Spark | None]:
    """Return the line of the pass rates up to each of the `shown` runs, by id.

    A trend has runs of the same cases: other pass rates are not comparable.
    """
    series: dict[object, list[RunRow]] = {}
    for run in rows:
        if run.is_complete and run.past:
            series.setdefault((run.series, run.past.dataset_hash), []).append(run)
    trends: dict[str, Spark | None] = {}
    for run in shown:
        if run.past:
            own = (run.begun, run.run_id)
            alike = series.get((run.series, run.past.dataset_hash), ())
            newest_first = (each.pass_rate for each in alike if (each.begun, each.run_id) <= own)
            rates = list(islice(newest_first, TREND))
            trends[run.run_id] = spark(rates[::-1])
    return trends


def recent_runs_of(rows: Rows, run_id: str) -> list[PastRun]:
    """Return the earlier complete runs of the same cases and this run, the oldest first."""
    place = next((place for place, run in enumerate(rows) if run.run_id == run_id), None)
    if place is None:
        return []
    own = rows[place].past
    if own is None:
        return []
    newest_first = [own]
    for run in rows[place + 1 :]:
        if len(newest_first) == TREND:
            break
        if run.is_complete and run.past and run.past.dataset_hash == own.dataset_hash:
            newest_first.append(run.past)
    return list(with_changes(newest_first[::-1]))


class DatasetRuns(NamedTuple):
    """The number of finished runs over the same cases.

    key   hash of the cases, or the name of a dataset over all its versions
    name  for display
    """

    key: str
    name: str
    runs: int


def datasets_run(rows: Rows) -> list[DatasetRuns]:
    """Return the datasets of finished runs, the latest first, each over all its versions and by version."""
    by_cases: dict[str, list[RunRow]] = {}
    for run in rows:
        if run.past is not None:
            by_cases.setdefault(run.past.dataset_hash, []).append(run)
    versions: dict[str, list[DatasetRuns]] = {}
    for key, runs in by_cases.items():
        run = next((run for run in runs if run.dataset), runs[0])
        named = f"{run.dataset} v{run.dataset_version}" if run.dataset else f"{run.cases} cases, {key[:8]}"
        versions.setdefault(run.dataset or key, []).append(DatasetRuns(key, named, len(runs)))
    datasets: list[DatasetRuns] = []
    for name, group in versions.items():
        if len(group) > 1:
            total = sum(each.runs for each in group)
            datasets.append(DatasetRuns(name, f"{name}, all versions", total))
        datasets += group
    return datasets


def past_runs(rows: Rows, dataset: str, agent: str = "", most: int = 200) -> list[PastRun]:
    """Return the last finished runs of a dataset in order of time, with the changes between them.

    dataset  a `key` of `datasets_run`
    agent    only its runs; `UNVERSIONED` selects those without one
    """
    of_agent = RunFilter(agent=agent).of(rows)
    runs = [run.past for run in of_agent if run.past is not None and dataset in (run.past.dataset_hash, run.dataset)]
    runs.sort(key=lambda run: (run.timestamp, run.run_id))
    return list(with_changes(runs[-most:]))
