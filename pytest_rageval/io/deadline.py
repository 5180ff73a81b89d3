"""A deadline for a call of foreign code that may never return."""

from __future__ import annotations

import contextvars
import ctypes
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
AGAIN_S = 1.0
"""Seconds after which a call that swallowed its end is ended once more."""


class MissedDeadline(BaseException):
    """A call did not return in time. No Exception, which foreign code often catches and goes on."""


def call_within(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of a call; raise MissedDeadline where it takes longer than so many seconds.

    On the main thread of a POSIX system a timer of the operating system ends the call where it stands: a loop, a sleep,
    a lock, a read from a socket, a regular expression. Elsewhere the call runs in a thread of its own, which is left
    behind, since no thread can be ended from outside; it does not keep the process from ending. Code in C that never
    looks for signals cannot be ended at all.
    """
    if not _has_timer():
        return _in_thread(seconds, call)
    remaining, _ = signal.getitimer(signal.ITIMER_REAL)
    if 0 < remaining <= seconds:  # a deadline of others, such as pytest-timeout's, comes first
        return call()
    return _with_timer(seconds, call)


def _has_timer() -> bool:
    """Return True if this thread can be interrupted by a timer: the main one, where no C code has the signal."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGALRM) is not None


def _with_timer(seconds: float, call: Callable[[], T]) -> T:
    """Raise MissedDeadline within the call once the time is over; then give back the timer to its owner."""
    is_over = False

    def end(_number: int, _frame: FrameType | None) -> None:
        # The timer may still go off between the call's return and its own end.
        if not is_over:
            raise MissedDeadline

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, end)
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        try:
            return call()
        finally:
            is_over = True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            # Not 0, which would stop the timer instead of letting it go off at once.
            left = max(left - (time.monotonic() - began), 0.001)
            signal.setitimer(signal.ITIMER_REAL, left, interval)


def _in_thread(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of a call in a daemon thread, as long as it arrives in time."""
    results: list[T] = []
    errors: list[BaseException] = []
    # Output of the call belongs to its case, which a context variable names.
    context = contextvars.copy_context()

    def run() -> None:
        try:
            results.append(context.run(call))
        except BaseException as error:  # noqa: BLE001 because the waiting thread raises it
            errors.append(error)

    thread = threading.Thread(target=run, name="rageval-metric", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        _ask_to_end(thread)
        raise MissedDeadline
    return results[0]


def _ask_to_end(thread: threading.Thread) -> None:
    """Raise MissedDeadline in another thread, which hears it only while it runs Python code."""
    raise_in: Any = ctypes.pythonapi.PyThreadState_SetAsyncExc
    raise_in(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(MissedDeadline))
