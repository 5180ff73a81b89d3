"""How many calls are in flight: as many as allowed, fewer while a server refuses calls.

`CallLimit` hands out permits in order. A refusal (429, 503, 529) halves the limit; what goes well raises it again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields

from pytest_rageval.text import counted

GOOD_CALLS = 4
"""Times as many calls as are allowed at once have to go well before the limit grows, by a quarter."""


@dataclass(slots=True)
class BackOff:
    """How a system bore the calls of a run, in one process or in several together.

    most      calls at once that are allowed at all
    limit     of those, how many the server bears now
    lowest    the least that `limit` has been
    refusals  calls that were refused
    """

    most: int = 0
    limit: int = 0
    lowest: int = 0
    refusals: int = 0

    def __add__(self, other: BackOff) -> BackOff:
        """Of two processes that ask the same system, each within its own limit."""
        return BackOff(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def note(self) -> str | None:
        """What a person should know of it; None where all went as it was allowed to."""
        if self.lowest == self.most:
            return None
        return (
            f"the system refused {counted(self.refusals, 'call')} (429 or 503): down to {self.lowest} of {self.most} "
            f"questions were in flight; --rageval-concurrency {self.limit} asks no more than it bears"
        )


class Permit:
    """Leave to make one call. The sender says when it is refused, and waits for another before sending again."""

    def __init__(self, limit: CallLimit) -> None:
        self._limit = limit
        self.timeout: asyncio.Timeout | None = None
        """Where set, waiting for another turn does not count for it."""
        self._begin()

    def refused(self) -> None:
        """The server says that this call is too much for it now."""
        if self._is_running:
            self._end()
            self._limit.refused(self._era)

    async def again(self) -> float:
        """Wait until the call may be sent once more; the seconds that took."""
        if self._is_running:
            return 0.0
        loop = asyncio.get_running_loop()
        began, deadline = loop.time(), self.timeout and self.timeout.when()
        if self.timeout is not None:
            self.timeout.reschedule(None)
        await self._limit.wait(is_first=True)
        self._begin()
        waited = loop.time() - began
        if self.timeout is not None and deadline is not None:
            self.timeout.reschedule(deadline + waited)
        return waited

    def ended(self) -> None:
        """The call is over; it went well unless it was refused to the last."""
        if self._is_running:
            self._end()
            self._limit.went_well()

    def _begin(self) -> None:
        self._limit.running += 1
        self._era, self._is_running = self._limit.era, True

    def _end(self) -> None:
        self._limit.running -= 1
        self._is_running = False


_permit: ContextVar[Permit | None] = ContextVar("rageval_permit", default=None)


def current_permit() -> Permit | None:
    """The permission under which this task sends its call, if it needs one."""
    return _permit.get()


@dataclass(slots=True)
class CallTally:
    """Requests that were sent for one call, and the milliseconds from the first of them to the last."""

    requests: int = 0
    retry_wait_ms: float = 0.0


_tally: ContextVar[CallTally | None] = ContextVar("rageval_tally", default=None)


def add_to_tally(requests: int, retry_wait_ms: float) -> None:
    """Add what one call came to, where somebody counts."""
    if (tally := _tally.get()) is not None:
        tally.requests += requests
        tally.retry_wait_ms += retry_wait_ms


@contextmanager
def tallied() -> Iterator[CallTally]:
    """Count the requests that are sent within, also for whoever counts outside."""
    tally = CallTally()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)
        add_to_tally(tally.requests, tally.retry_wait_ms)


class CallLimit:
    """At most `most` calls at once, and fewer where `is_adaptive` and the server does not bear so many.

    Belongs to one event loop; who comes first is served first, and before all who was refused.
    """

    def __init__(self, most: int, *, is_adaptive: bool = True) -> None:
        self.back_off = BackOff(most, most, most)
        self.running = 0
        self.era = 0
        """How often the limit was halved: a refusal of a call that began before that does not halve it again."""
        self._good = 0
        self._is_adaptive = is_adaptive
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._coming = 0
        """Woken, and not yet running."""

    @asynccontextmanager
    async def permit(self) -> AsyncIterator[Permit]:
        """Wait for permission to make one call."""
        await self.wait()
        permit = Permit(self)
        token = _permit.set(permit if self._is_adaptive else None)
        try:
            yield permit
        finally:
            _permit.reset(token)
            permit.ended()

    async def wait(self, *, is_first: bool = False) -> None:
        """Until one more call may be made, which is made at once."""
        if not self._waiting and self._is_free():
            return
        leave = asyncio.get_running_loop().create_future()
        self._waiting.appendleft(leave) if is_first else self._waiting.append(leave)
        try:
            await leave
        except asyncio.CancelledError:
            if leave.done() and not leave.cancelled():  # permitted in the same moment: somebody else may go
                self._coming -= 1
                self._wake()
            else:
                with suppress(ValueError):  # passed over already
                    self._waiting.remove(leave)
            raise
        self._coming -= 1

    def refused(self, era: int) -> None:
        """One call was refused that began in an era."""
        state = self.back_off
        state.refusals += 1
        self._good = 0
        if era == self.era:
            self.era += 1
            state.limit = max(1, state.limit // 2)
            state.lowest = min(state.lowest, state.limit)
        self._wake()

    def went_well(self) -> None:
        """One call went well."""
        state = self.back_off
        self._good += 1
        if self._good >= GOOD_CALLS * state.limit and state.limit < state.most:
            state.limit = min(state.most, state.limit + max(1, state.limit // 4))
            self._good = 0
        self._wake()

    def _wake(self) -> None:
        """Let go whoever may."""
        while self._waiting and self._is_free():
            leave = self._waiting.popleft()
            if not leave.done():
                self._coming += 1
                leave.set_result(None)

    def _is_free(self) -> bool:
        return self.running + self._coming < self.back_off.limit


class CallSlots:
    """Calls of a run: `most` in all, and of questions only as many as the system bears."""

    def __init__(self, most: int, *, is_adaptive: bool = True) -> None:
        self._questions = CallLimit(most, is_adaptive=is_adaptive)
        self._calls = CallLimit(most, is_adaptive=False)

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[Permit]:
        """Wait for permission to ask."""
        async with self._calls.permit(), self._questions.permit() as permit:
            yield permit

    def judging(self) -> AbstractAsyncContextManager[Permit]:
        """Wait for permission to judge, which is a call like any other."""
        return self._calls.permit()

    @property
    def in_flight(self) -> int:
        return self._calls.running

    @property
    def back_off(self) -> BackOff:
        """How far questions were held back so far."""
        return self._questions.back_off
