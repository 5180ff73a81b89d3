"""The files of a job's folder, `data/jobs/ID/`: what is to be run, by which processes it is, and how it ended."""

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
    """One process, for as long as it lives; `started` differs from that of any other process with this pid."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    started: str

    @property
    def is_alive(self) -> bool:
        """Does this very process run? One that has ended and was not waited for does not."""
        return _started(self.pid) == self.started

    def send(self, signal_number: signal.Signals) -> bool:
        """Signal the process, if it is the one that is meant; False where it is gone."""
        if not self.is_alive:
            return False
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal_number)
            return True
        return False


def identify(pid: int) -> ProcessIdentity | None:
    """The identity of a process that runs now; None where there is none."""
    started = _started(pid)
    return None if started is None else ProcessIdentity(pid=pid, started=started)


def _started(pid: int) -> str | None:
    """When a living process began, in words of the system: of Linux the boot and the clock tick since then."""
    if _BOOT.exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        state, *fields = stat.rpartition(")")[2].split()  # the command before it may hold spaces and brackets
        return None if state in "ZX" else f"{_BOOT.read_text(encoding='ascii').strip()}:{fields[18]}"
    listed = subprocess.run(  # noqa: S603 because the pid is a number
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],  # noqa: S607 because ps is where the user's PATH has it
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=10,
    ).stdout.split(maxsplit=1)  # fmt: skip
    return None if len(listed) < 2 or listed[0].startswith("Z") else listed[1].strip()


JOB, SUPERVISOR, RUN_PROCESS, ENDED, CANCELLED = (
    "job.json", "supervisor.json", "run_process.json", "ended.json", "cancelled",
)  # fmt: skip
CONFIGURATION = "rageval.toml"
Source = Literal["connector", "uploaded answers"]


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _time_with_zone(written: str) -> str:
    if datetime.fromisoformat(written).tzinfo is None:
        raise ValueError("is a time without its zone")
    return written


class Job(_Stored):
    """What was ordered. The id is that of the run, too.

    cases      how many there are to ask
    arguments  of `rageval run`, beside the configuration in the folder
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
    warnings: tuple[str, ...] = ()
    arguments: tuple[str, ...]


class JobEnd(_Stored):
    """How the run ended: the exit code of its process, negative for a signal, None where it was never started."""

    exit_code: int | None
    ended: str
    is_cancelled: bool


def read_job(folder: Path) -> Job:
    """What was ordered; SettingsError where the folder is none of a job."""
    try:
        return Job.model_validate(read_json(folder / JOB, "job"))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise SettingsError(f"job: {folder / JOB}: {place}: {problem['msg']}") from None


def read_end(folder: Path) -> JobEnd | None:
    """How the run ended; None where that is not written down."""
    try:
        return JobEnd.model_validate(read_json(folder / ENDED, "job"))
    except (SettingsError, ValidationError):
        return None


def read_process(file: Path) -> ProcessIdentity | None:
    """A process that was written down; None where there is none."""
    try:
        return ProcessIdentity.model_validate(read_json(file, "job"))
    except (SettingsError, ValidationError):
        return None


LOG = "log.txt"
MOST_BYTES = 2**20
"""Of the file: once it is larger, its older half goes."""
LONGEST_LINE = 2000
SHOWN_LINES = 200
_CUT = b"(older lines were left out)\n"


class JobLog:
    """The file, open for adding lines. What a line holds is masked before it is cut."""

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
        beside = self._path.with_suffix(".new")
        beside.write_bytes(kept)
        beside.replace(self._path)
        self._file = self._path.open("ab", buffering=0)
        self._size = len(kept)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def log_tail(path: Path, number: int = SHOWN_LINES) -> list[str]:
    """The last lines of a log; none where there is no file."""
    try:
        data = _tail(path, number * LONGEST_LINE)
    except OSError:
        return []
    return data.decode("utf-8", "replace").splitlines()[-number:]


def _tail(path: Path, size: int) -> bytes:
    # A link in the folder, as a project of somebody else may bring one, shows no file from elsewhere.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size)
