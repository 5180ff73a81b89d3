"""What a `rageval init` that ended with 1 has written, so that the next call can replace what nobody has edited."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pytest_rageval.io.atomic import open_regular, readable_json, write_json

MEMORY = Path("reports") / "cache" / "init.json"
"""Git ignores it: another checkout replaces nothing."""
_LARGEST = 1 << 24
"""Bytes of a file that are looked at; what we write is smaller by far."""


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
        return name in self._digests and not path.is_symlink() and self._digests[name] == _digest(path)

    def remember(self, names: Iterable[str]) -> None:
        """Store the digests of these files, and of those of earlier calls that nobody has edited."""
        earlier = [name for name in self._digests if self.has_written(name)]
        write_json(self._memory, {"files": {name: _digest(self._root / name) for name in [*earlier, *names]}})

    def forget(self) -> None:
        """Leave all files to the person, whose they are now."""
        self._memory.unlink(missing_ok=True)


def _digest(path: Path) -> str | None:
    """Return the digest of a file; None if it cannot be read."""
    try:
        with open_regular(path) as file:
            return hashlib.sha256(file.read(_LARGEST)).hexdigest()
    except OSError:
        return None
