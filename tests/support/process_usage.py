"""Memory and open files of a process and all that it started, sampled from /proc while it runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """Bytes in memory of all processes of a session, and the open files of each, when so many things were done."""

    done: int
    resident: int
    open_files: dict[int, int]


class UsageSampler:
    """Samples a session of processes between `with` and its end; `done` counts what it has done so far."""

    def __init__(self, session: int, done: Callable[[], int], every_s: float = 0.1) -> None:
        self.samples: list[Usage] = []
        self._session = session
        self._done = done
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join(60)

    def _sample(self) -> None:
        while not self._ended.wait(self._every_s):
            resident = 0
            open_files: dict[int, int] = {}
            for pid in processes_of(self._session):
                try:
                    resident += int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE
                    open_files[pid] = len(os.listdir(PROC / str(pid) / "fd"))
                except (OSError, IndexError):  # it ended meanwhile
                    continue
            if open_files:
                self.samples.append(Usage(self._done(), resident, open_files))


def processes_of(session: int) -> list[int]:
    """Return the processes of a session."""
    found: list[int] = []
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text(errors="replace")
            except OSError:
                continue
            # Behind the name, which may hold spaces: state, parent, group, session.
            if int(stat.rpartition(")")[2].split()[3]) == session:
                found.append(int(folder.name))
    return found
