"""How many calls are in flight: as many as allowed, fewer while a server refuses calls.

`CallLimit` hands out permits in order. A refusal (429, 503, 529) halves the limit, or lowers it to the calls that still
run where these are fewer. What goes well for a while raises it again, by a quarter.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from pytest_rageval.text import counted

LONGEST_PATIENCE = 16
"""Times as many calls as are allowed at once have to go well before one more is, after refusals again and again."""


@dataclass(slots=True)
class Overload:
    """What is known of a server, by calls that ended; pure, one for each limit.

    most      calls at once that are allowed at all
    limit     of those, how many the server bears now
    lowest    the least that `limit` has been
    refusals  calls that were refused
    era       how often the limit was halved: of the calls that began before that, no other refusal halves it again
    """

    most: int
    limit: int = 0
    lowest: int = 0
    refusals: int = 0
    era: int = 0
    _patience: int = 1
    _good: int = 0

    def __post_init__(self) -> None:
        self.limit = self.lowest = self.most

    def refused(self, still_running: int, era: int) -> None:
        """One call was refused that began in an era, while so many others ran on."""
        self.refusals += 1
        limit = min(self.limit, still_running)
        if era == self.era:
            self.era += 1
            self._patience = min(2 * self._patience, LONGEST_PATIENCE)
            limit = min(limit, self.limit // 2)
        self.limit = max(1, limit)
        self.lowest = min(self.lowest, self.limit)
        self._good = 0

    def ended(self) -> None:
        """One call went well."""
        self._good += 1
        if self._good >= self._patience * self.limit and self.limit < self.most:
            self.limit = min(self.most, self.limit + max(1, self.limit // 4))
            self._good = 0
            self._patience = max(1, self._patience // 2) if self.limit == self.most else self._patience


class Permit:
    """Leave to make one call. Who sends it says when it is refused, and waits for another before sending again."""

    def __init__(self, limit: CallLimit) -> None:
        self._limit = limit
        self.timeout: asyncio.Timeout | None = None
        """Where set, waiting for another turn does not count for it."""
        self.is_running = False
        self._begin()

    def refused(self) -> None:
        """The server says that this call is too much for it now."""
        if self.is_running:
            self._end()
            self._limit.overload.refused(self._limit.running, self._era)
            self._limit.wake()

    async def again(self) -> float:
        """Wait until the call may be sent once more; the seconds that took."""
        if self.is_running:
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
        if self.is_running:
            self._end()
            self._limit.overload.ended()
            self._limit.wake()

    def _begin(self) -> None:
        self._limit.running += 1
        self._era = self._limit.overload.era
        self.is_running = True

    def _end(self) -> None:
        self.is_running = False
        self._limit.running -= 1


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
        self.overload = Overload(most)
        self.running = 0
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
                self.wake()
            else:
                with suppress(ValueError):  # passed over already
                    self._waiting.remove(leave)
            raise
        self._coming -= 1

    def wake(self) -> None:
        """Let go whoever may."""
        while self._waiting and self._is_free():
            leave = self._waiting.popleft()
            if not leave.done():
                self._coming += 1
                leave.set_result(None)

    def _is_free(self) -> bool:
        limit = self.overload.limit if self._is_adaptive else self.overload.most
        return self.running + self._coming < limit


@dataclass(frozen=True, slots=True)
class BackOff:
    """How a system bore the questions of a run, in one process or in several together; fields as in `Overload`."""

    most: int = 0
    limit: int = 0
    lowest: int = 0
    refusals: int = 0

    def __add__(self, other: BackOff) -> BackOff:
        """Of two processes that ask the same system, each within its own limit."""
        return BackOff(
            self.most + other.most,
            self.limit + other.limit,
            self.lowest + other.lowest,
            self.refusals + other.refusals,
        )

    @property
    def note(self) -> str | None:
        """What a person should know of it; None where all went as it was allowed to."""
        if self.lowest == self.most:
            return None
        return (
            f"the system refused {counted(self.refusals, 'call')} (429 or 503): down to {self.lowest} of {self.most} "
            f"questions were in flight; --rageval-concurrency {self.limit} asks no more than it bears"
        )


class CallSlots:
    """Calls of a run: `most` in all, and of questions only as many as the system bears."""

    def __init__(self, most: int, *, is_adaptive: bool = True) -> None:
        self.questions = CallLimit(most, is_adaptive=is_adaptive)
        self._calls = CallLimit(most, is_adaptive=False)

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[Permit]:
        """Wait for permission to ask."""
        async with self._calls.permit(), self.questions.permit() as permit:
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
        overload = self.questions.overload
        return BackOff(overload.most, overload.limit, overload.lowest, overload.refusals)
