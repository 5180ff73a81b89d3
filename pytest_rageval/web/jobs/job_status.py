"""The state of a job in a word and a sentence, as its folder, its processes and its run's folder say."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.disk.reader import CONFIG, StoredRun
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
TONES: Mapping[State, str] = {
    "starting": "grey", "running": "grey", "stopping": "amber", "finished": "grey", "stopped": "amber", "killed": "red",
    "failed": "red",
}  # fmt: skip
FOR_STARTING_S = 20.0
"""Seconds after its creation in which a job without a process may still be starting."""
ENDED_WITH_A_VERDICT = (0, 1)
"""Exit codes of a run that came to its end."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job as it is now.

    has_run  is there a folder of its run to look at?
    tone     of the sentence: that of the run's verdict once there is one
    """

    job: Job
    state: State
    sentence: str
    progress: Progress
    has_run: bool
    tone: str

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
    has_run, verdict = (run_folder / CONFIG).is_file(), _verdict(run_folder)
    if end is not None:
        state, sentence = _ended(folder, end, progress, verdict)
    elif is_alive or _may_be_starting(folder, job):
        state, sentence = _going(folder, progress, has_run=has_run)
    elif (folder / CANCELLED).exists():
        state, sentence = "stopped", f"cancelled: {_kept(progress)}"
    elif verdict is not None:
        state, sentence = "finished", verdict["sentence"]
    else:
        state, sentence = "killed", f"its processes are gone without an end: {_kept(progress)}"
    tone = verdict["tone"] if verdict is not None and state == "finished" else TONES[state]
    return JobStatus(job, state, sentence, progress, has_run, tone)


def _verdict(run_folder: Path) -> Mapping[str, Any] | None:
    """What the run came to; None where it has not ended, or its file cannot be read."""
    try:
        metrics = StoredRun(run_folder).metrics
    except SettingsError:
        return None
    return None if metrics is None else metrics.get("verdict")


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


def _ended(folder: Path, end: JobEnd, progress: Progress, verdict: Mapping[str, Any] | None) -> tuple[State, str]:
    code = end.exit_code
    if code in ENDED_WITH_A_VERDICT and verdict is not None:
        return "finished", verdict["sentence"]
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
