"""The state of a job in a word and a sentence, as its folder, its processes and its run's folder say."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pytest_rageval.runs.disk.reader import CONFIG, METRICS
from pytest_rageval.text import counted
from pytest_rageval.web.jobs.job_files import (
    CANCELLED,
    RUN_PROCESS,
    SUPERVISOR,
    Job,
    JobEnd,
    read_end,
    read_process,
)
from pytest_rageval.web.jobs.job_log import LOG, log_tail
from pytest_rageval.web.jobs.progress import Progress

State = Literal["starting", "running", "stopping", "finished", "stopped", "killed", "failed"]
FOR_STARTING_S = 20.0
"""Seconds after its creation in which a job without a process may still be starting."""
ENDED_WITH_A_VERDICT = (0, 1)
"""Exit codes of a run that came to its end."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job as it is now. `has_run`: is there a folder of its run to look at?"""

    job: Job
    state: State
    sentence: str
    progress: Progress
    has_run: bool
    end: JobEnd | None = None

    @property
    def is_going(self) -> bool:
        return self.state in ("starting", "running", "stopping")

    @property
    def can_resume(self) -> bool:
        return self.state in ("stopped", "killed") and self.has_run and self.progress.done < self.job.cases


def status(folder: Path, job: Job, run_folder: Path, progress: Progress) -> JobStatus:
    """What is to be said of a job now."""
    # In this order: a run that ends between two looks is then seen alive or ended, never as gone without an end.
    is_alive = any((process := read_process(folder / name)) is not None and process.is_alive
                   for name in (SUPERVISOR, RUN_PROCESS))  # fmt: skip
    end = read_end(folder)
    has_run = (run_folder / CONFIG).is_file()
    if end is not None:
        state, sentence = _ended(folder, job, end, progress, is_finished=(run_folder / METRICS).is_file())
    elif is_alive or _may_be_starting(folder, job):
        state, sentence = _going(folder, progress, has_run=has_run)
    elif (run_folder / METRICS).is_file():
        state, sentence = "finished", "finished while nobody looked after it"
    else:
        state, sentence = "killed", f"its processes are gone without an end: {_kept(progress)}"
    return JobStatus(job, state, sentence, progress, has_run, end)


def _may_be_starting(folder: Path, job: Job) -> bool:
    age = datetime.now(UTC) - datetime.fromisoformat(job.created)
    return not (folder / SUPERVISOR).exists() and age.total_seconds() < FOR_STARTING_S


def _going(folder: Path, progress: Progress, *, has_run: bool) -> tuple[State, str]:
    if (folder / CANCELLED).exists():
        return "stopping", "cancelled; the cases that ended are written down"
    if not has_run:
        return "starting", "starting"
    if progress.done >= progress.total:
        return "running", f"all {counted(progress.total, 'case')} ended; summary and reports are being written"
    return "running", f"{progress.done} of {counted(progress.total, 'case')}"


def _ended(folder: Path, job: Job, end: JobEnd, progress: Progress, *, is_finished: bool) -> tuple[State, str]:
    code = end.exit_code
    if code in ENDED_WITH_A_VERDICT and is_finished:
        return "finished", f"finished: {progress.done} of {counted(job.cases, 'case')}"
    if end.is_cancelled:
        return "stopped", f"cancelled: {_kept(progress)}"
    if code is not None and code < 0:
        return "killed", f"the run was killed by {_signal_name(-code)}: {_kept(progress)}"
    reason = next((line for line in reversed(log_tail(folder / LOG)) if line.startswith("ERROR: ")), None)
    what = f"exit code {code}" if reason is None else reason.removeprefix("ERROR: ")
    return "failed", f"the run did not come to its end: {what}"


def _kept(progress: Progress) -> str:
    if not progress.done:
        return "no case had ended"
    return f"{progress.done} of {counted(progress.total, 'case')} had ended, and stay"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
