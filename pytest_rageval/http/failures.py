"""Failed requests: their kinds, their one-line messages, and what a server says of the time to wait."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pytest_rageval.text import excerpt


class HttpFailure(Exception):
    """A request without a usable reply. The message is one line without credentials.

    kind         connect, timeout, reset, http_4xx, http_5xx, rate_limited, too_large or invalid_response
    status       status of the reply, or None without one
    is_retryable  another attempt may help
    is_refusal   the server takes no more requests for now
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
        is_refusal: bool = False,
        retry_after: float | None = None,
        body: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.is_retryable = is_retryable
        self.is_refusal = is_refusal
        self.retry_after = retry_after
        self.body = body


def kind_of_status(status: int) -> str:
    """Return the kind of failure that a status of 400 or above means."""
    if status == 429:
        return "rate_limited"
    return "http_4xx" if status < 500 else "http_5xx"


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


RETRIED_STATUS = frozenset({429, 502, 503, 504})
REPEATABLE_STATUS = RETRIED_STATUS | {408, 409, 425, 500, 529}
"""Retried if processing a request twice is harmless; 529 is Anthropic's status for overloaded."""
# Ollama answers 503 for a full queue: "server busy, please try again. maximum pending requests exceeded".
_OVERLOAD = re.compile(
    r"overload|server (is )?busy|pending requests|too many requests|rate.?limit|slow.?down|throttl|at capacity",
    re.IGNORECASE,
)


def is_refusal(status: int | None, retry_after: float | None, body: str) -> bool:
    """Return True if a status means that the server takes no more requests for now, not that one of them failed.

    So do 429, Anthropic's 529, and a 503 that names a time to wait or speaks of overload. Any other 503 may come from a
    proxy whose server is gone.
    """
    if status == 503:
        return retry_after is not None or _OVERLOAD.search(body) is not None
    return status in (429, 529)


def longest_wait(retry_after: str) -> float | None:
    """Return the longest wait of a Retry-After header in seconds from now, or None if none is valid."""
    waits = [seconds_of(written) for written in _ALTERNATIVES.split(retry_after)]
    return max((wait for wait in waits if wait is not None), default=None)


# Several headers are joined into one; the comma inside a date follows letters.
_ALTERNATIVES = re.compile(r"(?<=[0-9T]),\s*")


def seconds_of(retry_after: str) -> float | None:
    """Return a Retry-After header in seconds from now (0 for a past date), or None if it is invalid."""
    text = retry_after.strip()
    # Not `float` alone, which reads "nan", "inf" and "-1" too.
    if re.fullmatch(r"[0-9]+(\.[0-9]*)?", text):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:
        # The parser returns no zone for "-0000"; the standard knows GMT alone.
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def status_of(error: BaseException) -> int | None:
    """Return the status of a client library's exception, as those of httpx, requests and model providers have it."""
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def retry_after_of(error: BaseException) -> float | None:
    """Return the seconds to wait that the reply behind a client library's exception names."""
    return retry_after_in(getattr(getattr(error, "response", None), "headers", None))


def retry_after_in(headers: object) -> float | None:
    """Return the seconds to wait that the headers of another library's response name, or None."""
    written = headers.get("retry-after") if isinstance(headers, Mapping) else None
    return longest_wait(written) if isinstance(written, str) else None
