"""Atomic replacement of JSON and text files, and reading of our own JSON files."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.io.temporary_file import temporary_file

LARGEST = 1 << 28
"""Largest JSON file in bytes that is read."""


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a JSON file atomically; sorted keys make equal values equal bytes."""
    write_text(path, json_text(value, sort_keys=True) + "\n")


def write_text(path: Path, text: str) -> None:
    """Replace a file atomically: readers see the old or the new content, never a mix."""
    _replace(path, lambda file: file.write(text.encode("utf-8")))


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """Replace a file atomically by these texts one after the other, without joining them in memory."""
    _replace(path, lambda file: file.writelines(part.encode("utf-8") for part in parts))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Replace a file atomically by these lines, which need not fit into memory together."""
    _replace(path, lambda file: file.writelines(f"{line}\n".encode() for line in lines))


def write_bytes(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace a file atomically by these bytes, with these permissions."""
    _replace(path, lambda file: file.write(content), mode)


def write_new(path: Path, content: bytes, mode: int = 0o444) -> None:
    """Create a file, whole or not at all; raise FileExistsError instead of replacing another one."""
    with _written(path, lambda file: file.write(content), mode) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:
            # A file system without hard links: there, another process may see half of the file for a moment.
            with path.open("xb") as file:
                _fill(file, lambda file: file.write(content))
            path.chmod(mode)
        _sync_folder(path.parent)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield an empty file that replaces this one if the body succeeds, for a writer that takes a path."""
    with _written(path, lambda _: None, 0o644) as temporary:
        try:
            yield Path(temporary)
            # The writer has closed its file: opened once more, it can be flushed.
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError as error:
            if error.filename in (None, temporary, Path(temporary)):  # the user needs this one's name
                raise OSError(error.errno, error.strerror, str(path)) from None
            raise


def _sync_folder(folder: Path) -> None:
    """Flush the folder so that a new file's name survives a power cut, if the system supports it."""
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
    except OSError as error:  # it names the temporary file or none; the user needs this one's name
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextlib.contextmanager
def _written(path: Path, write: Callable[[IO[bytes]], object], mode: int) -> Iterator[str]:
    """Write a temporary file in the folder of `path`, flushed before the body runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary_file(path) as (handle, temporary):
        with os.fdopen(handle, "wb") as file:
            _fill(file, write)
        # A temporary file is readable by its owner alone; reports are read by others, too.
        os.chmod(temporary, mode)
        yield temporary


def _fill(file: IO[bytes], write: Callable[[IO[bytes]], object]) -> None:
    write(file)
    # Without this, a power cut after the rename can leave an empty file under the right name.
    file.flush()
    os.fsync(file.fileno())


def open_regular(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a file for reading; OSError for a pipe or device, which would be waited for, and for a folder."""
    # Without O_NONBLOCK, to open a pipe that nobody writes to never ends.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
    # Asked of what was opened: the path may be another file by now.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return open(descriptor, "rb", buffering)


def read_json(path: Path, what: str) -> dict[str, Any]:
    """Read one of our JSON files; raise SettingsError if it is missing, unreadable or not an object."""
    try:
        with open_regular(path) as file:
            # Its size is asked for first: `read(LARGEST)` makes room for 256 MiB at once, whatever the file holds.
            if os.fstat(file.fileno()).st_size > LARGEST:
                raise SettingsError(f"{what}: {path} is larger than {LARGEST:,} bytes; it is no file of ours")
            value = parse(file.read())
    except FileNotFoundError:
        raise SettingsError(f"{what}: {path} does not exist") from None
    except OSError as error:
        raise SettingsError(f"{what}: {path} cannot be read: {error.strerror}") from None
    except StrictJsonError as error:
        raise SettingsError(f"{what}: {path} is not JSON as we write it: {error}") from None
    if not isinstance(value, dict):
        raise SettingsError(f"{what}: {path} holds no JSON object")
    return value


def readable_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that can be rebuilt; return nothing if it is missing or no longer an object."""
    try:
        with open_regular(path) as file:
            content = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
