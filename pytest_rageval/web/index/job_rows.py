"""Runs that the browser started and that died: those without a folder as rows, and why any of them ended."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from pytest_rageval.errors import SettingsError
from pytest_rageval.text import printable
from pytest_rageval.web.index.run_rows import IndexedRun, RunRow
from pytest_rageval.web.jobs.job_files import read_end, read_job
from pytest_rageval.web.jobs.job_status import ENDED_WITH_A_VERDICT, JobStatus, status
from pytest_rageval.web.jobs.progress import ProgressReader


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
