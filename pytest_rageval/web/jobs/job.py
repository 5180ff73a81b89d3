"""A job: the files of its folder `data/jobs/ID/` (order, process, end, log), its progress and its status.

The process of a job holds the lock of its folder from its start to its end, however it ends.
"""

from __future__ import annotations

import errno
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import open_regular, read_json, readable_json
from pytest_rageval.io.lock import is_locked
from pytest_rageval.runs.reader import CONFIG, StoredRun
from pytest_rageval.runs.records.line_form import RESULTS
from pytest_rageval.runs.records.line_scan import ended_trial
from pytest_rageval.text import counted

JOB = "job.json"
PROCESS = "process.json"
ENDED = "ended.json"
CANCELLED = "cancelled"
LOG = "log.txt"
CONFIGURATION = "rageval.toml"
Source = Literal["connector", "uploaded answers"]


def _time_with_zone(written: str) -> str:
    if datetime.fromisoformat(written).tzinfo is None:
        raise ValueError("is a time without its zone")
    return written


class Job(BaseModel):
    """A run started here. Its id is also the run's id.

    cases      number of cases to ask
    arguments  of `rageval run`, besides its folders and the configuration in the job's folder
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    agent: str
    agent_version: int
    dataset: str
    dataset_version: int
    source: Source
    description: str = ""
    created: Annotated[str, AfterValidator(_time_with_zone)]
    cases: int
    arguments: tuple[str, ...] = ()


def read_job(folder: Path) -> Job:
    """Return the job of a folder, or raise SettingsError if the folder holds none."""
    try:
        return Job.model_validate(read_json(folder / JOB, "job"))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise SettingsError(f"job: {folder / JOB}: {place}: {problem['msg']}") from None


def number_in(path: Path, name: str) -> int | None:
    """Return a number in a job's file, such as `exit_code`; None if it is not recorded."""
    value = readable_json(path).get(name)
    return value if isinstance(value, int) else None


LONGEST_LINE = 2000
SHOWN_LINES = 200


def log_tail(path: Path, number: int = SHOWN_LINES) -> list[str]:
    """Return the last lines of a log; none if there is no file."""
    try:
        data = tail(path, number * LONGEST_LINE)
    except OSError:
        return []
    return data.decode("utf-8", "replace").splitlines()[-number:]


def tail(path: Path, size: int) -> bytes:
    """Return the last bytes of a file; raise OSError for a link, which may lead anywhere."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link", str(path))
    with open_regular(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size)


BLOCK = 8 * 2**20
MANY_A_SECOND = 100


@dataclass(frozen=True, slots=True)
class Progress:
    """Ended cases by outcome, `rate` in cases per second, `cost_usd` of judging."""

    done: int = 0
    total: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    rate: float | None = None
    cost_usd: float | None = None

    @property
    def rate_in_words(self) -> str:
        """Return the rate as `9.8 cases/s`, blank while unknown."""
        if not self.rate:
            return ""
        return f"{self.rate:.1f} cases/s" if self.rate < MANY_A_SECOND else f"{self.rate:,.0f} cases/s"

    @property
    def time_left_in_words(self) -> str:
        """Return the time left as `about 40 s left`, blank while unknown."""
        if not self.rate or self.done >= self.total:
            return ""
        seconds = (self.total - self.done) / self.rate
        for unit, length, most in (("s", 1, 100), ("min", 60, 6000)):
            if seconds < most:
                return f"about {math.ceil(seconds / length)} {unit} left"
        return f"about {seconds / 3600:.1f} h left"

    @property
    def cost_in_words(self) -> str:
        """Return the cost of judging as `$0.12`, blank if it is zero or unknown."""
        return f"${self.cost_usd:.2f}" if self.cost_usd else ""

    @property
    def percent(self) -> int:
        return min(100, 100 * self.done // self.total) if self.total else 0

    @property
    def ended(self) -> str:
        """Return how many cases of a stopped run are kept."""
        what = f"{self.done} of {counted(self.total, 'case')} had ended, and stay"
        return what if self.done else "no case had ended"


class ProgressReader:
    """A thread-safe incremental reader of one run's results."""

    def __init__(self, run_folder: Path, total: int) -> None:
        self._file = run_folder / RESULTS
        self._total = total
        self._lock = threading.Lock()
        self._offset = 0
        self._outcomes: Counter[str] = Counter()
        self._cost: float | None = None
        self._since = time.monotonic(), 0

    def read(self) -> Progress:
        """Return the current progress of the run, with its rate since the first case that was seen."""
        with self._lock:
            is_first = not self._outcomes
            self._read_new()
            done = sum(self._outcomes.values())
            now = time.monotonic()
            if is_first:  # neither the start-up nor an earlier part of a resumed run counts for the rate
                self._since = now, done
            seconds = now - self._since[0]
            more = done - self._since[1]
            failed = self._outcomes["failed"] + self._outcomes["xfailed"]
            errors = self._outcomes["error"]
            rate = more / seconds if more and seconds else None
            return Progress(done, self._total, done - failed - errors, failed, errors, rate, self._cost)

    def _read_new(self) -> None:
        try:
            with open_regular(self._file) as file:
                if self._offset > file.seek(0, 2):  # another program rewrote the file
                    self._offset = 0
                    self._cost = None
                    self._outcomes.clear()
                file.seek(self._offset)
                rest = b""
                while block := file.read(BLOCK):
                    # A line without its end is still being written, and is read the next time.
                    *lines, rest = (rest + block).split(b"\n")
                    for line in lines:
                        self._count(line)
                        self._offset += len(line) + 1
        except OSError:
            return

    def _count(self, line: bytes) -> None:
        ended = ended_trial(line)
        if ended is None:
            return
        if ended.judge_cost_usd is not None:
            self._cost = (self._cost or 0.0) + ended.judge_cost_usd
        # Of several trials of a case only the first one counts as progress.
        if ended.is_first:
            self._outcomes[ended.outcome] += 1


State = Literal["starting", "running", "stopping", "finished", "stopped", "killed", "failed"]
TONES: Mapping[State, str] = {"stopping": "amber", "stopped": "amber", "killed": "red", "failed": "red"}
ENDED_WITH_A_VERDICT = (0, 1)
"""Exit codes of a completed run."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The current status of one job.

    has_run  whether its run has a folder
    tone     of the sentence: the tone of the run's verdict once there is one
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
    """Return the current status of a job."""
    # Check the lock before the end: a run that ends in between is then seen as going or ended, never as killed.
    has_process = is_locked(folder)
    code = number_in(folder / ENDED, "exit_code")
    is_cancelled = (folder / CANCELLED).exists()
    has_run = (run_folder / CONFIG).is_file()
    if code is None and has_process:
        state, sentence = _going(progress, is_cancelled=is_cancelled, has_run=has_run)
        return JobStatus(job, state, sentence, progress, has_run, _tone(state))

    verdict = _verdict(run_folder)
    # A process that was killed after its last file was written has a verdict and no exit code.
    is_finished = code in ENDED_WITH_A_VERDICT or (code is None and not is_cancelled)
    if verdict is not None and is_finished:
        return JobStatus(job, "finished", verdict["sentence"], progress, has_run, verdict["tone"])
    if is_cancelled:
        state = "stopped"
        sentence = f"cancelled: {progress.ended}"
    elif code is not None:
        state = "failed"
        sentence = f"the run did not come to its end: {_reason(folder, code)}"
    else:
        state = "killed"
        sentence = f"its process is gone without an end: {progress.ended}"
    return JobStatus(job, state, sentence, progress, has_run, _tone(state))


def _tone(state: State) -> str:
    return TONES.get(state, "grey")


def _reason(folder: Path, code: int) -> str:
    """Return the last error that a run printed, or else its exit code."""
    for line in reversed(log_tail(folder / LOG)):
        if line.startswith("ERROR: "):
            return line.removeprefix("ERROR: ")
    return f"exit code {code}"


def _verdict(run_folder: Path) -> Mapping[str, str] | None:
    """Return the run's verdict, or None if it has not ended or its file is unreadable."""
    try:
        metrics = StoredRun(run_folder).metrics
    except SettingsError:
        return None
    return None if metrics is None else metrics.get("verdict")


def _going(progress: Progress, *, is_cancelled: bool, has_run: bool) -> tuple[State, str]:
    if is_cancelled:
        return "stopping", "cancelled; the cases that ended are written down"
    if not has_run:
        return "starting", "starting"
    if progress.done >= progress.total:
        return "running", f"all {counted(progress.total, 'case')} ended; summary and reports are being written"
    return "running", f"{progress.done} of {counted(progress.total, 'case')}"
