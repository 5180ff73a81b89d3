"""The run folders as rows. Each is read in the background, and again when its files change."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

from fastapi import Depends, Request

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import is_locked
from pytest_rageval.runs.reader import CONFIG, METRICS, RESULTS
from pytest_rageval.text import printable
from pytest_rageval.web.jobs.job import ENDED, JOB, read_end, read_job
from pytest_rageval.web.jobs.job_status import ENDED_WITH_A_VERDICT, JobStatus, ProgressReader, status
from pytest_rageval.web.run_rows import RunRow, read_run
from pytest_rageval.web.run_shelf import RunShelf
from pytest_rageval.web.site import Site

PATIENCE_S = 0.5
"""Seconds that a page waits for the folders before it shows those read so far."""
FIRST_PATIENCE_S = 2.0
"""Seconds that a page waits while no folder is read yet."""


class ReadingProgress(NamedTuple):
    """The number of changed folders that are read. `problem` says why they cannot be."""

    read: int = 0
    changed: int = 0
    problem: str | None = None

    @property
    def is_done(self) -> bool:
        return self.read == self.changed


class _Stamp(NamedTuple):
    """The times and sizes of a run's files, and the newest time."""

    newest: int
    text: str


class _Folder(NamedTuple):
    path: str
    stamp: _Stamp


class RunFolders:
    """The rows of the folders in `runs`, and of the jobs in `jobs` that died before they had such a folder."""

    def __init__(self, site: Site) -> None:
        self._runs, self._jobs = site.runs, site.settings.data / "jobs"
        self._shelf = RunShelf(site)
        self._changed = threading.Condition()
        self._known: dict[str, tuple[_Stamp, RunRow | None]] = {}
        self._waiting: dict[str, _Folder] = {}
        self._is_reading = False
        self._read = 0

    def refresh(self, patience_s: float | None = None) -> ReadingProgress:
        """Read the changed folders; return the progress once it is done or after `patience_s` seconds.

        Reading continues in a thread of its own.
        """
        with self._changed:
            if patience_s is None:
                patience_s = PATIENCE_S if self._known else FIRST_PATIENCE_S
            try:
                self._queue_changed()
            except OSError as error:
                return ReadingProgress(problem=f"{error.filename or self._runs}: {error.strerror}")
            self._changed.wait_for(lambda: not self._waiting, patience_s)
            return ReadingProgress(self._read, self._read + len(self._waiting))

    def rows(self, *, is_archived: bool = False) -> list[RunRow]:
        """Return the rows of the runs read so far, the newest first: those that are archived, or the others."""
        archived = self._shelf.archived()
        with self._changed:
            known = (row for _, row in self._known.values() if row is not None)
            rows = [row for row in known if (row.run_id in archived) is is_archived]
        return sorted(rows, key=lambda row: (row.begun, row.run_id), reverse=True)

    def _queue_changed(self) -> None:
        """Queue the changed folders, the newest first, and forget the missing ones."""
        folders = _folders(self._runs, self._jobs)
        for gone in self._known.keys() - folders.keys():
            del self._known[gone]
        known = {run_id: stamp for run_id, (stamp, _) in self._known.items()}
        changed = [each for each in folders.items() if known.get(each[0]) != each[1].stamp]
        self._waiting = dict(sorted(changed, key=lambda item: item[1].stamp, reverse=True))
        if self._waiting and not self._is_reading:
            self._is_reading, self._read = True, 0
            threading.Thread(target=self._read_waiting, name="rageval-runs", daemon=True).start()

    def _read_waiting(self) -> None:
        while True:
            with self._changed:
                self._is_reading = bool(self._waiting)
                if not self._is_reading:
                    self._changed.notify_all()
                    return
                run_id, folder = next(iter(self._waiting.items()))
            row = self._row(Path(folder.path))
            with self._changed:
                self._known[run_id] = folder.stamp, row
                if self._waiting.get(run_id) == folder:
                    del self._waiting[run_id]
                    self._read += 1

    def _row(self, folder: Path) -> RunRow | None:
        """Return the row of a run with the end of its job, or None for a job that is still starting."""
        job = self._jobs / folder.name
        if folder.parent == self._jobs:
            return row_of_job(job, self._runs / folder.name)
        run = read_run(folder)
        if run.state == "stopped" and (ended := _ended_job(job, folder)) is not None:
            return replace(run, problem=printable(ended.sentence))
        return run


def _folders(runs: Path, jobs: Path) -> dict[str, _Folder]:
    jobs_of = _entries(jobs)
    paths: Mapping[str, str] = jobs_of | _entries(runs)
    return {printable(name): _Folder(path, _stamp(path, jobs_of.get(name, ""))) for name, path in paths.items()}


def _entries(folder: Path) -> dict[str, str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.path for entry in entries if entry.is_dir() and not entry.name.startswith(".")}
    except FileNotFoundError:
        return {}


def _stamp(folder: str, job: str) -> _Stamp:
    """Return the stamp of a run; for an unfinished one also whether a process writes it and how its job ended."""
    parts, newest = [], 0
    files = [f"{folder}/{name}" for name in (METRICS, CONFIG, RESULTS)]
    for path in (*files, *((f"{job}/{JOB}", f"{job}/{ENDED}") if job else ())):
        try:
            about = os.stat(path)
        except OSError:
            parts.append("-")
            continue
        newest = max(newest, about.st_mtime_ns)
        parts.append(f"{about.st_mtime_ns}:{about.st_size}")
    if parts[0] == "-":
        parts.append("written" if is_locked(Path(folder)) else "still")
    return _Stamp(newest, " ".join(parts))


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
    ended, end = _ended_job(folder, run_folder), read_end(folder)
    if ended is None or (end is not None and end.exit_code in ENDED_WITH_A_VERDICT):
        return None  # it goes on, or it completed and its folder was deleted
    job = ended.job
    return RunRow(
        printable(folder.name),
        "failed",
        datetime.fromisoformat(job.created).astimezone(UTC).isoformat(timespec="microseconds"),
        job.source,
        ("", job.agent, job.dataset),
        job.agent,
        str(job.agent_version),
        job.dataset,
        str(job.dataset_version),
        description=printable(job.description) or None,
        tone="red",
        problem=printable(ended.sentence),
    )


def run_folders_of(request: Request) -> RunFolders:
    folders: RunFolders = request.app.state.run_folders
    return folders


TheFolders = Annotated[RunFolders, Depends(run_folders_of)]
"""A route parameter: the run folders."""
