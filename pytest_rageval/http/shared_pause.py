"""The end of a Retry-After, known to all worker processes of one run on this machine."""

from __future__ import annotations

import atexit
import hashlib
import mmap
import os
import struct
import tempfile
import time
from contextlib import suppress
from pathlib import Path

WORKERS_OF = "RAGEVAL_WORKERS_OF"
"""Variable with a name that all workers of a run have in common; pytest-xdist sets one of its own."""
_XDIST_RUN = "PYTEST_XDIST_TESTRUNUID"
_MOMENT = struct.Struct("d")


class SharedPause:
    """A moment in a file that several processes map into memory: reading it costs no call.

    The moment is one of the monotonic clock, which all processes of a machine share: after a step of the wall clock by
    an hour, the calls would wait for an hour, or come before the pause has ended.
    """

    def __init__(self, path: Path) -> None:
        """Open the file or make it; raise OSError if that fails."""
        # Not through a link: the folder is shared, and another user could point the name at a file of ours.
        opened = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            # A new file is full of zeros: a moment long past. In one of another worker the moment stays.
            os.ftruncate(opened, _MOMENT.size)
            self._memory = mmap.mmap(opened, _MOMENT.size)
        finally:
            os.close(opened)
        # Whoever ends first removes the name; the others keep what they mapped.
        atexit.register(path.unlink, missing_ok=True)

    def seconds_left(self) -> float:
        """Return the seconds until the pause ends; negative if it has ended."""
        until: float = _MOMENT.unpack_from(self._memory)[0]
        return until - time.monotonic()

    def extend(self, seconds: float) -> None:
        """Let the pause last at least this long from now."""
        if seconds > self.seconds_left():
            _MOMENT.pack_into(self._memory, 0, time.monotonic() + seconds)


def shared_pause(server: str) -> SharedPause | None:
    """Return the pause of a server that this process shares with others; None if it is no worker, or has no file."""
    group = os.environ.get(WORKERS_OF) or os.environ.get(_XDIST_RUN)
    if not group:
        return None
    name = hashlib.sha256(f"{group} {server}".encode("utf-8", "replace")).hexdigest()[:32]
    # Without it each worker hears of a pause by a refusal of its own.
    with suppress(OSError, ValueError):
        return SharedPause(Path(tempfile.gettempdir()) / f"rageval-pause-{name}")
    return None
