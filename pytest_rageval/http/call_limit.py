"""How many calls are in flight: as many as allowed, fewer while a server refuses calls or slows down under them.

`CallLimit` hands out permits in order. A refusal (429, 503, 529) says that no more fit than what still runs. Latency
has grown where calls begun among many take several times as long as those begun among few: by medians of windows, so
that a long tail alone changes nothing. What goes well for a while raises the limit again, by a quarter.
"""

from __future__ import annotations

import asyncio
import statistics
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field

from pytest_rageval.text import counted

GROWTH = 3.0
"""So many times the latency among few calls is too long among many; medians of 16 of a log-normal differ by less."""
UNHURRIED_S = 0.1
"""Seconds up to which nobody minds; where servers are that fast, our own work is what calls wait for."""
WINDOW = 16
"""Calls, at least, over which a median is taken."""
LONGEST_PATIENCE = 16
"""Times as many calls as are allowed at once have to go well before one more is, after refusals again and again."""


@dataclass(slots=True)
class Overload:
    """What is known of a server, by calls that ended; pure, one for each limit.

    most      calls at once that are allowed at all
    limit     of those, how many the server bears now
    lowest    the least that `limit` has been
    refusals  calls that were refused
    """

    most: int
    limit: int = 0
    lowest: int = 0
    refusals: int = 0
    has_slowed: bool = False
    _patience: int = 1
    _good: int = 0
    _cuts: int = 0
    """How often the limit was lowered: who began before that says nothing new."""
    _few: deque[float] = field(default_factory=lambda: deque(maxlen=4 * WINDOW))
    _many: list[float] = field(default_factory=list)
    _slow_windows: int = 0

    def __post_init__(self) -> None:
        self.limit = self.lowest = self.most

    @property
    def era(self) -> int:
        """Changes whenever the limit is lowered."""
        return self._cuts

    def refused(self, still_running: int, era: int) -> None:
        """One call was refused while so many others ran on, which is what fits."""
        self.refusals += 1
        if era == self._cuts:
            self._patience = min(2 * self._patience, LONGEST_PATIENCE)
        self._lower(min(self.limit, still_running))

    def ended(self, seconds: float, others: int) -> None:
        """One call went well; it was begun while so many others were in flight."""
        self._good += 1
        if self._good >= self._patience * self.limit and self.limit < self.most:
            self.limit = min(self.most, self.limit + max(1, self.limit // 4))
            self._good = 0
            self._patience = max(1, self._patience // 2) if self.limit == self.most else self._patience
        if 2 * others < self.most:
            self._few.append(seconds)
            return
        self._many.append(seconds)
        if len(self._many) >= max(WINDOW, self.limit):
            self._compare()

    def _compare(self) -> None:
        few = statistics.median(self._few) if len(self._few) >= WINDOW // 2 else float("inf")
        is_slow = statistics.median(self._many) > max(GROWTH * few, UNHURRIED_S)
        self._many.clear()
        self._slow_windows = self._slow_windows + 1 if is_slow else 0
        if self._slow_windows >= 2:  # once may be chance
            self.has_slowed = True
            self._patience = min(2 * self._patience, LONGEST_PATIENCE)
            self._lower(self.limit // 2)
            self._slow_windows = 0

    def _lower(self, limit: int) -> None:
        self.limit = max(1, limit)
        self.lowest = min(self.lowest, self.limit)
        self._good = 0
        self._cuts += 1


class Permit:
    """Leave to make one call. Who sends it says when it is refused, and waits for another before sending again."""

    def __init__(self, limit: CallLimit) -> None:
        self._limit = limit
        self.timeout: asyncio.Timeout | None = None
        """Where set, waiting for another turn does not count for it."""
        self.is_running = False
        self._is_sent = False
        self._begin()

    def sent(self) -> None:
        """It goes over the network now. What never does tells nothing of a server, nor what was waited for before."""
        self._is_sent = True
        self._began = asyncio.get_running_loop().time()

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
            if self._is_sent:
                self._limit.overload.ended(asyncio.get_running_loop().time() - self._began, self._others)
            self._limit.wake()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._others = self._limit.running
        self._limit.running += 1
        loop.call_soon(self._count_others)
        self._era = self._limit.overload.era
        self._began = loop.time()
        self.is_running = True

    def _count_others(self) -> None:
        """Those too that began right after it: where many end at once, as many begin, and none of them among few."""
        if self.is_running:
            self._others = max(self._others, self._limit.running - 1)

    def _end(self) -> None:
        self.is_running = False
        self._limit.running -= 1


_permit: ContextVar[Permit | None] = ContextVar("rageval_permit", default=None)


def current_permit() -> Permit | None:
    """The permission under which this task sends its call, if it needs one."""
    return _permit.get()


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
    has_slowed: bool = False

    def __add__(self, other: BackOff) -> BackOff:
        """Of two processes that ask the same system, each within its own limit."""
        return BackOff(
            self.most + other.most,
            self.limit + other.limit,
            self.lowest + other.lowest,
            self.refusals + other.refusals,
            self.has_slowed or other.has_slowed,
        )

    @property
    def note(self) -> str | None:
        """What a person should know of it; None where all went as it was allowed to."""
        reasons = [f"refused {counted(self.refusals, 'call')} (429 or 503)"] if self.refusals else []
        reasons += ["answered several times slower the more it was asked at once"] if self.has_slowed else []
        if self.lowest == self.most:
            return None
        return (
            f"the system {' and '.join(reasons)}: down to {self.lowest} of {self.most} questions were in flight; "
            f"--rageval-concurrency {self.limit} asks no more than it bears"
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
        return BackOff(overload.most, overload.limit, overload.lowest, overload.refusals, overload.has_slowed)
