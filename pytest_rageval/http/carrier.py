"""Requests carried over the network by httpcore, or into an application of this process by httpx."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import Any

import httpcore
import httpx

from pytest_rageval.http.connecting import tls_context
from pytest_rageval.http.failures import (
    BAD_HTTP,
    BROKEN_OFF,
    CONNECT_TIMEOUT,
    NO_CONNECTION,
    NO_REPLY,
    CarrierFailure,
    not_http,
    os_words_in,
)
from pytest_rageval.http.replies import MANY_HEADERS, headers_of
from pytest_rageval.http.reply_stream import ReplyStreams
from pytest_rageval.text import excerpt

HEADERS = {
    "accept": "application/json",
    "accept-encoding": "gzip",
    "connection": "keep-alive",
    "user-agent": "pytest-rageval",
}
"""Sent with every request."""
KEPT_IDLE = 4.0
"""Seconds for which a connection is kept for the next request; many servers close after 5."""
# Other times are limited for an attempt as a whole, by who sends it.
_TIMEOUT = {"connect": CONNECT_TIMEOUT}
_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)


class Carrier:
    """Carries requests from one event loop, as many at a time as are asked of it.

    A connection that is free is kept for the next request.
    """

    def __init__(self, *, app: Any = None, proxy: str | None = None) -> None:
        """`app`: an ASGI application of this process to ask in place of the network."""
        self._app = None if app is None else httpx.ASGITransport(app=app)
        self._proxy = None if proxy is None else _proxy(proxy)
        # The last used comes first, so that few connections are kept warm when little is in flight.
        self._idle: list[_Line] = []

    async def send(
        self, method: str, url: httpx.URL, headers: Mapping[str, str], body: bytes | None, *, is_again: bool = False
    ) -> Reply:
        """Send one request and wait for the head of its reply; raises CarrierFailure.

        Names of headers are in lower case. `is_again`: on a new connection, since a kept one was closed.
        """
        request = httpx.Request(method, url, headers={**HEADERS, **headers}, content=body)
        if self._app is not None:
            response = await self._app.handle_async_request(request)
            assert isinstance(response.stream, AsyncIterable)
            return Reply(response.status_code, response.headers.raw, response.stream)
        line = self._idle.pop() if self._idle and not is_again else _Line(self._proxy, self._idle)
        return await line.send(request, body)

    async def aclose(self) -> None:
        """Close the connections that are idle."""
        while self._idle:
            await self._idle.pop().aclose()


class Reply:
    """The beginning of a reply; `fields` are its headers as they came."""

    def __init__(
        self, status: int, fields: Sequence[tuple[bytes, bytes]], stream: Any, line: _Line | None = None
    ) -> None:
        self.status, self.fields, self._stream, self._line = status, fields, stream, line

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes, still packed; raises CarrierFailure where it breaks off."""
        try:
            async for piece in self._stream:
                yield piece
        except _ERRORS as error:
            raise _failure(error) from None

    async def aclose(self) -> None:
        """Give the connection back, or end it where the body was not read to its end."""
        try:
            await self._stream.aclose()
        finally:
            if self._line is not None:
                await self._line.end_reply(self.fields)


class _Line:
    """One connection at a time, with what makes the next one.

    A pool for each request under way: a shared one scans all of its connections at each request (9,600 µs of CPU a
    request at 64 in flight, 700 µs this way).
    """

    def __init__(self, proxy: httpcore.Proxy | None, idle: list[_Line]) -> None:
        """`idle`: where it goes when it is free."""
        self._idle = idle
        self._streams = ReplyStreams()
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls_context(),
            proxy=proxy,
            max_connections=1,
            keepalive_expiry=KEPT_IDLE,
            network_backend=self._streams,
        )

    async def send(self, request: httpx.Request, body: bytes | None) -> Reply:
        kept = self._streams.newest
        try:
            response = await self._pool.handle_async_request(_on_the_wire(request, body))
        except BaseException as error:
            # Also of a request that is cancelled, what makes connections is for the next one.
            self._idle.append(self)
            if not isinstance(error, _ERRORS):
                raise
            stream = self._streams.newest
            raise _failure(error, was_stale=stream is not None and stream is kept and stream.is_untouched) from None
        stream = self._streams.newest
        assert stream is not None, "a reply comes over a connection"
        stream.expect(response.status, request.method, headers_of(response.headers))
        return Reply(response.status, response.headers, response.stream, self)

    async def end_reply(self, fields: Sequence[tuple[bytes, bytes]]) -> None:
        """Be free for another request; where the end of the reply could be disputed, on a new connection."""
        if {"transfer-encoding", "content-length"} <= headers_of(fields).keys():
            await self._pool.aclose()
        else:
            self._idle.append(self)

    async def aclose(self) -> None:
        await self._pool.aclose()


def _on_the_wire(request: httpx.Request, body: bytes | None) -> httpcore.Request:
    url = request.url
    return httpcore.Request(
        request.method,
        httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=body,
        extensions={"timeout": _TIMEOUT},
    )


def _proxy(url: str) -> httpcore.Proxy:
    proxy = httpx.Proxy(url)
    return httpcore.Proxy(
        httpcore.URL(scheme=proxy.url.raw_scheme, host=proxy.url.raw_host, port=proxy.url.port, target=b"/"),
        auth=proxy.raw_auth,
        ssl_context=tls_context() if proxy.url.scheme == "https" else None,
    )


def _failure(error: Exception, *, was_stale: bool = False) -> CarrierFailure:
    if isinstance(error, httpcore.ConnectTimeout):
        return CarrierFailure("connect", NO_CONNECTION)
    if isinstance(error, httpcore.ConnectError | httpcore.ProxyError | httpcore.UnsupportedProtocol):
        return CarrierFailure("connect", _reason(error))
    text = str(error)
    if isinstance(error, httpcore.ProtocolError):
        if "Receive buffer too long" in text:  # the parser keeps 100 kB
            return CarrierFailure("too_large", MANY_HEADERS)
        if not re.search("disconnected|closed", text):
            return CarrierFailure("invalid_response", not_http(text) if "status line" in text else BAD_HTTP)
        return CarrierFailure(
            "reset", NO_REPLY if "without sending a response" in text else BROKEN_OFF, was_stale=was_stale
        )
    return CarrierFailure("reset", _reason(error), was_stale=was_stale)


def _reason(error: Exception) -> str:
    return os_words_in(error) or excerpt(str(error)) or type(error).__name__
