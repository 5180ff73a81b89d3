"""Limits of requests to a provider, at once and per minute: one pace a host, for all that the process asks there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from pytest_rageval.http.call_limit import CallLimit

BURST_SECONDS = 5.0
"""So many seconds' worth of tokens may be taken at once; requests are spaced evenly."""
KEPT_SECONDS = 15.0
"""So many seconds' worth of tokens that were estimated too high are kept for later; a long pause saves no more up."""


class Limits(NamedTuple):
    """At most so many requests at the same time, and requests and tokens a minute (None: no limit).

    `is_adaptive`: fewer at the same time while the server refuses some.
    """

    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    is_adaptive: bool = True


def estimated_tokens(text: str, most_out: int) -> int:
    """Tokens that a request may cost, before it is sent: UTF-8 bytes / 4, and the longest reply allowed.

    Bytes, since a Korean or Chinese character is about a token, an English one a quarter.
    """
    return len(text.encode("utf-8", "surrogatepass")) // 4 + most_out


class RequestSlot:
    """One request's permission. Say what it really cost, and what was taken too much goes to the next one."""

    def __init__(self, pace: Pace, tokens: int) -> None:
        self._pace = pace
        self.tokens = tokens

    def settle(self, tokens: int) -> None:
        """The tokens of the reply's usage, in place of the estimate."""
        self._pace.give_back(self.tokens - tokens)
        self.tokens = tokens

    async def again(self) -> None:
        """Permission to send the request once more; its tokens are counted again."""
        await self._pace.take(self.tokens)


class Pace:
    """Limits in force; belongs to one event loop. Who comes first is served first."""

    def __init__(self, limits: Limits) -> None:
        from aiolimiter import AsyncLimiter  # here, because most runs ask no model

        requests, tokens = limits.requests_per_minute, limits.tokens_per_minute
        self._free = CallLimit(limits.concurrency, is_adaptive=limits.is_adaptive)
        # Spaced, not in bursts: a bucket of a minute's worth lets twice as many through in its first minute.
        self._requests = AsyncLimiter(1, 60 / requests) if requests else None
        self._tokens = AsyncLimiter(tokens * BURST_SECONDS / 60, BURST_SECONDS) if tokens else None
        self._queue = asyncio.Lock()
        self._over = 0.0
        """Tokens that were taken and not used; below 0 those used and not taken."""

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[RequestSlot]:
        """Wait for permission to send one request of about so many tokens."""
        async with self._free.permit():
            await self.take(tokens)
            yield RequestSlot(self, tokens)

    async def take(self, tokens: int) -> None:
        """Wait until one request of so many tokens may go."""
        if self._requests is None and self._tokens is None:
            return
        async with self._queue:
            if self._tokens is not None:
                needed = tokens - self._over
                self._over = max(0.0, -needed)
                # A request may be larger than the bucket: it is filled more than once.
                while needed > 0:
                    portion = min(needed, self._tokens.max_rate)
                    await self._tokens.acquire(portion)
                    needed -= portion
            if self._requests is not None:
                await self._requests.acquire()

    def give_back(self, tokens: float) -> None:
        """Tokens that were taken too much, or, below 0, too few."""
        if self._tokens is not None:
            self._over = min(self._over + tokens, self._tokens.max_rate * KEPT_SECONDS / BURST_SECONDS)


_paces: dict[asyncio.AbstractEventLoop, dict[tuple[str, Limits], Pace]] = {}


def pace_of(host: str, limits: Limits) -> Pace:
    """The pace of a host in the running event loop; all with the same limits share it."""
    loop = asyncio.get_running_loop()
    if loop not in _paces:
        for closed in [other for other in _paces if other.is_closed()]:
            del _paces[closed]
    paces = _paces.setdefault(loop, {})
    return paces.setdefault((host, limits), Pace(limits))
