"""Failed requests: their kinds, and what is said of each in one line."""

from __future__ import annotations

import ast
import os
import re
import ssl

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


class CarrierFailure(Exception):
    """No reply, or a part of one. The message says what happened, in the system's words where it has some.

    kind       connect, reset, too_large or invalid_response
    was_stale  a kept connection turned out to be closed: nothing was wrong with the request
    """

    def __init__(self, kind: str, reason: str, *, was_stale: bool = False) -> None:
        super().__init__(reason)
        self.kind = kind
        self.was_stale = was_stale


NO_CONNECTION = f"no connection within {CONNECT_TIMEOUT:g} s"
NO_REPLY = "the server closed the connection without a reply"
BROKEN_OFF = "the server closed the connection before the reply was complete"
BAD_HTTP = "the reply is no valid HTTP after its first line"


def not_http(problem: str) -> str:
    """What came in place of a status line, from the words of a parser that quotes it as bytes."""
    quoted = re.search(r"""b('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", problem)
    line = ast.literal_eval(quoted[0]).decode("latin-1") if quoted else ""
    return f"the reply is not HTTP: {excerpt(line)}" if line.strip() else "the reply is not HTTP"


def os_words_in(error: BaseException) -> str | None:
    """The operating system's words in an error or what it came from; None where it said nothing."""
    deepest: BaseException | None = error
    while deepest is not None:
        while isinstance(deepest, BaseExceptionGroup):
            deepest = deepest.exceptions[0]
        if isinstance(deepest, OSError) and deepest.strerror:
            return os_words(deepest)
        # asyncio joins what the addresses of one host came to into one message.
        if isinstance(deepest, OSError) and (number := re.search(r"\[Errno (\d+)\]", str(deepest))):
            return os.strerror(int(number[1]))
        deepest = deepest.__cause__ or deepest.__context__
    return None


def os_words(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS certificate not accepted: {excerpt(error.verify_message)}"
    if error.errno and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)  # asyncio has texts of its own there
    return excerpt(error.strerror or str(error)) or type(error).__name__
