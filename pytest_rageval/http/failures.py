"""Failed requests: their kinds, their one-line messages, and retries."""

from __future__ import annotations

import asyncio
import os
import random
import re
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from typing import TypeVar

from pytest_rageval.text import excerpt


class HttpFailure(Exception):
    """A request without a usable reply. The message is one line without credentials.

    kind         connect, timeout, reset, http_4xx, http_5xx, rate_limited, too_large or invalid_response
    status       status of the reply, or None without one
    retry_after  seconds that the server wants the client to wait
    body         beginning of the reply's body
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        status: int | None = None,
        is_retryable: bool = False,
        retry_after: float | None = None,
        body: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.is_retryable = is_retryable
        self.retry_after = retry_after
        self.body = body


def kind_of_status(status: int) -> str:
    """Return the kind of failure that a status of 400 or above means."""
    return "rate_limited" if status == 429 else "http_4xx" if status < 500 else "http_5xx"


def os_words_in(error: BaseException) -> str:
    """Return the operating system's message in an error or its causes; without one, the error's own."""
    deepest: BaseException | None = error
    while deepest is not None:
        while isinstance(deepest, BaseExceptionGroup):
            deepest = deepest.exceptions[0]
        if isinstance(deepest, OSError) and deepest.strerror:
            return os_words(deepest)
        # asyncio joins the errors of a host's addresses into one message.
        if isinstance(deepest, OSError) and (number := re.search(r"\[Errno (\d+)\]", str(deepest))):
            return os.strerror(int(number[1]))
        deepest = deepest.__cause__ or deepest.__context__
    return excerpt(str(error)) or type(error).__name__


def os_words(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS certificate not accepted: {excerpt(error.verify_message)}"
    if error.errno and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)  # asyncio has texts of its own there
    return excerpt(error.strerror or str(error)) or type(error).__name__


T = TypeVar("T")

RETRIED_STATUS = frozenset({429, 502, 503, 504})
REPEATABLE_STATUS = RETRIED_STATUS | {408, 409, 425, 500, 529}
"""Retried if processing a request twice is harmless; 529 is Anthropic's status for overloaded."""
OVERLOADED_STATUS = frozenset({429, 503, 529})
"""Too many requests at once."""
_LONGEST_BACKOFF = 5.0


async def with_retries(
    attempt: Callable[[], Awaitable[T]],
    *,
    retries: int,
    backoff: float,
    seconds_left: Callable[[], float],
    before_retry: Callable[[], Awaitable[None]] | None = None,
) -> T:
    """Call `attempt`, and retry a failure at most `retries` times; raise the last failure with the number of tries.

    `backoff` is the wait in seconds before the first retry. It doubles each time, with as much again of jitter; a
    Retry-After replaces it. No retry begins once `seconds_left` is used up.
    """
    for tried in count(1):
        try:
            return await attempt()
        except HttpFailure as failure:
            if not failure.is_retryable or tried > retries or seconds_left() <= 0:
                if tried > 1:
                    failure.args = (f"{failure} (tried {tried} times)",)
                raise
            wait, jitter = failure.retry_after, random.uniform(0, backoff)  # noqa: S311 - jitter is no secret
        await asyncio.sleep(
            min(backoff * 2 ** (tried - 1) + jitter, _LONGEST_BACKOFF) if wait is None else wait + jitter
        )
        if before_retry is not None:
            await before_retry()
    raise AssertionError("unreachable: the last attempt returns or raises")


def longest_wait(retry_after: str) -> float | None:
    """Return the longest wait of a Retry-After header in seconds from now, or None if none is valid."""
    waits = map(seconds_of, _ALTERNATIVES.split(retry_after))
    return max((wait for wait in waits if wait is not None), default=None)


# Several headers are joined into one; the comma inside a date follows letters.
_ALTERNATIVES = re.compile(r"(?<=[0-9T]),\s*")


def seconds_of(retry_after: str) -> float | None:
    """Return a Retry-After header in seconds from now (0 for a past date), or None if it is invalid."""
    text = retry_after.strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]*)?", text):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
