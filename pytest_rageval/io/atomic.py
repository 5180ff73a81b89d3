"""JSON and text files replaced in one step, and JSON files of ours read back."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.strict_json import StrictJsonError, parse

LARGEST = 1 << 28
"""Bytes of a JSON file that is read."""


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a JSON file in one step: sorted keys, so that equal values are equal bytes."""
    write_text(path, json_text(value, sort_keys=True) + "\n")


def write_text(path: Path, text: str) -> None:
    """Replace a file in one step: a reader sees the old or the new one, never half of either."""
    _replace(path, lambda file: file.write(text.encode("utf-8")))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Replace a file in one step by these lines, which need not be in memory together."""
    _replace(path, lambda file: file.writelines(f"{line}\n".encode() for line in lines))


def write_bytes(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace a file in one step by these bytes, with these permissions."""
    _replace(path, lambda file: file.write(content), mode)


def write_new(path: Path, content: bytes, mode: int = 0o444) -> None:
    """Write a file for good: whole or not at all, and never over another one; FileExistsError where there is one."""
    with _written(path, lambda file: file.write(content), mode) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            with path.open("xb") as file:
                _fill(file, lambda file: file.write(content))
            path.chmod(mode)
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """The name of a new file outlives a power cut, where the system can promise that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _replace(path: Path, write: Callable[[IO[bytes]], object], mode: int = 0o644) -> None:
    try:
        with _written(path, write, mode) as temporary:
            os.replace(temporary, path)
    except OSError as error:  # of a file beside it, or of none: a person needs the name of this one
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextlib.contextmanager
def _written(path: Path, write: Callable[[IO[bytes]], object], mode: int) -> Iterator[str]:
    """Write a file beside `path`, on disk when this is entered; nothing half-written stays, not after Ctrl-C either."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            _fill(file, write)
        os.chmod(temporary, mode)
        yield temporary
    finally:
        Path(temporary).unlink(missing_ok=True)


def _fill(file: IO[bytes], write: Callable[[IO[bytes]], object]) -> None:
    write(file)
    file.flush()
    os.fsync(file.fileno())


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A JSON file of ours, read strictly; SettingsError where it is missing, cannot be read or is something else."""
    try:
        if path.stat().st_size > LARGEST:
            raise SettingsError(f"{what}: {path} is larger than {LARGEST:,} bytes; it is no file of ours")
        value = parse(path.read_bytes())
    except FileNotFoundError:
        raise SettingsError(f"{what}: {path} does not exist") from None
    except OSError as error:
        raise SettingsError(f"{what}: {path} cannot be read: {error.strerror}") from None
    except StrictJsonError as error:
        raise SettingsError(f"{what}: {path} is not JSON as we write it: {error}") from None
    if not isinstance(value, dict):
        raise SettingsError(f"{what}: {path} holds no JSON object")
    return value


# ── locks ───────────────────────────────────────────────────────────────────────────────────────────────────────


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
