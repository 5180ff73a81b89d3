"""The limit on calls to one server: how many at once, how many a minute, and what it refuses.

There is one limit a server and event loop, for targets and judges alike. A call takes a turn for each of its requests
and holds nothing between two of them. A refused call goes to the back of the queue and is asked again until no call has
succeeded for `patience` seconds.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

from pytest_rageval.http.call_tally import current_clock
from pytest_rageval.http.learned_pace import LearnedPace, TokenBucket
from pytest_rageval.http.served_rate import ServedRate
from pytest_rageval.http.shared_pause import SharedPause, shared_pause

PATIENCE_S = 300.0
"""Default of the setting `rate_limit_patience`."""
JITTER_S = 0.02
"""Seconds by which a Retry-After is exceeded at most: workers that wait for the same moment should not meet."""
CLOCK_STEP_S = 0.002
"""Seconds by which a Retry-After is exceeded at least: clocks differ in their steps."""


SYSTEM, JUDGE = "system", "judge"
"""The roles of those who share the limit of a server."""


class Limits(NamedTuple):
    """Limits on calls to one server.

    concurrency  requests at the same time
    requests_per_minute, tokens_per_minute  None: no limit
    is_adaptive  the pace falls while the server refuses calls
    patience     seconds without any success after which refused calls fail
    """

    concurrency: int = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    is_adaptive: bool = True
    patience: float = PATIENCE_S


USUAL_LIMITS = Limits()
IMPATIENT = Limits(patience=0.0)
"""For a single question: a refused call fails at once."""


@dataclass(slots=True)
class LimitedCall:
    """One call at a limit, with its refusals so far and the time of its latest request."""

    tokens: int = 0
    refusals: int = 0
    sent_at: float = 0.0


class OutOfPatience(Exception):
    """A call that will not be asked again, or not at all; the message, if any, is the end of a sentence."""


class CallPlaces:
    """The calls of a run that may be in flight at once, those of asking and of judging together."""

    def __init__(self, most: int) -> None:
        self._free = asyncio.Semaphore(most)
        self.in_flight = 0

    async def take(self) -> bool:
        """Take a place; return True if that took a while."""
        had_to_wait = self._free.locked()
        await self._free.acquire()
        self.in_flight += 1
        return had_to_wait

    def give_back(self) -> None:
        """Free a place."""
        self.in_flight -= 1
        self._free.release()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place for code that sends requests of its own; those need no further one."""
        await self.take()
        try:
            with in_places(None):
                yield
        finally:
            self.give_back()


_places: ContextVar[CallPlaces | None] = ContextVar("rageval_places", default=None)


@contextmanager
def in_places(places: CallPlaces | None) -> Iterator[None]:
    """Let each request that is sent inside the block take one of these places; None: it takes none."""
    token = _places.set(places)
    try:
        yield
    finally:
        _places.reset(token)


class CallLimit:
    """The limit on calls to one server; belongs to one event loop.

    Turns are given in the order in which they were asked for. Only the call at the front watches places, pace and
    Retry-After. So nothing is reserved while a call waits, and calls that waited together leave one by one.
    """

    def __init__(self, limits: Limits, shared: SharedPause | None = None) -> None:
        """Make the limit; `shared` tells of a Retry-After that another process was given."""
        self.limits = limits
        self._shared = shared
        self.running = 0
        self.refusals = 0
        self.lowest = limits.concurrency
        """The smallest number in flight at which a call had to wait for the pace."""
        self.served = ServedRate()
        self._pace = LearnedPace()
        self._tokens: TokenBucket | None = None
        # asyncio's lock is fair, so it is the queue.
        self._front = asyncio.Lock()
        self._changed: asyncio.Future[None] | None = None
        self._sent_at = -math.inf
        self._paused_until = -math.inf
        self._refused_since: float | None = None
        """The first refusal since the last success."""

    @asynccontextmanager
    async def turn(self, call: LimitedCall) -> AsyncIterator[None]:
        """Wait for permission to send one request of the call; raise OutOfPatience if it is not to be sent."""
        places = await self._wait_for_turn(call)
        try:
            yield
        finally:
            # All is given back before a refused call waits again. When it kept its place among the judge's slots, a
            # judge of five requests a second hung each run.
            self.running -= 1
            if places is not None:
                places.give_back()
            self._wake()

    def note_refusal(self, call: LimitedCall, retry_after: float | None) -> None:
        """Note, within its turn, that the server refused the call as one too many."""
        now = asyncio.get_running_loop().time()
        call.refusals += 1
        self.refusals += 1
        # The first one: patience counts from when the server stopped taking calls.
        if self._refused_since is None:
            self._refused_since = now
        self.served.note_refusal(now)
        pause = retry_after or 0.0
        if self.limits.is_adaptive:
            self._pace.note_refusal(call.sent_at, now, pause)
        if pause > 0:
            jitter = random.uniform(CLOCK_STEP_S, JITTER_S)  # noqa: S311 - jitter is no secret
            self._paused_until = max(self._paused_until, now + pause + jitter)
            if self._shared is not None:
                self._shared.extend(pause + jitter)
        clock = current_clock()
        if clock is not None:
            # A refusal is the server's "not now": its time is no part of the answer's.
            clock.give_back(now - call.sent_at)

    def note_success(self) -> None:
        """Note that a call succeeded."""
        # Only an answered call restores patience: a failure of another kind says nothing of the limit.
        self._refused_since = None
        self._pace.note_success()
        self.served.note_success(asyncio.get_running_loop().time())

    def correct(self, tokens: int) -> None:
        """Return tokens that were reserved and not used, or charge more if `tokens` is negative."""
        if self._tokens is not None:
            self._tokens.give_back(tokens)
            self._wake()

    def check_patience(self, call: LimitedCall) -> None:
        """Raise OutOfPatience if the call was refused for too long, or would have to wait too long."""
        now = asyncio.get_running_loop().time()
        patience = f"rate_limit_patience ({self.limits.patience:.6g} s)"
        refused_since = now if self._refused_since is None else self._refused_since
        left = max(0.0, refused_since + self.limits.patience - now)
        pause = self._pause_end(now) - now
        if self.limits.patience == 0 and call.refusals:
            raise OutOfPatience
        if pause > left + JITTER_S:
            raise OutOfPatience(f"its Retry-After asks to wait {pause:.6g} s, more than what is left of {patience}")
        if call.refusals and left <= 0:
            raise OutOfPatience(f"no call there succeeded within {patience}")

    # ── the queue ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _wait_for_turn(self, call: LimitedCall) -> CallPlaces | None:
        """Take a place here, and one of the run's if these are limited; return the latter."""
        clock = current_clock()
        if clock is None:
            return await self._admitted(call)
        with clock.stopped():
            return await self._admitted(call)

    async def _admitted(self, call: LimitedCall) -> CallPlaces | None:
        async with self._front:
            places = _places.get()
            if self._tokens is None and self.limits.tokens_per_minute is not None:
                self._tokens = TokenBucket(self.limits.tokens_per_minute, asyncio.get_running_loop().time())
            if self._tokens is not None:
                self._tokens.settle(asyncio.get_running_loop().time())
            await self._until_open(call)
            # A place of the run comes last: held while the server's limit says wait, it would be missing elsewhere.
            while places is not None and await places.take() and self._opens_at(call) is not None:
                places.give_back()
                await self._until_open(call)
            self._let_go(call)
            return places

    async def _until_open(self, call: LimitedCall) -> None:
        """Wait at the front of the queue until a request may be sent; raise OutOfPatience."""
        loop = asyncio.get_running_loop()
        while True:
            self.check_patience(call)
            opens_at = self._opens_at(call)
            if opens_at is None:
                return
            self._changed = loop.create_future()
            if call.refusals and self._refused_since is not None:
                # Wake when patience ends, even if the pace would let the call wait longer.
                opens_at = min(opens_at, self._refused_since + self.limits.patience)
            timer = None if opens_at == math.inf else loop.call_at(opens_at, self._wake)
            try:
                await self._changed
            finally:
                self._changed = None
                if timer is not None:
                    timer.cancel()

    def _opens_at(self, call: LimitedCall) -> float | None:
        """Return when the call may be sent, infinity if others must end first; None: now."""
        now = asyncio.get_running_loop().time()
        if self.running >= self.limits.concurrency:
            return math.inf
        opens_at = max(self._pause_end(now), self._sent_at + self._interval(now))
        if self._tokens is not None:
            opens_at = max(opens_at, self._tokens.ready_at(call.tokens))
        return None if opens_at <= now else opens_at

    def _pause_end(self, now: float) -> float:
        """Return when the last Retry-After is over, in the loop's time."""
        if self._shared is None:
            return self._paused_until
        return max(self._paused_until, now + self._shared.seconds_left())

    def _interval(self, now: float) -> float:
        """Return the seconds between two requests."""
        per_minute = self.limits.requests_per_minute
        # Evenly spaced: a bucket for a whole minute would let twice as many through in its first minute.
        configured = 0.0 if per_minute is None else 60 / per_minute
        is_hopeless = self._refused_since is not None and now >= self._refused_since + self.limits.patience
        # Once patience is exhausted each call is tried once, and fails if it is refused.
        learned = 0.0 if is_hopeless else 1 / self._pace.at(now)
        return max(configured, learned)

    def _let_go(self, call: LimitedCall) -> None:
        now = asyncio.get_running_loop().time()
        call.sent_at = now
        self._sent_at = now
        self._pace.note_sent(now)
        if self._tokens is not None:
            self._tokens.take(call.tokens, now)
        self.running += 1
        if self._pace.is_limited:
            self.lowest = min(self.lowest, self.running)

    def _wake(self) -> None:
        """Let the call at the front look again."""
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)


# ── one limit for all who ask the same server ─────────────────────────────────────────────────────────────────

_Key = tuple[str, Hashable, Limits, bool]
_limits: dict[asyncio.AbstractEventLoop, dict[_Key, CallLimit]] = {}


def shared_limit(role: str, limits: Limits) -> Callable[[Hashable], CallLimit]:
    """Return a function for the limit of a server in the running event loop.

    It is shared by all calls of one role, the system or the judge, with the same limits. Calls that hold a place of
    the run already do not share it with those that still wait for one: each could wait for the other.
    """

    def limit_of(server: Hashable) -> CallLimit:
        loop = asyncio.get_running_loop()
        if loop not in _limits:
            # Each run has a loop of its own: those of earlier runs in this process are forgotten here.
            for closed in [other for other in _limits if other.is_closed()]:
                del _limits[closed]
        of_loop = _limits.setdefault(loop, {})
        key = (role, server, limits, _places.get() is None)
        limit = of_loop.get(key)
        if limit is None:
            limit = CallLimit(limits, shared_pause(f"{role} {server}"))
            of_loop[key] = limit
        return limit

    return limit_of


def limits_in(loop: asyncio.AbstractEventLoop, role: str) -> list[CallLimit]:
    """Return the limits of one role in an event loop, from any thread."""
    return [limit for key, limit in list(_limits.get(loop, {}).items()) if key[0] == role]
