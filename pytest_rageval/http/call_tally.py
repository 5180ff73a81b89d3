"""What one call is charged: its requests, its waits, and a time limit that stands still while it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class CallTally:
    """The requests sent for one call, and its waits in milliseconds.

    queued_ms      before the first request
    retry_wait_ms  from the first request to the last
    ttft_ms        from the last request to the first token of a streamed answer; None if it was no stream
    has_masked     whether a reply repeated a credential that it was sent
    """

    requests: int = 0
    queued_ms: float = 0.0
    retry_wait_ms: float = 0.0
    ttft_ms: float | None = None
    has_masked: bool = False


_tally: ContextVar[CallTally | None] = ContextVar("rageval_tally", default=None)


def add_to_tally(requests: int, queued_ms: float, retry_wait_ms: float) -> None:
    """Add one call's requests and waits to the active tally, if there is one."""
    if (tally := _tally.get()) is not None:
        tally.requests += requests
        tally.queued_ms += queued_ms
        tally.retry_wait_ms += retry_wait_ms


def note_first_token(ttft_ms: float) -> None:
    """Note when the first token of the answer arrived; of several answers, the last one counts."""
    if (tally := _tally.get()) is not None:
        tally.ttft_ms = ttft_ms


def note_masked() -> None:
    """Note that a credential in a reply was masked."""
    if (tally := _tally.get()) is not None:
        tally.has_masked = True


@contextmanager
def tallied() -> Iterator[CallTally]:
    """Count the requests sent inside the block; an outer block counts them too."""
    tally = CallTally()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)
        # The outer block is active again, and gets what the inner one counted.
        add_to_tally(tally.requests, tally.queued_ms, tally.retry_wait_ms)
        if tally.ttft_ms is not None:
            note_first_token(tally.ttft_ms)
        if tally.has_masked:
            note_masked()


class CallClock:
    """The time of a call, which stands still while the call waits for permission to send.

    waited_s  seconds in which it stood still
    """

    def __init__(self, timeout: asyncio.Timeout | None) -> None:
        """Prepare the clock, which stops and starts this time limit if there is one."""
        self.waited_s = 0.0
        self._timeout = timeout
        self._waiting = 0
        self._began = 0.0
        self._ends_at: float | None = None
        """The end of the time limit, as it was when the waiting began."""

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock inside the block; several parts of one call may wait at once."""
        now = asyncio.get_running_loop().time
        if self._waiting == 0:
            self._began = now()
            # Two judgements of one answer may wait at once: the first stops the clock, the last starts it.
            if self._timeout is not None:
                self._ends_at = self._timeout.when()
                self._timeout.reschedule(None)
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if self._waiting == 0:
                waited = now() - self._began
                self.waited_s += waited
                if self._timeout is not None and self._ends_at is not None:
                    # By the time that was left, not by the whole limit.
                    self._timeout.reschedule(self._ends_at + waited)

    def give_back(self, seconds: float) -> None:
        """Count the time of a refused request as waiting."""
        self.waited_s += seconds
        if self._waiting:
            self._ends_at = None if self._ends_at is None else self._ends_at + seconds
        elif self._timeout is not None and (ends_at := self._timeout.when()) is not None:
            self._timeout.reschedule(ends_at + seconds)


_clock: ContextVar[CallClock | None] = ContextVar("rageval_clock", default=None)


def current_clock() -> CallClock | None:
    """Return the clock of the current call, or None if nothing limits its time."""
    return _clock.get()


@contextmanager
def call_clock(timeout: asyncio.Timeout | None = None) -> Iterator[CallClock]:
    """Let the calls inside the block stop a clock, and this time limit, while they wait."""
    clock = CallClock(timeout)
    token = _clock.set(clock)
    try:
        yield clock
    finally:
        _clock.reset(token)
