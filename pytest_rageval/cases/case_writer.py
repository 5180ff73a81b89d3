"""Repeated writing of a case file that others may have open: locked, checked, backed up, atomic."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_rageval.errors import CaseError
from pytest_rageval.io.atomic import write_bytes
from pytest_rageval.io.lock import LockHeld, take_lock

LOCK_PATIENCE_S = 2.0


class ChangedMeanwhile(CaseError):
    """The file has changed since our last read or write; nothing was written."""


class CaseWriter:
    """Rewrites one file as long as no other program does. The first write keeps the old content in `X.bak`."""

    def __init__(self, path: Path, *, may_be_new: bool = False) -> None:
        """Raise CaseError at once if the file cannot be read or written.

        may_be_new  treat a missing file as empty; the first write creates it
        """
        self.path = path
        self._file = path.resolve()  # a link is followed, not replaced
        self._may_be_new = may_be_new
        self.content = self._read()
        self._hash = _hash(self.content)
        self._is_backed_up = False
        for place in (self._file, self._file.parent):
            if place.exists() and not os.access(place, os.W_OK):
                raise CaseError(f"{path}: cannot be written: {place} is not writable; change its permissions")

    @property
    def backup(self) -> Path:
        return self._file.with_name(f"{self._file.name}.bak")

    def write(self, content: bytes) -> None:
        """Replace the file; raise ChangedMeanwhile if another program changed it, CaseError if it cannot be written."""
        with self._locked():
            now = self._read()
            # By content, not by time: an editor may save without a change, and clocks are coarse.
            if _hash(now) != self._hash:
                raise ChangedMeanwhile(f"{self.path}: was changed by another program meanwhile; it was left as it is")
            # A write without a change would touch the file, and others would read it again.
            if content == now:
                return
            try:
                # An atomic write makes a new file, which would have the mode of the temporary one.
                mode = os.stat(self._file).st_mode & 0o777 if self._file.exists() else 0o644
                if not self._is_backed_up and self._file.exists():
                    write_bytes(self.backup, now, mode)
                    self._is_backed_up = True
                write_bytes(self._file, content, mode)
            except OSError as error:
                raise CaseError(f"{self.path}: cannot be written: {error.strerror or error}") from None
        self.content = content
        self._hash = _hash(content)

    def _read(self) -> bytes:
        try:
            return self._file.read_bytes()
        except OSError as error:
            if self._may_be_new and isinstance(error, FileNotFoundError):
                return b""
            raise CaseError(f"{self.path}: cannot be read: {error.strerror or error}") from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the folder, because each write replaces the file itself."""
        until = time.monotonic() + LOCK_PATIENCE_S
        while True:
            try:
                descriptor = take_lock(self._file.parent)
                break
            except LockHeld:
                if time.monotonic() > until:
                    raise CaseError(f"{self.path}: another program keeps {self._file.parent} locked") from None
                time.sleep(0.02)
            except OSError as error:
                raise CaseError(f"{self.path}: cannot be locked: {error.strerror or error}") from None
        try:
            yield
        finally:
            os.close(descriptor)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
