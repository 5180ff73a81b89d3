"""Locks between processes on a folder or file: gone with the process that holds them, however it ends."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_rageval.errors import SettingsError


class LockHeld(BlockingIOError):
    """Another process holds the lock."""


def take_lock(path: Path, *, is_shared: bool = False) -> int:
    """Lock what is there; the lock is given back by closing the descriptor, or with the process.

    LockHeld where another process has it; OSError where there is nothing to lock; SettingsError on a system without
    such locks. On a file system without them nothing is locked, and nobody can tell.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        _flock(descriptor, is_shared=is_shared)
    except BaseException:  # Ctrl-C too: nobody else knows the descriptor
        os.close(descriptor)
        raise
    return descriptor


def is_locked(path: Path) -> bool:
    """True if another process holds the lock; False where that cannot be told."""
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
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LockHeld(*error.args) from None
    except OSError:
        pass  # a file system without locks
