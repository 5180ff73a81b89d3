"""Temporary files next to the file that they replace, and the removal of those whose writer was killed."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.lock import take_lock

SUFFIX = ".rageval-tmp"
"""The end of their names, which `.gitignore` files of ours list."""
ABANDONED_S = 600
"""Seconds after the last change before a file counts as abandoned.

A running writer holds a lock. The age protects it before it has the lock, and on file systems without locks.
"""
_LONGEST_STEM = 50
"""Characters taken from the name of the file: a name has at most 255 bytes, and a character up to four."""


@contextlib.contextmanager
def temporary_file(path: Path) -> Iterator[tuple[int, str]]:
    """Yield an open descriptor and the name of a new file next to `path`; remove it at the end if it still exists.

    The body closes the descriptor. If it succeeds, abandoned files in the folder are removed as well.
    """
    # In the same folder: a rename is atomic only within a file system.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:_LONGEST_STEM]}.", suffix=SUFFIX)
    lock = None
    try:
        now = os.fstat(handle).st_mtime  # by the clock of the file system, which may be that of another machine
        lock = _lock(temporary)
        yield handle, temporary
        _remove_abandoned(path.parent, now)
    finally:
        Path(temporary).unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def _lock(path: str) -> int | None:
    try:
        return take_lock(Path(path))
    except (OSError, SettingsError):  # a system without locks; then the age alone protects the file
        return None


def _remove_abandoned(folder: Path, now: float) -> None:
    """Remove temporary files of killed writers; one that cannot be removed stays."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(SUFFIX):
                with contextlib.suppress(OSError, SettingsError):
                    _remove_if_abandoned(entry, now)


def _remove_if_abandoned(entry: os.DirEntry[str], now: float) -> None:
    status = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode) or now - status.st_mtime < ABANDONED_S:
        return
    lock = take_lock(Path(entry.path))  # LockHeld is an OSError: its writer lives
    try:
        os.unlink(entry.path)
    finally:
        os.close(lock)
