"""The files of a job's folder, `data/jobs/ID/`: the order, the processes, the end and the log."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Annotated, BinaryIO, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json
from pytest_rageval.io.masking import Mask
from pytest_rageval.text import printable

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class ProcessIdentity(BaseModel):
    """The identity of one process; `started` distinguishes it from other processes with the same pid."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    started: str

    @property
    def is_alive(self) -> bool:
        """Return True if this very process runs. A zombie does not."""
        return _started(self.pid) == self.started

    def send(self, signal_number: signal.Signals) -> bool:
        """Signal the process if it is still the same one, or return False if it is gone."""
        if not self.is_alive:
            return False
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal_number)
            return True
        return False


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of a running process, or None if there is none."""
    started = _started(pid)
    return None if started is None else ProcessIdentity(pid=pid, started=started)


def _started(pid: int) -> str | None:
    """Return when a living process began, in the system's format: on Linux the boot id and the clock ticks since."""
    if _BOOT.exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        state, *fields = stat.rpartition(")")[2].split()  # the command before it may contain spaces and brackets
        return None if state in "ZX" else f"{_BOOT.read_text(encoding='ascii').strip()}:{fields[18]}"
    listed = subprocess.run(  # noqa: S603 because the pid is a number
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],  # noqa: S607 because ps is where the user's PATH has it
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=10,
    ).stdout.split(maxsplit=1)
    return None if len(listed) < 2 or listed[0].startswith("Z") else listed[1].strip()


JOB, PROCESS, ENDED, CANCELLED, LOG = "job.json", "process.json", "ended.json", "cancelled", "log.txt"
CONFIGURATION = "rageval.toml"
Source = Literal["connector", "uploaded answers"]


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _time_with_zone(written: str) -> str:
    if datetime.fromisoformat(written).tzinfo is None:
        raise ValueError("is a time without its zone")
    return written


class Job(_Stored):
    """A run started here. Its id is also the run's id.

    cases      number of cases to ask
    arguments  of `rageval run`, besides its folders and the configuration in the job's folder
    """

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


class JobEnd(_Stored):
    """The end of a run: the exit code of its command, and whether it was cancelled."""

    exit_code: int
    ended: str
    is_cancelled: bool


def read_job(folder: Path) -> Job:
    """Return the job of a folder, or raise SettingsError if the folder holds none."""
    try:
        return Job.model_validate(read_json(folder / JOB, "job"))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise SettingsError(f"job: {folder / JOB}: {place}: {problem['msg']}") from None


def read_end(folder: Path) -> JobEnd | None:
    """Return how the run ended, or None if its end is not recorded."""
    try:
        return JobEnd.model_validate(read_json(folder / ENDED, "job"))
    except (SettingsError, ValidationError):
        return None


def read_process(folder: Path) -> ProcessIdentity | None:
    """Return the recorded process of a job, or None if there is none."""
    try:
        return ProcessIdentity.model_validate(read_json(folder / PROCESS, "job"))
    except (SettingsError, ValidationError):
        return None


MOST_BYTES = 2**20
"""Maximum size of the log: once it is larger, its older half is dropped."""
LONGEST_LINE = 2000
SHOWN_LINES = 200
_CUT = b"(older lines were left out)\n"


class JobLog:
    """A log file open for appending. Each line is masked before it is cut."""

    def __init__(self, path: Path, mask: Mask, most_bytes: int = MOST_BYTES) -> None:
        self._path, self._mask, self._most = path, mask, most_bytes
        self._file: BinaryIO = path.open("ab", buffering=0)
        self._size = path.stat().st_size

    def __enter__(self) -> Self:
        return self

    def add(self, line: bytes) -> None:
        """Add one line as it was printed."""
        text = printable(self._mask.output(line.decode("utf-8", "replace").rstrip("\r\n")))
        shown = text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}… ({len(text)} characters)"
        data = f"{shown}\n".encode("utf-8", "replace")
        self._file.write(data)
        self._size += len(data)
        if self._size > self._most:
            self._drop_older_half()

    def _drop_older_half(self) -> None:
        self._file.close()
        kept = _CUT + _tail(self._path, self._most // 2).partition(b"\n")[2]
        replacement = self._path.with_suffix(".new")
        replacement.write_bytes(kept)
        replacement.replace(self._path)
        self._file = self._path.open("ab", buffering=0)
        self._size = len(kept)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def log_tail(path: Path, number: int = SHOWN_LINES) -> list[str]:
    """Return the last lines of a log; none if there is no file."""
    try:
        data = _tail(path, number * LONGEST_LINE)
    except OSError:
        return []
    return data.decode("utf-8", "replace").splitlines()[-number:]


def _tail(path: Path, size: int) -> bytes:
    # Links are not followed: another person's project may contain one that leads to a foreign file.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size)
