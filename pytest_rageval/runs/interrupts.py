"""Signals that end a run in order: Ctrl-C, SIGTERM and SIGHUP alike, and the second one while the first is heeded.

The first is a KeyboardInterrupt that says which it was. One that comes while the run's files are finished waits until
they are; it then leaves the session at once, and so does every later one: no fixture is waited for. One that comes when
the session is over was meant for it too, and changes nothing, unless something holds the program up.
"""

from __future__ import annotations

import atexit
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from types import FrameType
from typing import Any, Literal, NoReturn

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
HEEDED_WITHIN = 1.0
"""Seconds within which the run begins to end; where code of the user's swallowed the first, one more may."""
ELSEWHERE_WITHIN = 0.01
"""Seconds after which the program is looked at again, where a signal came at a bad place."""


class Interrupted(KeyboardInterrupt):
    """The first signal of a run. pytest shows of a bare KeyboardInterrupt which line of ours raised it, of one with
    another name what it says."""

    __module__ = "builtins"


class Interrupts:
    """The signals of one run, on the process that controls it."""

    def __init__(
        self,
        leave: Callable[[], NoReturn],
        first: type[KeyboardInterrupt] = Interrupted,
        *,
        is_program: Callable[[], bool] = lambda: False,
    ) -> None:
        """`leave`: raises what ends the program at the second signal; `first`: what the first one raises; `is_program`:
        whether the process ends with this run, and no code goes on that called for it."""
        self._leave, self._first, self._is_program = leave, first, is_program
        self._replaced: dict[int, Any] = {}
        self._phase: Literal["running", "finishing", "finished", "over", "closing"] = "running"
        self.is_repeated = False
        self._interrupted_at = self._over_at = -math.inf
        self._first_at = math.inf
        # Not a lock of `threading`, and no thread begun by a handler: the interrupted code may hold the same lock.
        self._to_repeat: SimpleQueue[tuple[int, float] | None] = SimpleQueue()

    def install(self) -> None:
        """Take the signals over, where nobody else has; a program that has its own way with one keeps it."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (getattr(signal, name) for name in SIGNALS if hasattr(signal, name)):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                self._replaced[number] = signal.signal(number, self._handle)
        if self._replaced:
            threading.Thread(target=self._repeat_signals, name="rageval-signals", daemon=True).start()

    def restore(self) -> None:
        """Give the signals back; where one was heeded and the process ends with this run, when it does not end.

        Python takes its own handlers away while it ends, so that one more Ctrl-C would kill a program that has ended in
        order, and its exit status would be another. After a signal that was heeded none counts there.
        """
        is_heeded = self.is_repeated or self._interrupted_at > -math.inf
        last = _LastMoments(self._replaced) if is_heeded and self._is_program() else None
        for number, handler in self._replaced.items():
            signal.signal(number, last.handle if last is not None else handler)
            if is_heeded:
                atexit.register(signal.signal, number, signal.SIG_IGN)
        self._replaced = {}
        self._to_repeat.put(None)

    def begin_finishing(self) -> None:
        """From here on a signal waits."""
        if self._phase == "running":
            self._phase = "finishing"

    def end_finishing(self) -> None:
        """The files are finished: a signal that waited leaves the session now."""
        self._phase = "finished"
        if self.is_repeated:
            self._leave()

    def end_session(self) -> None:
        """Nobody is there any more who catches what leaves the session; it ends by itself."""
        if self._phase == "finished":
            self._phase, self._over_at = "over", time.monotonic()

    def begin_closing(self) -> None:
        """From here on nothing is waited for that a signal could shorten."""
        self._phase = "closing"

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._phase == "running" and now - self._interrupted_at > HEEDED_WITHIN:
            self._first_at = min(self._first_at, now)
            if now - self._first_at < HEEDED_WITHIN and _breaks_what_it_interrupts(frame):
                self._to_repeat.put((number, ELSEWHERE_WITHIN))
                return
            self._interrupted_at, self._first_at = now, math.inf
            raise self._first(f"by {signal.Signals(number).name}")
        self.is_repeated = True
        if self._phase == "running":
            # The first may have been swallowed (by a finalizer, say), and this one would wait in vain.
            self._to_repeat.put((number, HEEDED_WITHIN))
        if self._phase == "finished" or (self._phase == "over" and now - self._over_at > HEEDED_WITHIN):
            self._leave()

    def _repeat_signals(self) -> None:
        """Send signals once more after a while, if the run goes on; a main thread that waits is woken by it."""
        while (signalled := self._to_repeat.get()) is not None:
            number, seconds = signalled
            time.sleep(seconds)
            if self._phase == "running" and self._replaced:
                signal.pthread_kill(threading.main_thread().ident or 0, number)


def _breaks_what_it_interrupts(frame: FrameType | None) -> bool:
    """Whether an exception raised here would end in a traceback of pytest's, not in the end of the session.

    pytest cannot show an instruction that belongs to no line. One of its generators that an exception keeps from its
    first step fails later, when it is thrown away. Nothing of this waits for long.
    """
    if frame is not None and frame.f_lineno is None:
        return True
    while frame is not None and _package(frame) in sys.stdlib_module_names:
        frame = frame.f_back
    return frame is not None and _package(frame) in ("_pytest", "pluggy")


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


class _LastMoments:
    """The signals between the end of an interrupted run and that of its program: they were meant for the run. One that
    comes a while later is meant for what holds the program up, and does what it would have done without us."""

    def __init__(self, replaced: Mapping[int, Any]) -> None:
        self._replaced = dict(replaced)
        self._since = time.monotonic()

    def handle(self, number: int, _frame: object) -> None:
        if time.monotonic() - self._since > HEEDED_WITHIN:
            signal.signal(number, self._replaced[number])
            signal.raise_signal(number)


def is_called_by_script(module: str, *entry_points: str) -> bool:
    """Whether the innermost call of these functions that led here is what a script consists of."""
    frame: FrameType | None = sys._getframe()
    names = (*entry_points, "main")  # a program's own `main` that is none of them is for code that goes on
    while frame is not None and not _is_of(frame, module, names):
        frame = frame.f_back
    while frame is not None and frame.f_back is not None and _is_of(frame.f_back, module, names):
        frame = frame.f_back
    if frame is None or frame.f_back is None:
        return False
    return frame.f_code.co_name in entry_points and frame.f_back.f_code.co_name == "<module>"


def _is_of(frame: FrameType, module: str, names: tuple[str, ...]) -> bool:
    return frame.f_code.co_name in names and frame.f_globals.get("__name__") == module
