"""File systems of a test's own: a small disk that can be filled or made read-only, and a root whom modes bind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which

import pytest

STUFFING = "stuffing"
NO_OVERRIDE = "-dac_override,-dac_read_search"
"""The capabilities by which root reads and writes what modes forbid."""


class SmallDisk:
    """A tmpfs at a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def leave(self, room: int) -> None:
        """Fill the disk but for so many bytes, in whole pages."""
        stuffing = self.folder / STUFFING
        stuffing.unlink(missing_ok=True)
        stats = os.statvfs(self.folder)
        size = max(0, stats.f_bavail * stats.f_frsize - room)
        with stuffing.open("wb", buffering=0) as file, suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, size)

    def make_room(self) -> None:
        (self.folder / STUFFING).unlink(missing_ok=True)

    def make_read_only(self) -> None:
        _run("mount", "-o", "remount,ro", str(self.folder))

    def make_writable(self) -> None:
        _run("mount", "-o", "remount,rw", str(self.folder))


@contextmanager
def small_disk(folder: Path, size: str = "4m") -> Iterator[SmallDisk]:
    """Mount a file system at a new folder; skip the test where that is not allowed."""
    folder.mkdir(parents=True)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mounting, check=False, capture_output=True, timeout=60).returncode:
        pytest.skip("a file system of its own can be mounted by root alone")
    try:
        yield SmallDisk(folder)
    finally:
        _run("umount", "--lazy", str(folder))


def bound_by_modes(*command: str) -> list[str]:
    """Return the command as a user runs it whom the modes of files bind; skip the test where root cannot be bound."""
    if os.getuid() != 0:
        return list(command)
    if which("setpriv") is None:
        pytest.skip("modes do not bind root, and setpriv is not installed")
    return ["setpriv", f"--bounding-set={NO_OVERRIDE}", f"--inh-caps={NO_OVERRIDE}", *command]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=60)
