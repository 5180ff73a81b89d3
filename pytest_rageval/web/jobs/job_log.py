"""The log of a job: what its run prints, without credentials, and never larger than a limit."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from pytest_rageval.io.masking import Mask
from pytest_rageval.text import printable

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
        text = printable(self._mask.shown(line.decode("utf-8", "replace").rstrip("\r\n")))
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
