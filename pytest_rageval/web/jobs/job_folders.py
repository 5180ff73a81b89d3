"""The folders of one kind of job, a process each: their names, and which of them still run."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_rageval.io.lock import is_locked
from pytest_rageval.web.site import UnknownPageError


class JobFolders:
    """The folders below `data/jobs` or `data/pairwise`; `kind` is their name in messages."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path = path
        self._kind = kind

    def names(self) -> list[str]:
        try:
            return [entry.name for entry in os.scandir(self.path) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []

    def running(self) -> list[str]:
        """Return the names of the folders whose process runs."""
        return [name for name in self.names() if is_locked(self.path / name)]

    def place(self, name: str) -> Path:
        """Return a folder, or raise UnknownPageError. Look the name up among the existing: it never becomes a path."""
        if name not in self.names():
            raise UnknownPageError(f"there is no {self._kind} {name!r}")
        return self.path / name
