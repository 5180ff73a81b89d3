"""Locks of folders and files, which end with their process."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_rageval.errors import SettingsError


class LockHeld(BlockingIOError):
    """Another process has the lock."""


def take_lock(path: Path, *, is_shared: bool = False) -> int:
    """Lock an existing file or folder; closing the descriptor or ending the process releases the lock.

    Raise LockHeld if another process has it, OSError if the path does not exist, and SettingsError on a system
    without such locks. On a file system without locks nothing is locked, which cannot be detected.
    """
    # Closed in programs that this process starts: one that outlives it would hold the lock.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        _flock(descriptor, is_shared=is_shared)
    except BaseException:  # Ctrl-C too: nothing else could close the descriptor
        os.close(descriptor)
        raise
    return descriptor


def is_locked(path: Path) -> bool:
    """Return True if another process holds the lock; False if unknown."""
    try:
        os.close(take_lock(path, is_shared=True))
    except LockHeld:
        return True
    except OSError:
        return False
    return False


def _flock(descriptor: int, *, is_shared: bool) -> None:
    try:
        import fcntl
    except ImportError:
        raise SettingsError(
            "runs are locked while they are written, and this system has no such locks (module fcntl); use Linux, "
            "macOS, or the Windows Subsystem for Linux"
        ) from None
    # Not `lockf`, whose locks end when any descriptor of the file is closed, and which cannot lock a folder.
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LockHeld(*error.args) from None
    except OSError:
        pass  # a file system without locks
