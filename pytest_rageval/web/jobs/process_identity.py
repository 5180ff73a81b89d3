"""Identities of processes: a pid with the time at which its process began, so that a pid given anew is no mistake."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict

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
