"""Failed requests: their kinds, and what is said of each in one line."""

from __future__ import annotations

import os
import re
import ssl

import httpx

from pytest_rageval.text import excerpt

CONNECT_TIMEOUT = 10.0
"""Seconds for one connection to come about."""


class HttpFailure(Exception):
    """A request got no usable reply. The message is one line without credentials.

    `kind` is one of connect, timeout, reset, http_4xx, http_5xx, rate_limited, too_large, invalid_response; `status`
    is None where none came; `retry_after` is what the server asks for, in seconds; `body` is the beginning of what came
    with the status.
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


_LARGE_HEADERS = "Receive buffer too long"
"""What the parser says where headers are larger than it keeps, 100 kB."""


def kind_of(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        return "connect"
    if isinstance(error, httpx.TimeoutException):
        return "timeout"
    if isinstance(error, httpx.RemoteProtocolError) and _LARGE_HEADERS in str(error):
        return "too_large"
    if isinstance(error, httpx.RemoteProtocolError) and not re.search("disconnected|closed", str(error)):
        return "invalid_response"
    return "reset"


def reason_of(error: httpx.TransportError) -> str:
    """What happened, in the words of the operating system where it has some."""
    if _LARGE_HEADERS in str(error):
        return "the headers of the reply are too large"
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {CONNECT_TIMEOUT:g} s"
    deepest: BaseException | None = error
    while deepest is not None:
        while isinstance(deepest, BaseExceptionGroup):
            deepest = deepest.exceptions[0]
        if isinstance(deepest, OSError) and deepest.strerror:
            return os_words(deepest)
        deepest = deepest.__cause__ or deepest.__context__
    return excerpt(str(error)) or type(error).__name__


def os_words(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS certificate not accepted: {excerpt(error.verify_message)}"
    if error.errno and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)  # asyncio has texts of its own there
    return excerpt(error.strerror or str(error)) or type(error).__name__
