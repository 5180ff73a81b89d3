"""Orderly ends of a run by Ctrl-C, SIGTERM or SIGHUP, and by a second signal while the first is handled.

The first signal raises a KeyboardInterrupt that names it. A signal while the run's files are being finished waits
until they are; it then leaves the session at once, as does every later one, without waiting for fixtures. A signal
after the end of the session changes nothing, unless something holds the program up.
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
"""Seconds for the run to begin its end; a later signal counts as the first again, which user code may swallow."""
ELSEWHERE_WITHIN = 0.01
"""Seconds until a signal is sent again that arrived at a bad place."""


class Interrupted(KeyboardInterrupt):
    """The first signal of a run.

    pytest prints the message of this exception; of a bare KeyboardInterrupt it prints our line that raised it.
    """

    __module__ = "builtins"


class Interrupts:
    """The signals of one run, in the process that controls it."""

    def __init__(
        self,
        leave: Callable[[], NoReturn],
        first: type[KeyboardInterrupt] = Interrupted,
        *,
        is_program: Callable[[], bool] = lambda: False,
    ) -> None:
        """Store `leave`, which ends the program at the second signal, and `first`, the exception type of the first one.

        `is_program` returns True if the process ends with this run and no calling code goes on.
        """
        self._leave = leave
        self._first = first
        self._is_program = is_program
        self._replaced: dict[int, Any] = {}
        self._phase: Literal["running", "finishing", "finished", "over", "closing"] = "running"
        self.is_repeated = False
        self._interrupted_at = self._over_at = -math.inf
        self._first_at = math.inf
        # Not a lock of `threading`, and no thread begun by a handler: the interrupted code may hold the same lock.
        self._to_repeat: SimpleQueue[tuple[int, float] | None] = SimpleQueue()

    def install(self) -> None:
        """Handle the signals that have their default handlers; leave a program's own handlers alone."""
        # Python handles signals in the main thread alone, and lets only that one install handlers.
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (getattr(signal, name) for name in SIGNALS if hasattr(signal, name)):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                self._replaced[number] = signal.signal(number, self._handle)
        if self._replaced:
            threading.Thread(target=self._repeat_signals, name="rageval-signals", daemon=True).start()

    def restore(self) -> None:
        """Restore the handlers; if a signal was handled and the process ends with this run, first ignore further ones.

        Python removes its own handlers while it ends. One more Ctrl-C would then kill a program that has ended in order
        and change its exit status, so signals are ignored from there on.
        """
        is_heeded = self.is_repeated or self._interrupted_at > -math.inf
        last = _LastMoments(self._replaced) if is_heeded and self._is_program() else None
        for number, handler in self._replaced.items():
            signal.signal(number, last.handle if last is not None else handler)
            if is_heeded:
                # Python runs these before it removes its own handlers.
                atexit.register(signal.signal, number, signal.SIG_IGN)
        self._replaced = {}
        self._to_repeat.put(None)

    def begin_finishing(self) -> None:
        """Make signals wait from now on."""
        if self._phase == "running":
            self._phase = "finishing"

    def end_finishing(self) -> None:
        """Leave the session now if a signal waited for the files."""
        self._phase = "finished"
        if self.is_repeated:
            self._leave()

    def end_session(self) -> None:
        """Stop leaving the session by signals: it ends by itself, and nothing catches the exception any more."""
        if self._phase == "finished":
            self._phase = "over"
            self._over_at = time.monotonic()

    def begin_closing(self) -> None:
        """Ignore signals from now on: there is nothing left to shorten."""
        self._phase = "closing"

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._phase == "running" and now - self._interrupted_at > HEEDED_WITHIN:
            self._first_at = min(self._first_at, now)
            if now - self._first_at < HEEDED_WITHIN and _breaks_what_it_interrupts(frame):
                self._to_repeat.put((number, ELSEWHERE_WITHIN))
                return
            self._interrupted_at = now
            self._first_at = math.inf
            raise self._first(f"by {signal.Signals(number).name}")
        self.is_repeated = True
        if self._phase == "running":
            # User code (a finalizer, say) may have swallowed the first signal, and this one would wait in vain.
            self._to_repeat.put((number, HEEDED_WITHIN))
        if self._phase == "finished" or (self._phase == "over" and now - self._over_at > HEEDED_WITHIN):
            self._leave()

    def _repeat_signals(self) -> None:
        """Send signals again after a delay if the run goes on; this wakes a waiting main thread."""
        while (signalled := self._to_repeat.get()) is not None:
            number, seconds = signalled
            time.sleep(seconds)
            if self._phase == "running" and self._replaced:
                # To the main thread itself: a signal to the process may go to another thread, and would wake nothing.
                signal.pthread_kill(threading.main_thread().ident or 0, number)


def _breaks_what_it_interrupts(frame: FrameType | None) -> bool:
    """Return True if an exception raised here would end in a traceback of pytest's instead of ending the session.

    pytest cannot show an instruction without a line number. A generator of pytest's that an exception stops before its
    first step fails later, when it is deleted. None of these places lasts long.
    """
    if frame is not None and frame.f_lineno is None:
        return True
    # Frames of the standard library stand between pytest and what is interrupted.
    while frame is not None and _package(frame) in sys.stdlib_module_names:
        frame = frame.f_back
    return frame is not None and _package(frame) in ("_pytest", "pluggy")


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


class _LastMoments:
    """The signal handler between the end of an interrupted run and the end of its program.

    It ignores signals for a moment: they were meant for the run. Later ones get their original handler.
    """

    def __init__(self, replaced: Mapping[int, Any]) -> None:
        self._replaced = dict(replaced)
        self._since = time.monotonic()

    def handle(self, number: int, _frame: object) -> None:
        if time.monotonic() - self._since > HEEDED_WITHIN:
            signal.signal(number, self._replaced[number])
            signal.raise_signal(number)


def is_called_by_script(module: str, *entry_points: str) -> bool:
    """Return True if the innermost call of these functions is at the top level of a script."""
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
