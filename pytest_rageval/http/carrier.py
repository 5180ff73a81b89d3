"""Transport of requests and replies: httpcore for the network, httpx for an application in this process."""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from typing import Any

import httpcore
import httpx

from pytest_rageval.http.address import tls_context
from pytest_rageval.http.failures import HttpFailure, os_words_in
from pytest_rageval.http.reply_stream import ReplyStreams
from pytest_rageval.text import excerpt

KEPT_IDLE = 4.0
"""Seconds for which an idle connection is kept for the next request; many servers close after 5."""
# The client limits the time of an attempt as a whole.
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
MOST_HEADER_FIELDS = 200
MOST_HEADER_BYTES = 64 * 1024
MANY_HEADERS = f"the reply has more than {MOST_HEADER_FIELDS} header fields, or {MOST_HEADER_BYTES:,} bytes of them"


class StaleConnection(HttpFailure):
    """An idle connection was closed: nothing was wrong with the request."""


class HttpConnection:
    """One connection, reopened when needed; it returns to the list of idle connections when it is free.

    Each request in flight has its own pool: a shared one scans all of its connections at each request (9,600 µs of
    CPU a request at 64 in flight, 700 µs this way).
    """

    def __init__(self, proxy: str | None, idle: list[HttpConnection]) -> None:
        self._idle = idle
        self._streams = ReplyStreams()
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls_context(),
            proxy=None if proxy is None else _proxy(proxy),
            max_connections=1,
            keepalive_expiry=KEPT_IDLE,
            network_backend=self._streams,
        )

    async def send(self, request: httpx.Request) -> Reply:
        """Send a request and wait for the head of its reply; raise HttpFailure with the reason alone."""
        reused = self._streams.newest
        try:
            response = await self._pool.handle_async_request(
                httpcore.Request(
                    request.method,
                    _core_url(request.url, request.url.raw_path),
                    headers=request.headers.raw,
                    content=request.content,
                    extensions={"timeout": _TIMEOUT},
                )
            )
        except BaseException as error:
            # A cancelled request leaves its connection to the next one, too.
            self._idle.append(self)
            if not isinstance(error, _ERRORS):
                raise
            stream = self._streams.newest
            is_stale = stream is not None and stream is reused and stream.is_untouched
            raise _failure(error, is_stale=is_stale) from None
        return Reply(response.status, response.headers, response.stream, partial(self._end_reply, request))

    async def _end_reply(self, request: httpx.Request, reply: Reply) -> None:
        """Become free for another request, unless bytes came behind the reply or its headers make its end ambiguous."""
        is_ambiguous = "transfer-encoding" in reply.headers and "content-length" in reply.headers
        assert self._streams.newest is not None, "a reply comes over a connection"
        if is_ambiguous or self._streams.newest.has_more(request.method, reply.status, reply.headers):
            await self.aclose()
        else:
            self._idle.append(self)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._pool.aclose()


async def send_to_app(app: Any, request: httpx.Request) -> Reply:
    """Send a request to an ASGI application in this process."""
    response = await httpx.ASGITransport(app=app).handle_async_request(request)
    return Reply(response.status_code, response.headers.raw, response.stream)


class Reply:
    """The head of a reply; `fields` are its raw headers."""

    def __init__(
        self,
        status: int,
        fields: Sequence[tuple[bytes, bytes]],
        stream: Any,
        end: Callable[[Reply], Awaitable[None]] | None = None,
    ) -> None:
        self.status, self.fields, self._stream, self._end = status, fields, stream, end

    @property
    def excess(self) -> str | None:
        """Return why the headers are too many to read, or None. Check it before any look-up in the headers."""
        size = sum(len(name) + len(value) + 4 for name, value in self.fields)
        return MANY_HEADERS if len(self.fields) > MOST_HEADER_FIELDS or size > MOST_HEADER_BYTES else None

    @cached_property
    def headers(self) -> dict[str, str]:
        """Return the headers by lower-case name; repeated headers are joined by commas."""
        headers: dict[str, str] = {}
        for raw_name, raw_value in self.fields:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("utf-8", "replace")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return headers

    async def body(self, limit: int) -> tuple[bytes, bool]:
        """Return the body up to the limit, and whether that is all of it.

        Raise HttpFailure if the connection breaks off, ValueError for a bad encoding. Pieces are inflated
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
            if self._end is not None:
                await self._end(self)


def _core_url(url: httpx.URL, target: bytes) -> httpcore.URL:
    return httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=target)


def _proxy(url: str) -> httpcore.Proxy:
    proxy = httpx.Proxy(url)
    context = tls_context() if proxy.url.scheme == "https" else None
    return httpcore.Proxy(_core_url(proxy.url, b"/"), auth=proxy.raw_auth, ssl_context=context)


def _failure(error: Exception, *, is_stale: bool = False) -> HttpFailure:
    """Return the reason, in the operating system's words if it has any."""
    text = str(error)
    broken = StaleConnection if is_stale else HttpFailure
    if isinstance(error, httpcore.ConnectTimeout):
        return HttpFailure("connect", f"no connection within {CONNECT_TIMEOUT:g} s")
    if not isinstance(error, httpcore.ProtocolError):
        reason = os_words_in(error) or excerpt(text) or type(error).__name__
        is_connecting = isinstance(error, httpcore.ConnectError | httpcore.ProxyError | httpcore.UnsupportedProtocol)
        return HttpFailure("connect", reason) if is_connecting else broken("reset", reason)
    if "Receive buffer too long" in text:  # the parser keeps 100 kB
        return HttpFailure("too_large", MANY_HEADERS)
    if "status line" in text:
        return HttpFailure("invalid_response", _not_http(text))
    if not re.search("disconnected|closed", text):
        return HttpFailure("invalid_response", "the reply is no valid HTTP after its first line")
    end = "without a reply" if "without sending a response" in text else "before the reply was complete"
    return broken("reset", f"the server closed the connection {end}")


def _not_http(problem: str) -> str:
    """Describe what came in place of a status line, from the parser's message, which quotes it as bytes."""
    quoted = re.search(r"""b('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", problem)
    line = ast.literal_eval(quoted[0]).decode("latin-1") if quoted else ""
    return f"the reply is not HTTP: {excerpt(line)}" if line.strip() else "the reply is not HTTP"


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
