"""The jobs of a data folder: start, watch, cancel and resume them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM

from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.io.atomic import write_json
from pytest_rageval.runs.folder import check_reports
from pytest_rageval.web.jobs.job import (
    CANCELLED,
    ENDED,
    JOB,
    LOG,
    PROCESS,
    Job,
    identify,
    log_tail,
    read_job,
    read_process,
)
from pytest_rageval.web.jobs.job_status import JobStatus, ProgressReader, status
from pytest_rageval.web.keys import run_environment
from pytest_rageval.web.security.code_border import check_listed

MOST_AT_ONCE = 4
"""Maximum number of concurrent jobs."""
MOST_READERS = 500
"""Jobs whose progress is cached, so that only new lines are read."""
JOB_PROCESS = "pytest_rageval.web.jobs.job_process"
GRACE_S = 10.0
"""Seconds until a run that ignores a signal gets the next one: SIGINT, SIGTERM, SIGKILL."""
LayOut = Callable[[Path], Job]
"""Writes the configuration, the cases and their other files into a job's folder, and returns the job."""


class Jobs:
    """The folder `data/jobs`, one per server. The status of a job depends on files and processes only."""

    def __init__(self, data: Path, reports: Path, root: Path, env_file: Path | None) -> None:
        self._folder, self._reports, self._root, self._env_file = data / "jobs", reports, root, env_file
        self._readers: OrderedDict[str, ProgressReader] = OrderedDict()
        self._lock = threading.Lock()
        self._beginning = threading.Lock()
        """Held until a job's process is recorded: only then do other threads count the job as running."""

    # ── what there is ─────────────────────────────────────────────────────────────────────────────────────────

    def going(self) -> Iterator[JobStatus]:
        """Yield the jobs that have not ended, the newest first. Skip folders without a job."""
        for name in sorted(self._names(), reverse=True):
            with suppress(SettingsError):
                if not (self._folder / name / ENDED).exists() and (job := self.status(name)).is_going:
                    yield job

    def _names(self) -> list[str]:
        try:
            return [entry.name for entry in os.scandir(self._folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []

    def status(self, job_id: str) -> JobStatus:
        """Return the current status of a job, or raise SettingsError if the id is unknown."""
        folder = self._place(job_id)
        job = read_job(folder)
        run_folder = self._run_folder(job_id)
        with self._lock:
            reader = self._readers.setdefault(job_id, ProgressReader(run_folder, job.cases))
            self._readers.move_to_end(job_id)
            while len(self._readers) > MOST_READERS:
                self._readers.popitem(last=False)
        return status(folder, job, run_folder, reader.read())

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._names()

    def log(self, job_id: str) -> list[str]:
        """Return the last lines that the run of a job printed; none if there is no such job."""
        return log_tail(self._place(job_id) / LOG) if job_id in self else []

    def _place(self, job_id: str) -> Path:
        """Return the folder of a job. Look the id up among the existing names: it never becomes a path."""
        if job_id not in self:
            raise SettingsError(f"there is no job {job_id!r}")
        return self._folder / job_id

    def _run_folder(self, job_id: str) -> Path:
        return self._reports / "runs" / job_id

    # ── what is done ──────────────────────────────────────────────────────────────────────────────────────────

    def start(self, lay_out: LayOut) -> Job:
        """Start the run of a new folder, or raise SettingsError if it cannot begin."""
        check_reports(self._reports)
        environment = run_environment(self._root, self._env_file)
        with self._beginning:
            self._check_room()
            folder = self._new_folder()
            try:
                job = lay_out(folder)
                self._check_listed(folder, job)
                write_json(folder / JOB, job.model_dump())
                self._launch(folder, job, "--run-id", environment)
            except (RagevalError, OSError):
                shutil.rmtree(folder, ignore_errors=True)
                raise
        return job

    def _check_listed(self, folder: Path, job: Job) -> None:
        """Raise SettingsError if the job would run code or read files that the project does not list."""
        check_listed(load_settings(folder, environment={}), self._root, is_asked=job.source == "connector")

    def _check_room(self) -> None:
        """Raise SettingsError if the maximum number of jobs runs already."""
        if len(self.going_names()) >= MOST_AT_ONCE:
            raise SettingsError(f"{MOST_AT_ONCE} at most run at the same time; wait for one to end, or cancel one")

    def going_names(self) -> list[str]:
        """Return the names of the jobs whose processes are alive."""
        return [
            name
            for name in self._names()
            if not (self._folder / name / ENDED).exists()
            and (process := read_process(self._folder / name)) is not None
            and process.is_alive
        ]

    def resume(self, job_id: str) -> None:
        """Finish the run of a stopped or killed job, or raise SettingsError if nothing is left to do."""
        folder = self._place(job_id)
        environment = run_environment(self._root, self._env_file)
        with self._beginning:
            if job_id in self.going_names() or not self.status(job_id).can_resume:
                raise SettingsError(f"job {job_id} has nothing to resume")
            self._check_room()
            job = read_job(folder)
            self._check_listed(folder, job)
            for name in (ENDED, CANCELLED, PROCESS):
                (folder / name).unlink(missing_ok=True)
            self._launch(folder, job, "--resume", environment)

    def cancel(self, job_id: str) -> None:
        """Stop a run gracefully and keep its ended cases. Do nothing if it has ended."""
        folder = self._place(job_id)
        process = read_process(folder)
        if (folder / ENDED).exists() or process is None or not process.is_alive:
            return
        with suppress(OSError):  # a full disk must not prevent the cancellation
            (folder / CANCELLED).touch()
        process.send(SIGINT)
        for number, later_signal in enumerate((SIGTERM, SIGKILL), start=1):
            later = threading.Timer(number * GRACE_S, process.send, (later_signal,))
            later.daemon = True
            later.start()

    def _new_folder(self) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        begun = datetime.now(UTC).strftime("%Y%m%d_%H%M%S")
        for suffix in ("", *(f"_{number}" for number in range(2, 1000))):
            folder = self._folder / (begun + suffix)
            if self._run_folder(folder.name).exists():
                continue
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
        raise SettingsError(f"{self._folder}: too many jobs in one second")

    def _launch(self, folder: Path, job: Job, how: str, environment: Mapping[str, str]) -> None:
        places = ["--reports", str(self._reports.resolve()), how, job.id]
        with (folder / LOG).open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 because the arguments are ours and no shell reads them
                [sys.executable, "-m", JOB_PROCESS, str(folder.resolve()), "run", *places, *job.arguments],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        try:
            if (identity := identify(process.pid)) is not None:
                write_json(folder / PROCESS, identity.model_dump())
        except OSError:  # no unrecorded run goes on
            process.kill()
            process.wait()
            raise
        # Wait for it, so that its pid is released; the thread ends with the process or with the server.
        threading.Thread(target=process.wait, name=f"job {folder.name}", daemon=True).start()
