"""Files of a `rageval init` that ended with 1: the next call replaces those that are not edited."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pytest_rageval.io.atomic import open_regular, readable_json, write_json

MEMORY = Path("reports") / "cache" / "init.json"
"""Git ignores it: another checkout replaces nothing."""
_LARGEST = 1 << 24
"""Bytes of a file that are read; files of ours are smaller by far."""


class UnfinishedInit:
    """The digests of the files that the last call has written, if it ended with 1."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._memory = root / MEMORY
        digests = readable_json(self._memory).get("files")
        self._digests: dict[str, object] = digests if isinstance(digests, dict) else {}

    def has_written(self, name: str) -> bool:
        """Check whether the file still has the bytes that `rageval init` wrote; a link never has."""
        path = self._root / name
        if name not in self._digests or path.is_symlink():
            return False
        return self._digests[name] == _digest(path)

    def remember(self, names: Iterable[str]) -> None:
        """Store the digests of these files, and of those of earlier calls that are not edited."""
        earlier = [name for name in self._digests if self.has_written(name)]
        digests = {name: _digest(self._root / name) for name in [*earlier, *names]}
        write_json(self._memory, {"files": digests})

    def forget(self) -> None:
        """Forget all files: from now on they are the project's own."""
        self._memory.unlink(missing_ok=True)


def _digest(path: Path) -> str | None:
    """Return the digest of a file; None if it cannot be read."""
    try:
        with open_regular(path) as file:
            return hashlib.sha256(file.read(_LARGEST)).hexdigest()
    except OSError:
        return None
