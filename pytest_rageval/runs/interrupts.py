"""Signals that end a run in order: Ctrl-C, SIGTERM and SIGHUP alike, and the second one while the first is heeded.

The first is a KeyboardInterrupt that says which it was. One that comes while the run's files are finished waits until
they are; it then leaves the session at once, and so does every later one: no fixture is waited for.
"""

from __future__ import annotations

import _thread
import atexit
import math
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, Literal, NoReturn

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
HEEDED_WITHIN = 1.0
"""Seconds within which the run begins to end; where code of the user's swallowed the first, one more may."""


class Interrupted(KeyboardInterrupt):
    """The first signal of a run. pytest shows of a bare KeyboardInterrupt which line of ours raised it, of one with
    another name what it says."""

    __module__ = "builtins"


class Interrupts:
    """The signals of one run, on the process that controls it."""

    def __init__(self, leave: Callable[[], NoReturn], first: type[KeyboardInterrupt] = Interrupted) -> None:
        """`leave`: raises what ends the program at the second signal; `first`: what the first one raises."""
        self._leave, self._first = leave, first
        self._replaced: dict[int, Any] = {}
        self._phase: Literal["running", "finishing", "finished", "closing"] = "running"
        self.is_repeated = False
        self._interrupted_at = -math.inf

    def install(self) -> None:
        """Take the signals over, where nobody else has; a program that has its own way with one keeps it."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (getattr(signal, name) for name in SIGNALS if hasattr(signal, name)):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                self._replaced[number] = signal.signal(number, self._handle)

    def restore(self) -> None:
        """Give the signals back.

        Python takes its own handlers away while it ends, so that one more Ctrl-C would kill a program that has ended in
        order, and its exit status would be another. After a signal that was heeded none counts there.
        """
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
            if self._interrupted_at > -math.inf:
                atexit.register(signal.signal, number, signal.SIG_IGN)
        self._replaced.clear()

    def begin_finishing(self) -> None:
        """From here on a signal waits."""
        if self._phase == "running":
            self._phase = "finishing"

    def end_finishing(self) -> None:
        """The files are finished: a signal that waited leaves the session now."""
        self._phase = "finished"
        if self.is_repeated:
            self._leave()

    def begin_closing(self) -> None:
        """From here on nothing is waited for that a signal could shorten."""
        self._phase = "closing"

    def _handle(self, number: int, _frame: object) -> None:
        now = time.monotonic()
        if self._phase == "running" and now - self._interrupted_at > HEEDED_WITHIN:
            self._interrupted_at = now
            raise self._first(f"by {signal.Signals(number).name}")
        self.is_repeated = True
        if self._phase == "running":
            again = threading.Timer(HEEDED_WITHIN, self._insist)
            again.daemon = True
            again.start()
        if self._phase == "finished":
            self._leave()

    def _insist(self) -> None:
        """Signal once more, where the first was swallowed (by a finalizer, say) and the second waited in vain."""
        if self._phase == "running" and self._replaced:
            _thread.interrupt_main()
