"""Limits on concurrent calls, which fall while a server refuses calls.

`CallLimit` hands out permits in order, to refused calls first. A refusal (429, 503, 529) halves the limit; successful
calls raise it again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields

from pytest_rageval.text import counted

GOOD_CALLS = 4
"""The limit grows by a quarter after GOOD_CALLS × limit successful calls."""


@dataclass(slots=True)
class BackOff:
    """The limit on concurrent calls and its history, for one process or several together.

    most      the configured limit
    limit     the current limit
    lowest    the lowest value of `limit` so far
    refusals  number of refused calls
    """

    most: int = 0
    limit: int = 0
    lowest: int = 0
    refusals: int = 0

    def __add__(self, other: BackOff) -> BackOff:
        """Add up two processes that query the same system, each within its own limit."""
        return BackOff(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def note(self) -> str | None:
        """Return a line about the reduced limit for the user, or None if it was never reduced."""
        if self.lowest == self.most:
            return None
        return (
            f"the system refused {counted(self.refusals, 'call')} (429 or 503): down to {self.lowest} of {self.most} "
            f"questions were in flight; --rageval-concurrency {self.limit} asks no more than it bears"
        )


class Permit:
    """Permission for one call. The sender reports a refusal, and renews the permit before it sends again."""

    timeout: asyncio.Timeout | None = None
    """A timeout that is extended by the time spent waiting for a renewal."""

    def __init__(self, limit: CallLimit) -> None:
        self._limit, self._era, self._is_held = limit, limit.era, True

    def note_refusal(self) -> None:
        """Report that the server refused this call as one too many."""
        if self._is_held:
            self._is_held = False
            self._limit.note_refusal(self._era)
            self._limit.release()

    async def renew(self) -> float:
        """Wait for permission to resend the call; return the seconds waited."""
        if self._is_held:
            return 0.0
        loop = asyncio.get_running_loop()
        began, deadline = loop.time(), self.timeout and self.timeout.when()
        if self.timeout is not None:
            self.timeout.reschedule(None)
        await self._limit.acquire(is_repeat=True)
        self._era, self._is_held = self._limit.era, True
        waited = loop.time() - began
        if self.timeout is not None and deadline is not None:
            self.timeout.reschedule(deadline + waited)
        return waited

    def end(self) -> None:
        """Report the end of the call, as a success unless its last attempt was refused."""
        if self._is_held:
            self._is_held = False
            self._limit.note_success()
            self._limit.release()


_permit: ContextVar[Permit | None] = ContextVar("rageval_permit", default=None)


def current_permit() -> Permit | None:
    """Return the permit of the current task, or None if its call needs none."""
    return _permit.get()


@dataclass(slots=True)
class CallTally:
    """The number of requests sent for one call, and the milliseconds from the first to the last."""

    requests: int = 0
    retry_wait_ms: float = 0.0


_tally: ContextVar[CallTally | None] = ContextVar("rageval_tally", default=None)


def add_to_tally(requests: int, retry_wait_ms: float) -> None:
    """Add one call's requests and retry time to the active tally, if there is one."""
    if (tally := _tally.get()) is not None:
        tally.requests += requests
        tally.retry_wait_ms += retry_wait_ms


@contextmanager
def tallied() -> Iterator[CallTally]:
    """Count the requests sent inside the block; an outer block counts them too."""
    tally = CallTally()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)
        add_to_tally(tally.requests, tally.retry_wait_ms)


class CallLimit:
    """A limit of `most` concurrent calls, lowered while the server refuses calls if `is_adaptive`.

    Belongs to one event loop. Permits go out first come, first served, but refused calls go ahead: they are repeated
    while the limit is at its lowest, before it grows and the server refuses them once too often.
    """

    def __init__(self, most: int, *, is_adaptive: bool = True) -> None:
        self.back_off = BackOff(most, most, most)
        self.running = 0
        self.era = 0
        """Number of times the limit was halved; a refusal halves it only if its call began in the current era."""
        self._good = 0
        self._is_adaptive = is_adaptive
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def permit(self) -> AsyncIterator[Permit]:
        """Wait for permission to make one call."""
        await self.acquire()
        permit = Permit(self)
        token = _permit.set(permit if self._is_adaptive else None)
        try:
            yield permit
        finally:
            _permit.reset(token)
            permit.end()

    async def acquire(self, *, is_repeat: bool = False) -> None:
        """Wait for a free place, ahead of all others if the call is repeated after a refusal."""
        place = asyncio.get_running_loop().create_future()
        if is_repeat:
            self._waiting.appendleft(place)
        else:
            self._waiting.append(place)
        self._hand_out()
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():  # the place was handed out in the meantime
                self.release()
            raise

    def release(self) -> None:
        """Free the place for the next caller."""
        self.running -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting and self.running < self.back_off.limit:
            if not (place := self._waiting.popleft()).done():
                self.running += 1
                place.set_result(None)

    def note_refusal(self, era: int) -> None:
        """Halve the limit after a refusal, once per era (the call's era is the one in which it began)."""
        state = self.back_off
        state.refusals += 1
        self._good = 0
        if era == self.era:
            self.era += 1
            state.limit = max(1, state.limit // 2)
            state.lowest = min(state.lowest, state.limit)

    def note_success(self) -> None:
        """Count a successful call, and raise the limit by a quarter after enough of them."""
        state = self.back_off
        self._good += 1
        if self._good >= GOOD_CALLS * state.limit and state.limit < state.most:
            state.limit = min(state.most, state.limit + max(1, state.limit // 4))
            self._good = 0
            self._hand_out()


class CallSlots:
    """Limits of a run: `most` calls in all, with an adaptive limit on those to the system."""

    def __init__(self, most: int, *, is_adaptive: bool = True) -> None:
        self._questions = CallLimit(most, is_adaptive=is_adaptive)
        self._calls = CallLimit(most, is_adaptive=False)

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[Permit]:
        """Wait for permission to query the system."""
        async with self._calls.permit(), self._questions.permit() as permit:
            yield permit

    def judging(self) -> AbstractAsyncContextManager[Permit]:
        """Wait for permission to judge; it counts towards the limit of all calls."""
        return self._calls.permit()

    @property
    def in_flight(self) -> int:
        return self._calls.running

    @property
    def back_off(self) -> BackOff:
        """Return how far the limit on questions was reduced."""
        return self._questions.back_off
