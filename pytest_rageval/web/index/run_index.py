"""The index of run folders: brought up to date by a scan that reads only what changed, readable meanwhile."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import is_locked
from pytest_rageval.judges.cache.cache_file import is_broken, transaction
from pytest_rageval.runs.reader import CONFIG, METRICS, RESULTS
from pytest_rageval.text import printable
from pytest_rageval.web.index.index_file import IndexFile
from pytest_rageval.web.index.run_rows import IndexedRun, RunRow, read_run, unstorable
from pytest_rageval.web.jobs.job_files import ENDED, JOB, read_end, read_job
from pytest_rageval.web.jobs.job_status import ENDED_WITH_A_VERDICT, JobStatus, ProgressReader, status

T = TypeVar("T")
BATCH = 20
"""Runs that are put in within one transaction: so often others see how far the scan is."""
PATIENCE_S = 0.5
"""Seconds that a page waits for the scan before it shows what is there."""
FIRST_PATIENCE_S = 2.0
"""The same while nothing is there yet."""


@dataclass
class ScanProgress:
    """How far a scan is: `read` of `changed` run folders. `problem`: why it ended early."""

    read: int = 0
    changed: int = 0
    is_done: bool = False
    problem: str | None = None

    @property
    def is_behind(self) -> bool:
        """Are there run folders that are known to have changed and are not read yet?"""
        return not self.is_done and self.read < self.changed


class _Changes(NamedTuple):
    """What a scan has to do: folders to read with their stamps, the newest first, and runs that are gone."""

    changed: Sequence[tuple[Path, str]]
    gone: Sequence[str]


class RunIndex:
    """The index of the run folders in `runs`, kept in a file that can be deleted at any time.

    What died before it had such a folder is listed by its folder in `jobs`.

    Every use opens a connection of its own, so that threads and processes may use one index at once.
    """

    def __init__(self, path: Path, runs: Path, jobs: Path) -> None:
        self.file = IndexFile(path)
        self.runs, self.jobs = runs, jobs
        self._lock = threading.Lock()
        self._scan: _Scan | None = None

    def read(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """What a question to the index answers. Where the file turns out to be damaged, that of the one built anew."""
        try:
            with self.file.connection() as connection:
                return question(connection)
        except sqlite3.DatabaseError as error:
            if not is_broken(error):
                raise
            self.file.set_aside(error)
        self.refresh(patience_s=60)
        with self.file.connection() as connection:
            return question(connection)

    def refresh(self, patience_s: float | None = None) -> ScanProgress:
        """Bring the index up to date; how far that is once it is done, or after so many seconds.

        What takes longer goes on beside: whoever asks meanwhile joins it.
        """
        if patience_s is None:
            patience_s = PATIENCE_S if self._scan is not None else FIRST_PATIENCE_S
        deadline = time.monotonic() + patience_s
        with self._lock:
            joined = self._scan is not None and not self._scan.progress.is_done
            scan = self._begun_scan() if not joined or self._scan is None else self._scan
        scan.done.wait(max(deadline - time.monotonic(), 0))
        if joined and scan.progress.is_done:  # it may have passed a folder that changed since
            with self._lock:
                scan = self._begun_scan()
            scan.done.wait(max(deadline - time.monotonic(), 0.05))
        return replace(scan.progress)  # as it is now: what is read afterwards holds at least that

    def _begun_scan(self) -> _Scan:
        self._scan = _Scan(self.file, self.runs, self.jobs)
        threading.Thread(target=self._scan.run, name="rageval-index", daemon=True).start()
        return self._scan


class _Scan:
    """One look at all run folders; `run` is called in a thread of its own."""

    def __init__(self, file: IndexFile, runs: Path, jobs: Path) -> None:
        self._file, self._runs, self._jobs = file, runs, jobs
        self.progress = ScanProgress()
        self.done = threading.Event()

    def run(self) -> None:
        try:
            self._bring_up_to_date()
        except sqlite3.DatabaseError as error:
            if not is_broken(error):
                self.progress.problem = str(error)
            else:
                self._file.set_aside(error)
                self._again()
        except OSError as error:
            self.progress.problem = f"{error.filename or self._runs}: {error.strerror}"
        finally:
            self.progress.is_done = True
            self.done.set()

    def _again(self) -> None:
        try:
            self._bring_up_to_date()
        except (sqlite3.Error, OSError) as error:
            self.progress.problem = str(error)

    def _bring_up_to_date(self) -> None:
        with self._file.connection() as connection:
            changes = _changes(self._runs, self._jobs, dict(connection.execute("SELECT run_id, stamp FROM runs")))
            self.progress.changed = len(changes.changed)
            for batch in _batches(changes.gone):
                _remove(connection, batch)
            for folders in _batches(changes.changed):
                indexed = {printable(folder.name): self._read(folder, stamp) for folder, stamp in folders}
                _remove(connection, [run_id for run_id, run in indexed.items() if run is None])
                _put(connection, [run for run in indexed.values() if run is not None])
                self.progress.read += len(folders)

    def _read(self, folder: Path, stamp: str) -> IndexedRun | None:
        """A run, with what its job says of its end; None of a job that only begins."""
        if folder.parent == self._jobs:
            return row_of_job(folder, self._runs / folder.name, stamp)
        run = read_run(folder, stamp)
        if run.row.state == "stopped" and (job := ended_job(self._jobs / folder.name, folder)) is not None:
            return replace(run, row=replace(run.row, problem=printable(job.sentence)))
        return run


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


def _changes(runs: Path, jobs: Path, stamps: Mapping[str, str]) -> _Changes:
    folders = {printable(entry.name): Path(entry.path) for entry in (*_entries(jobs), *_entries(runs))}
    stamped = [(run_id, folder, _stamp(folder, jobs / folder.name)) for run_id, folder in folders.items()]
    changed = [(folder, stamp) for run_id, folder, stamp in stamped if stamps.get(run_id) != stamp.text]
    changed.sort(key=lambda item: item[1].newest, reverse=True)
    return _Changes([(folder, stamp.text) for folder, stamp in changed], sorted(stamps.keys() - folders.keys()))


def _entries(runs: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(runs) as entries:
            return [entry for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    except FileNotFoundError:
        return []


class _Stamp(NamedTuple):
    text: str
    newest: int


def _stamp(folder: Path, job: Path) -> _Stamp:
    """Times and sizes of a run's files; of one that has not ended, also whether a process is writing it, and how its
    job ended."""
    parts, newest, is_finished = [], 0, False
    for path in (folder / CONFIG, folder / METRICS, folder / RESULTS, job / JOB, job / ENDED):
        try:
            about = os.stat(path)
        except OSError:
            parts.append("-")
            continue
        is_finished |= path.name == METRICS
        newest = max(newest, about.st_mtime_ns)
        parts.append(f"{about.st_mtime_ns}:{about.st_size}")
    if not is_finished:
        parts.append("written" if is_locked(folder) else "still")
    return _Stamp(" ".join(parts), newest)


def _put(connection: sqlite3.Connection, runs: Sequence[IndexedRun]) -> None:
    with transaction(connection):
        for run in runs:
            _put_run(connection, run)


def _put_run(connection: sqlite3.Connection, run: IndexedRun) -> None:
    connection.execute("SAVEPOINT one_run")
    try:
        _insert(connection, run)
    except (OverflowError, UnicodeError, sqlite3.InterfaceError, sqlite3.ProgrammingError) as error:
        connection.execute("ROLLBACK TO one_run")
        _insert(connection, unstorable(run, error))
    connection.execute("RELEASE one_run")


def _insert(connection: sqlite3.Connection, run: IndexedRun) -> None:
    run_id = run.row.run_id
    connection.execute("DELETE FROM run_metrics WHERE run_id = ?", (run_id,))
    rows = {
        "runs": [astuple(run.row)],
        "run_metrics": [(run_id, *astuple(metric)) for metric in run.metrics],
        "run_settings": [(run_id, run.settings)],
    }
    for table, values in rows.items():
        if values:
            places = ", ".join("?" * len(values[0]))
            connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", values)  # noqa: S608  our own names


def _remove(connection: sqlite3.Connection, run_ids: Sequence[str]) -> None:
    with transaction(connection):
        for run_id in run_ids:
            for table in ("runs", "run_metrics", "run_settings"):
                connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))  # noqa: S608  our own names
            for (number,) in connection.execute(
                "SELECT number FROM case_tables WHERE run_id = ?", (run_id,)
            ).fetchall():
                drop_cases(connection, number)


def drop_cases(connection: sqlite3.Connection, number: int) -> None:
    """Forget the cases of a run; within a transaction."""
    connection.execute("DELETE FROM case_tables WHERE number = ?", (number,))
    for table in ("cases", "texts"):
        connection.execute(f"DROP TABLE IF EXISTS {table}_{int(number)}")


def ended_job(folder: Path, run_folder: Path) -> JobStatus | None:
    """Return the job of a run that has ended; None where it goes on, or there is none."""
    try:
        job = read_job(folder)
    except SettingsError:
        return None
    state = status(folder, job, run_folder, ProgressReader(run_folder, job.cases).read())
    return None if state.is_going else state


def row_of_job(folder: Path, run_folder: Path, stamp: str) -> IndexedRun | None:
    """Return the row of a run that died before it had a folder; None of any other."""
    ended, end = ended_job(folder, run_folder), read_end(folder)
    if ended is None or (end is not None and end.exit_code in ENDED_WITH_A_VERDICT):
        return None  # it goes on; or it came to its end, and somebody deleted its folder
    job, run_id = ended.job, printable(folder.name)
    row = RunRow(
        run_id, stamp, "failed", datetime.fromisoformat(job.created).astimezone(UTC).isoformat(timespec="microseconds"),
        source=job.source, series=json.dumps([True, job.agent, job.dataset], ensure_ascii=False),
        agent=job.agent, agent_version=str(job.agent_version),
        dataset=job.dataset, dataset_version=str(job.dataset_version),
        description=printable(job.description) or None, tone="red", problem=printable(ended.sentence),
        searched=" ".join((run_id, job.description, job.agent, job.dataset, ended.sentence)).lower(),
    )  # fmt: skip
    return IndexedRun(row)
