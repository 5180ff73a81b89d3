"""A progress line on a terminal for work that takes more than a second; silent anywhere else."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.cells import cell_len

from pytest_rageval.render.text.columns import shortened

FIRST_S, EVERY_S = 1.0, 0.1


class Progress:
    """`with Progress("judged") as watch: watch(12)` shows `judged 12` on standard error, and wipes it at the end."""

    def __init__(self, what: str, total: int | None = None, end: Callable[[], str] = str) -> None:
        """`end`: what stands behind the count each time."""
        self._what, self._of, self._end = what, "" if total is None else f" of {total}", end
        self._next = time.monotonic() + FIRST_S
        self._is_terminal = sys.stderr.isatty()
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: int) -> None:
        if not self._is_terminal or (now := time.monotonic()) < self._next:
            return
        self._next = now + EVERY_S
        line = shortened(f"{self._what} {done}{self._of}{self._end()}", shutil.get_terminal_size().columns - 1)
        self._width = max(self._width, cell_len(line))
        print(f"\r{line.ljust(self._width)}", end="", file=sys.stderr, flush=True)

    def wipe(self) -> None:
        """Leave nothing of the line: something else is to stand there."""
        if self._width:
            print("\r" + " " * self._width, end="\r", file=sys.stderr, flush=True)
            self._width = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wipe()
