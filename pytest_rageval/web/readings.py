"""What was read from files, kept until they change. Long readings go on in the background."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pytest_rageval.errors import RagevalError
from pytest_rageval.io.collector import no_collection

V = TypeVar("V")


class StillReadingError(RagevalError):
    """Files are still being read; a later request gets what they hold."""


@dataclass
class _Reading:
    stamp: object
    result: Future[Any] = field(default_factory=Future)
    serves_until: float = 0.0


class Readings:
    """The last `most` results, by key."""

    def __init__(self, patience_s: float, most: int) -> None:
        self._patience_s, self._most = patience_s, most
        self._lock = threading.Lock()
        self._kept: OrderedDict[object, _Reading] = OrderedDict()

    def get(self, key: object, stamp: object, read: Callable[[], V], wait: int = 0) -> V:
        """Return what `read` returns for files in the state `stamp`, or raise its error.

        wait  files that change are read again only after this many times the duration of reading them

        Raise StillReadingError if that takes longer than the patience; it goes on in a thread.
        """
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or (kept.stamp != stamp and time.monotonic() >= kept.serves_until):
                kept = self._kept[key] = _Reading(stamp, serves_until=float("inf") if wait else 0.0)
                threading.Thread(target=_read_into, args=(kept, read, wait), daemon=True).start()
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        try:
            found: V = kept.result.result(self._patience_s)
        except TimeoutError:
            raise StillReadingError("files are being read") from None
        except Exception:
            with self._lock:  # so that they are read again once they are fixed
                if self._kept.get(key) is kept:
                    del self._kept[key]
            raise
        return found


def _read_into(reading: _Reading, read: Callable[[], Any], wait: int) -> None:
    started, serves_until = time.monotonic(), 0.0
    try:
        with no_collection(is_for_good=True):
            result = read()
        serves_until = time.monotonic() + wait * (time.monotonic() - started)
    except BaseException as error:  # noqa: BLE001 because the waiting request raises it
        reading.result.set_exception(error)
    else:
        reading.result.set_result(result)
    finally:
        reading.serves_until = serves_until


def states_of(paths: Iterable[Path | str]) -> tuple[tuple[int, int] | None, ...]:
    """Return the times and sizes of files, which change when the files do; None for a missing one."""
    return tuple(_state_of(path) for path in paths)


def _state_of(path: Path | str) -> tuple[int, int] | None:
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    return state.st_mtime_ns, state.st_size
