"""Transport of requests and replies: httpcore for the network, httpx for an application in this process."""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import AsyncIterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import httpcore
import httpx

from pytest_rageval.http.address import tls_context
from pytest_rageval.http.failures import os_words_in
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
"""Seconds for which an idle connection is kept for the next request; many servers close after 5."""
# The sender limits the time of an attempt as a whole.
CONNECT_TIMEOUT = 10.0
"""Seconds for opening a connection."""
_TIMEOUT = {"connect": CONNECT_TIMEOUT}
_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)


class CarrierFailure(Exception):
    """A missing or partial reply. The message gives the reason, in the operating system's words if it has any.

    kind       connect, reset, too_large or invalid_response
    was_stale  an idle connection was closed: nothing was wrong with the request
    """

    def __init__(self, kind: str, reason: str, *, was_stale: bool = False) -> None:
        super().__init__(reason)
        self.kind = kind
        self.was_stale = was_stale


class Carrier:
    """A sender of requests for one event loop, without a limit; idle connections are reused."""

    def __init__(self, *, app: Any = None, proxy: str | None = None) -> None:
        """Create a carrier; `app` is an ASGI application in this process to call in place of the network."""
        self._app = None if app is None else httpx.ASGITransport(app=app)
        self._proxy = None if proxy is None else _proxy(proxy)
        # Last in, first out: few connections stay open when few requests are in flight.
        self._idle: list[_Line] = []

    async def send(
        self, method: str, url: httpx.URL, headers: Mapping[str, str], body: bytes | None, *, is_again: bool = False
    ) -> Reply:
        """Send one request and wait for the head of its reply; raise CarrierFailure.

        Header names are in lower case. `is_again` forces a new connection, because an idle one was closed.
        """
        request = httpx.Request(method, url, headers={**HEADERS, **headers}, content=body)
        if self._app is not None:
            response = await self._app.handle_async_request(request)
            assert isinstance(response.stream, AsyncIterable)
            return Reply(response.status_code, response.headers.raw, response.stream)
        line = self._idle.pop() if self._idle and not is_again else _Line(self._proxy, self._idle)
        return await line.send(request, body)

    async def aclose(self) -> None:
        """Close the idle connections."""
        while self._idle:
            await self._idle.pop().aclose()


class Reply:
    """The head of a reply; `fields` are its raw headers."""

    def __init__(
        self, status: int, fields: Sequence[tuple[bytes, bytes]], stream: Any, line: _Line | None = None
    ) -> None:
        self.status, self.fields, self._stream, self._line = status, fields, stream, line

    @property
    def excess(self) -> str | None:
        """Return why the headers are too many to read, or None. Check it before any look-up in the headers."""
        size = sum(len(name) + len(value) + 4 for name, value in self.fields)
        return MANY_HEADERS if len(self.fields) > MOST_HEADER_FIELDS or size > MOST_HEADER_BYTES else None

    @cached_property
    def headers(self) -> dict[str, str]:
        """Return the headers by lower-case name; repeated headers are joined by commas."""
        return headers_of(self.fields)

    def values(self, name: bytes) -> list[str]:
        """Return the value of each header of one name, given in lower case."""
        return [_text(value) for field, value in self.fields if field.lower() == name]

    async def body(self, limit: int) -> tuple[bytes, bool]:
        """Return the body up to the limit, and whether that is all of it.

        Raise CarrierFailure if the connection breaks off, ValueError for a bad encoding. Pieces are inflated
        within the limit: at once, each could grow a thousandfold.
        """
        encoding = self.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise ValueError(f"content-encoding {excerpt(encoding)!r} was not asked for; only gzip is accepted")
        gunzip = _Gunzip() if encoding.endswith("gzip") else None
        body = bytearray()
        try:
            async for raw in self._stream:
                body += gunzip.inflate(raw, limit + 1 - len(body)) if gunzip else raw
                if len(body) > limit:
                    return bytes(body[:limit]), False
        except _ERRORS as error:
            raise _failure(error) from None
        if gunzip and gunzip.is_cut:
            raise ValueError("the gzip body ends before its end")
        return bytes(body), True

    async def aclose(self) -> None:
        """Return the connection for reuse, or close it if the body was not read to its end."""
        try:
            await self._stream.aclose()
        finally:
            if self._line is not None:
                await self._line.end_reply(self.headers)


class _Line:
    """One connection, reopened when needed.

    Each request in flight has its own pool: a shared one scans all of its connections at each request (9,600 µs of
    CPU a request at 64 in flight, 700 µs this way).
    """

    def __init__(self, proxy: httpcore.Proxy | None, idle: list[_Line]) -> None:
        """Create a line; `idle` is the list that it returns to when it is free."""
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
        reused = self._streams.newest
        try:
            response = await self._pool.handle_async_request(_on_the_wire(request, body))
        except BaseException as error:
            # A cancelled request leaves its line to the next one, too.
            self._idle.append(self)
            if not isinstance(error, _ERRORS):
                raise
            stream = self._streams.newest
            raise _failure(error, was_stale=stream is not None and stream is reused and stream.is_untouched) from None
        stream = self._streams.newest
        assert stream is not None, "a reply comes over a connection"
        stream.expect(response.status, request.method, headers_of(response.headers))
        return Reply(response.status, response.headers, response.stream, self)

    async def end_reply(self, headers: Mapping[str, str]) -> None:
        """Become free for another request; on a new connection if the headers make the reply's end ambiguous."""
        if {"transfer-encoding", "content-length"} <= headers.keys():
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
    text = str(error)
    if isinstance(error, httpcore.ConnectTimeout):
        return CarrierFailure("connect", f"no connection within {CONNECT_TIMEOUT:g} s")
    if isinstance(error, httpcore.ConnectError | httpcore.ProxyError | httpcore.UnsupportedProtocol):
        return CarrierFailure("connect", _reason(error))
    if not isinstance(error, httpcore.ProtocolError):
        return CarrierFailure("reset", _reason(error), was_stale=was_stale)
    if "Receive buffer too long" in text:  # the parser keeps 100 kB
        return CarrierFailure("too_large", MANY_HEADERS)
    if "status line" in text:
        return CarrierFailure("invalid_response", _not_http(text))
    if not re.search("disconnected|closed", text):
        return CarrierFailure("invalid_response", "the reply is no valid HTTP after its first line")
    end = "without a reply" if "without sending a response" in text else "before the reply was complete"
    return CarrierFailure("reset", f"the server closed the connection {end}", was_stale=was_stale)


def _not_http(problem: str) -> str:
    """Describe what came in place of a status line, from the parser's message, which quotes it as bytes."""
    quoted = re.search(r"""b('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", problem)
    line = ast.literal_eval(quoted[0]).decode("latin-1") if quoted else ""
    return f"the reply is not HTTP: {excerpt(line)}" if line.strip() else "the reply is not HTTP"


def _reason(error: Exception) -> str:
    return os_words_in(error) or excerpt(str(error)) or type(error).__name__


MOST_HEADER_FIELDS = 200
MOST_HEADER_BYTES = 64 * 1024
MANY_HEADERS = f"the reply has more than {MOST_HEADER_FIELDS} header fields, or {MOST_HEADER_BYTES:,} bytes of them"


def headers_of(fields: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by lower-case name; repeated headers are joined by commas."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name, value = raw_name.decode("latin-1").lower(), _text(raw_value)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


class _Gunzip:
    """A gzip decoder that works piece by piece, within a limit."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self._has_begun = False

    @property
    def is_cut(self) -> bool:
        return self._has_begun and not self._stream.eof

    def inflate(self, raw: bytes, room: int) -> bytes:
        """Return at most `room` (≥ 1) bytes and drop the rest: a reply that does not fit is refused as too large."""
        out = bytearray()
        while raw and len(out) < room:
            if self._stream.eof:  # gzip allows several members in a row
                self._stream = zlib.decompressobj(wbits=31)
            self._has_begun = True
            try:
                out += self._stream.decompress(raw, room - len(out))
            except zlib.error as error:
                raise ValueError(f"the body is not the gzip it claims to be: {error}") from None
            raw = self._stream.unused_data
        return bytes(out)
