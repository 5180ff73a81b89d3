"""The attempts of one call: refused ones go back to the queue, failed ones are retried."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import NamedTuple, TypeVar

from pytest_rageval.http.call_limit import CallLimit, LimitedCall, OutOfPatience
from pytest_rageval.http.call_tally import add_to_tally, current_clock
from pytest_rageval.http.failures import HttpFailure

T = TypeVar("T")
LONGEST_BACKOFF_S = 5.0
"""Seconds between two attempts at most: retries are for passing faults."""
Attempt = Callable[[float], Awaitable[T]]
"""Sends the request once, within these seconds."""


class RetryRule(NamedTuple):
    """When a failed attempt is repeated.

    retries  further attempts after a failure
    backoff  seconds before the first retry, doubled for each further one, with as much again of jitter
    timeout  seconds for one attempt; all of them with the waits between them take `timeout` × (`retries` + 1)
    """

    retries: int = 2
    backoff: float = 0.5
    timeout: float = 120.0

    @property
    def seconds(self) -> float:
        """Return the seconds of all attempts together."""
        return self.timeout * (self.retries + 1)


class AttemptCount:
    """The attempts of one call, and when they were made."""

    def __init__(self, *, is_http: bool = True) -> None:
        """Begin to wait; attempts that are no HTTP requests are not reported as such."""
        self.sent = 0
        self._is_http = is_http
        self._began = asyncio.get_running_loop().time()
        self._first = self._began
        self._latest = self._began

    def add(self) -> None:
        """Count an attempt that begins."""
        self._latest = asyncio.get_running_loop().time()
        if self.sent == 0:
            self._first = self._latest
        self.sent += 1

    def report(self) -> None:
        """Add this call to the active tally."""
        requests = self.sent if self._is_http else 0
        queued_ms = 1000 * (self._first - self._began)
        retry_wait_ms = 1000 * (self._latest - self._first)
        add_to_tally(requests, queued_ms, retry_wait_ms)


async def make_attempts(
    attempt: Attempt[T],
    limit: CallLimit,
    rule: RetryRule,
    name: str,
    *,
    tokens: int = 0,
    before_send: Callable[[], None] | None = None,
    count: AttemptCount | None = None,
) -> T:
    """Make a call in turns of its limit; raise the HttpFailure of its last attempt.

    A refused attempt is repeated in a later turn, and counts neither as an attempt nor by its time. Any other failure
    is repeated as the rule says. Nothing is held between two attempts.

    before_send  called in each turn before its request; what it raises ends the call
    """
    now = asyncio.get_running_loop().time
    count = count or AttemptCount()
    call = LimitedCall(tokens)
    refusal: HttpFailure | None = None
    spent = 0.0
    tried = 0
    try:
        while True:
            try:
                return await _in_turn(attempt, limit, call, rule.seconds - spent, before_send, count)
            except OutOfPatience as reason:
                raise _given_up(refusal, name, reason) from None
            except HttpFailure as failure:
                if failure.is_refusal:
                    # No attempt is spent: with three attempts, a system of five requests a second lost a quarter of
                    # its cases.
                    refusal = failure
                    await _pause_alone(limit, call, failure, rule)
                    continue
                # Another failure says nothing of the limit, so an earlier refusal is not the reason to give up.
                refusal = None
                tried += 1
                # From when it was sent: the wait for its turn is not the request's time.
                spent += now() - call.sent_at
                if not failure.is_retryable or tried > rule.retries or spent >= rule.seconds:
                    if tried > 1:
                        failure.args = (f"{failure} (tried {tried} times)",)
                    raise
                wait = _wait_before_retry(failure, tried, rule)
            await asyncio.sleep(wait)
            spent += wait
    finally:
        # Also of a call that failed: its requests were sent.
        count.report()


async def _in_turn(
    attempt: Attempt[T],
    limit: CallLimit,
    call: LimitedCall,
    seconds: float,
    before_send: Callable[[], None] | None,
    count: AttemptCount,
) -> T:
    """Make one attempt in a turn of the limit, and tell the limit what came of it."""
    async with limit.turn(call):
        if before_send is not None:
            before_send()
        count.add()
        try:
            reply = await attempt(seconds)
        except HttpFailure as failure:
            if failure.is_refusal:
                limit.note_refusal(call, failure.retry_after)
            raise
        limit.note_success()
        return reply


def _given_up(refusal: HttpFailure | None, name: str, reason: OutOfPatience) -> HttpFailure:
    """Build the failure of a call that the server refused for too long, or that could not be sent."""
    if refusal is None:
        return HttpFailure("rate_limited", f"{name}: not sent: {reason}", status=429)
    message = f"{refusal}; {reason}" if str(reason) else str(refusal)
    return HttpFailure("rate_limited", message, status=refusal.status, body=refusal.body)


async def _pause_alone(limit: CallLimit, call: LimitedCall, refusal: HttpFailure, rule: RetryRule) -> None:
    """Wait after a refusal that sets no pace: the limit does not adapt, and the server names no time."""
    if limit.limits.is_adaptive or refusal.retry_after:
        return
    clock = current_clock()
    # The wait is the server's wish: it is no part of the time of an answer.
    with nullcontext() if clock is None else clock.stopped():
        await asyncio.sleep(_backoff(call.refusals, rule.backoff))


def _wait_before_retry(failure: HttpFailure, tried: int, rule: RetryRule) -> float:
    if failure.retry_after is None:
        return _backoff(tried, rule.backoff)
    # Jitter on top: all calls that failed together were told the same time.
    return failure.retry_after + random.uniform(0, rule.backoff)  # noqa: S311 - jitter is no secret


def _backoff(tried: int, first: float) -> float:
    jitter = random.uniform(0, first)  # noqa: S311 - jitter is no secret
    # Bounded, since 2.0 to the power of many refusals overflows.
    doublings = min(tried - 1, 10)
    return min(first * 2.0**doublings + jitter, LONGEST_BACKOFF_S)
