"""The jobs of a data folder: start, watch, cancel and resume them."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.io.atomic import write_json
from pytest_rageval.runs.folder import check_reports, new_folder, utc_name
from pytest_rageval.web.jobs.job import (
    CANCELLED,
    ENDED,
    JOB,
    LOG,
    PROCESS,
    Job,
    JobStatus,
    ProgressReader,
    log_tail,
    read_job,
    status,
)
from pytest_rageval.web.jobs.job_folders import JobFolders
from pytest_rageval.web.jobs.started_process import cancel_process, start_process
from pytest_rageval.web.keys import run_environment
from pytest_rageval.web.site import check_listed, of_app

MOST_AT_ONCE = 4
"""Maximum number of concurrent jobs."""
LayOut = Callable[[Path], Job]
"""Writes the configuration, the cases and their other files into a job's folder, and returns the job."""


class Jobs:
    """The folder `data/jobs`, one per server. The status of a job depends on files and locks only."""

    def __init__(self, data: Path, reports: Path, root: Path, env_file: Path | None) -> None:
        self._folders = JobFolders(data / "jobs", "job")
        self._reports = reports
        self._root = root
        self._env_file = env_file
        self._readers: dict[str, ProgressReader] = {}
        self._beginning = threading.Lock()
        """Held until a job's process runs: only then do other threads count it."""

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._folders.names()

    def going(self) -> Iterator[JobStatus]:
        """Yield the jobs that have not ended, the newest first. Skip folders without a job."""
        for name in sorted(self._folders.running(), reverse=True):
            with suppress(SettingsError):
                job_status = self.status(name)
                if job_status.is_going:
                    yield job_status

    def status(self, job_id: str) -> JobStatus:
        """Return the current status of a job, or raise UnknownPageError if the id is unknown."""
        folder = self._folders.place(job_id)
        run_folder = self._reports / "runs" / job_id
        job = read_job(folder)
        # Kept while the run goes on, so that only new lines are read.
        reader = self._readers.setdefault(job_id, ProgressReader(run_folder, job.cases))
        now = status(folder, job, run_folder, reader.read())
        if not now.is_going:
            self._readers.pop(job_id, None)
        return now

    def log(self, job_id: str) -> list[str]:
        """Return the last lines that the run of a job printed; none if there is no such job."""
        return log_tail(self._folders.path / job_id / LOG) if job_id in self else []

    def start(self, lay_out: LayOut) -> Job:
        """Start the run of a new folder, or raise SettingsError if it cannot begin."""
        check_reports(self._reports)
        with self._beginning:
            # The job's name becomes the run's.
            folder = new_folder(self._folders.path, utc_name(), free_in=self._reports / "runs")
            try:
                job = lay_out(folder)
                write_json(folder / JOB, job.model_dump())
                self._launch(folder, job, "--run-id")
            except (RagevalError, OSError):
                shutil.rmtree(folder, ignore_errors=True)
                raise
        return job

    def resume(self, job_id: str) -> None:
        """Finish the run of a stopped or killed job, or raise SettingsError if nothing is left to do."""
        folder = self._folders.place(job_id)
        with self._beginning:
            if not self.status(job_id).can_resume:
                raise SettingsError(f"job {job_id} has nothing to resume")
            self._launch(folder, read_job(folder), "--resume")

    def cancel(self, job_id: str) -> None:
        """Stop a run gracefully and keep its ended cases. Do nothing if it has ended."""
        cancel_process(self._folders.place(job_id))

    def _launch(self, folder: Path, job: Job, how: str) -> None:
        """Start the process of a job, or raise SettingsError if it may not run."""
        if len(self._folders.running()) >= MOST_AT_ONCE:
            raise SettingsError(f"{MOST_AT_ONCE} at most run at the same time; wait for one to end, or cancel one")
        # The folder's own file alone: variables of the server must not change what the browser chose.
        settings = load_settings(folder, environment={})
        # Checked again here: the list may have changed since the agent was saved.
        check_listed(settings, self._root, is_asked=job.source == "connector")
        for name in (ENDED, CANCELLED, PROCESS):
            # What an earlier process of a resumed job left would be taken for its end.
            (folder / name).unlink(missing_ok=True)
        arguments = ["run", "--reports", str(self._reports.resolve()), how, job.id, *job.arguments]
        start_process(folder, arguments, run_environment(self._root, self._env_file))


TheJobs = Annotated[Jobs, of_app("jobs")]
"""A route parameter: the jobs."""
