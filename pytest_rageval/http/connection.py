"""Connections: h11 for the format, asyncio for the network, httpx for an application in this process."""

from __future__ import annotations

import asyncio
import select
import zlib
from collections.abc import AsyncIterable, Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import h11
import httpx

from pytest_rageval.http.address import tls_context
from pytest_rageval.http.failures import HttpFailure, os_words_in
from pytest_rageval.text import excerpt

KEPT_IDLE = 4.0
"""Seconds for which an idle connection is kept for the next request; many servers close after 5."""
CONNECT_TIMEOUT = 10.0
"""Seconds for opening a connection, within an attempt."""
# More than servers send. Joining repeated fields takes time that grows with the square of their number.
MOST_HEADER_FIELDS = 200
MOST_HEADER_BYTES = 64 * 1024
MANY_HEADERS = f"the reply has more than {MOST_HEADER_FIELDS} header fields, or {MOST_HEADER_BYTES:,} bytes of them"
Fields = Sequence[tuple[bytes, bytes]]


class StaleConnection(HttpFailure):
    """An idle connection was closed: nothing was wrong with the request."""


class ProxyAddress(NamedTuple):
    """A proxy and the fields that name its user."""

    url: httpx.URL
    fields: Fields


class HttpConnection(asyncio.Protocol):
    """One connection, which carries requests one after another.

    All that a server sends goes to h11 at once. Bytes behind a reply would become the reply to the next request: a
    connection on which any came is not used again.
    """

    _transport: asyncio.Transport

    def __init__(self) -> None:
        # Its limit holds for the whole head; the excess of a parsed one is told apart later.
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=100 * 1024)
        self._news: asyncio.Future[None] | None = None
        self._closed = asyncio.get_running_loop().create_future()
        self._beginning = b""
        """The first bytes of the reply."""
        self._error: Exception | None = None
        self._is_ended = False
        self._is_reused = False
        self._idle_since = 0.0

    @classmethod
    async def open(cls, url: httpx.URL, proxy: ProxyAddress | None) -> HttpConnection:
        """Connect to the URL's server or through the proxy; raise HttpFailure of kind connect."""
        first = url if proxy is None else proxy.url
        port = first.port or (443 if first.scheme == "https" else 80)
        secure = tls_context() if first.scheme == "https" else None
        connection = cls()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                # Happy eyeballs: a host with a dead address of IPv6 would else take the whole CONNECT_TIMEOUT. 0.25 s
                # is what RFC 8305 recommends.
                creating = asyncio.get_running_loop().create_connection(
                    lambda: connection, first.raw_host.decode("ascii"), port, ssl=secure, happy_eyeballs_delay=0.25
                )
                # Cancelled while it opens, asyncio (at least up to 3.13) loses a socket that is connected already.
                opening = asyncio.create_task(asyncio.wait_for(creating, CONNECT_TIMEOUT))
                opening.add_done_callback(lambda opened: opened.cancelled() or opened.exception())  # else it is logged
                await asyncio.shield(opening)
                if proxy is not None and url.scheme == "https":
                    await connection._tunnel(url, proxy.fields)
            return connection
        except BaseException as error:
            connection._is_ended = True
            if hasattr(connection, "_transport"):
                connection._transport.abort()
            if isinstance(error, TimeoutError):
                reason = f"no connection within {CONNECT_TIMEOUT:g} s"
            elif isinstance(error, UnicodeError):
                # A name that IDNA cannot encode: nobody can have it.
                reason = "Name or service not known"
            elif isinstance(error, OSError | ValueError | HttpFailure):
                reason = os_words_in(error)
            else:
                raise
            raise HttpFailure("connect", reason) from None

    async def _tunnel(self, url: httpx.URL, fields: Fields) -> None:
        """Ask the proxy for a tunnel to the URL's server, and begin TLS in it."""
        host = url.raw_host.decode("ascii")
        bracketed = f"[{host}]" if ":" in host else host  # an address of IPv6
        authority = f"{bracketed}:{url.port or 443}".encode()
        reply = await self.send("CONNECT", authority, [(b"host", authority), *fields], b"")
        if not 200 <= reply.status < 300:
            raise HttpFailure("connect", f"the proxy refuses a tunnel with status {reply.status}")
        if self._parser.trailing_data[0]:  # bytes from before TLS are not trusted
            raise HttpFailure("connect", "the server broke off TLS")
        # The tunnel's own request is over: what follows is another conversation, with a parser of its own.
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=100 * 1024)
        transport = await asyncio.get_running_loop().start_tls(
            self._transport, self, tls_context(), server_hostname=host
        )
        if transport is None:
            raise HttpFailure("connect", "the server broke off TLS")
        self._transport = transport

    async def send(self, method: str, target: bytes, fields: Fields, body: bytes) -> Reply:
        """Send a request and wait for the head of its reply; raise HttpFailure with the reason alone."""
        self._beginning = b""
        head = h11.Request(method=method, target=target, headers=list(fields))
        parts = (head, h11.Data(data=body), h11.EndOfMessage())
        try:
            self._transport.write(b"".join(self._parser.send(part) or b"" for part in parts))
            while not isinstance(event := await self._next_event(), h11.Response):
                pass  # an interim reply
        except BaseException:
            # Half of a request was sent, or its reply may still come: the next one must not find it.
            self._transport.abort()
            raise
        return Reply(event.status_code, list(event.headers), self)

    def __aiter__(self) -> HttpConnection:
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece of the reply's body."""
        event = await self._next_event()
        if isinstance(event, h11.Data):
            return bytes(event.data)
        raise StopAsyncIteration

    async def _next_event(self) -> Any:
        is_headless = self._parser.their_state is h11.SEND_RESPONSE
        try:
            # Paused: the server switched to another protocol, and no reply will come; then the attempt's time runs out.
            while (event := self._parser.next_event()) in (h11.NEED_DATA, h11.PAUSED):
                self._news = self._news or asyncio.get_running_loop().create_future()
                await self._news
        except h11.RemoteProtocolError as error:
            raise self._failure(str(error), is_headless=is_headless) from None
        return event

    def _failure(self, problem: str, *, is_headless: bool) -> HttpFailure:
        # h11 has one class for all faults of a peer: only its message tells them apart.
        if self._is_ended and "close" in problem.lower():
            end = "without a reply" if is_headless else "before the reply was complete"
            reason = f"the server closed the connection {end}" if self._error is None else os_words_in(self._error)
            # Closed before the first byte: the server had dropped the idle connection, and the request is sent again.
            broken = StaleConnection if self._is_reused and not self._beginning else HttpFailure
            return broken("reset", reason)
        if "Receive buffer too long" in problem:
            return HttpFailure("too_large", MANY_HEADERS)
        if "status line" not in problem:
            return HttpFailure("invalid_response", "the reply is no valid HTTP after its first line")
        line = excerpt(self._beginning.strip().split(b"\n")[0].decode("latin-1"))
        return HttpFailure("invalid_response", f"the reply is not HTTP: {line}" if line else "the reply is not HTTP")

    def is_free_after(self, reply: Reply) -> bool:
        """Return True if the connection can carry another request, else end it.

        It can if the reply was read to its end, nothing came behind it, and its headers make its end unambiguous.
        """
        is_done = self._parser.our_state is h11.DONE and self._parser.their_state is h11.DONE
        bytes_behind, _ = self._parser.trailing_data
        is_read = is_done and not bytes_behind
        # With both headers, a proxy and this parser may see the end of the reply in two places (request smuggling).
        is_ambiguous = "transfer-encoding" in reply.headers and "content-length" in reply.headers
        if self._is_ended or is_ambiguous or not is_read:
            self._transport.abort()
            return False
        self._parser.start_next_cycle()
        self._is_reused = True
        self._idle_since = asyncio.get_running_loop().time()
        return True

    def is_usable(self) -> bool:
        """Return True if an idle connection is open, was not idle for long, and holds no bytes; else end it.

        Bytes may wait in the system that the loop has not read yet: what a server sent behind its last reply.
        """
        idle_seconds = asyncio.get_running_loop().time() - self._idle_since
        is_over = self._is_ended or idle_seconds > KEPT_IDLE
        socket = self._transport.get_extra_info("socket")
        if not is_over and socket is not None:
            # Not select.select, which fails for descriptors above 1,023.
            waiting = select.poll()
            waiting.register(socket, select.POLLIN)
            is_over = bool(waiting.poll(0))
        if is_over:
            self._transport.abort()
        return not is_over

    async def aclose(self) -> None:
        """Close the connection."""
        self._transport.abort()
        # The loop must run once more: closed before that, it leaves the socket to the garbage collector.
        await asyncio.wait([self._closed])

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; end the connection if nobody waits for it any more."""
        self._transport = transport  # type: ignore[assignment]  # always a Transport for streams
        if self._is_ended:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse the data; end the connection if it belongs to no request."""
        # What comes before a request could be taken for its reply.
        if self._parser.our_state is h11.IDLE:
            self._is_ended = True
            self._transport.abort()
            return
        # Enough for a message that shows what came in place of HTTP.
        self._beginning = (self._beginning + data[:200])[:200]
        self._parser.receive_data(data)
        self._wake()

    def eof_received(self) -> None:
        """Mark the end of the data; asyncio then closes the connection."""
        if not self._is_ended:
            self._is_ended = True
            self._parser.receive_data(b"")
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Mark the connection as lost, with its reason."""
        self._error = self._error or exc
        self.eof_received()
        if not self._closed.done():
            self._closed.set_result(None)

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
        self._news = None


class Reply:
    """The head of a reply, with its raw headers, and the pieces of its body."""

    def __init__(self, status: int, fields: Fields, pieces: AsyncIterable[bytes]) -> None:
        self.status = status
        self.fields = fields
        self._pieces = pieces
        self.close: Callable[[], object] = lambda: None
        """Frees the connection for another request, or ends it if the body was not read to its end."""

    @property
    def excess(self) -> str | None:
        """Return why the headers are too many to read, or None. Check it before any look-up in the headers."""
        # The colon, the space and the end of each line are four bytes.
        size = sum(len(name) + len(value) + 4 for name, value in self.fields)
        is_too_much = len(self.fields) > MOST_HEADER_FIELDS or size > MOST_HEADER_BYTES
        return MANY_HEADERS if is_too_much else None

    @cached_property
    def headers(self) -> dict[str, str]:
        """Return the headers by lower-case name; repeated headers are joined by commas."""
        headers: dict[str, str] = {}
        for raw_name, raw_value in self.fields:
            # Names are ASCII by the standard; values may hold UTF-8.
            name = raw_name.decode("latin-1").lower()
            value = raw_value.decode("utf-8", "replace")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return headers

    async def body(self, limit: int, watch: Callable[[bytes], None] | None = None) -> tuple[bytes, bool]:
        """Return the body up to the limit, and whether that is all of it; show each piece to `watch` as it arrives.

        Raise HttpFailure if the connection breaks off, ValueError for a bad encoding. Pieces are inflated within the
        limit: at once, each could grow a thousandfold.
        """
        encoding = self.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise ValueError(f"content-encoding {excerpt(encoding)!r} was not asked for; only gzip is accepted")
        gzip = zlib.decompressobj(wbits=31) if encoding.endswith("gzip") else None
        has_begun = False
        body = bytearray()
        async for piece in self._pieces:
            length = len(body)
            while piece and len(body) <= limit:
                if gzip is None:
                    body += piece
                    break
                if gzip.eof:  # gzip allows several members in a row
                    gzip = zlib.decompressobj(wbits=31)
                has_begun = True
                try:
                    body += gzip.decompress(piece, limit + 1 - len(body))
                except zlib.error as error:
                    raise ValueError(f"the body is not the gzip it claims to be: {error}") from None
                piece = gzip.unused_data
            if watch is not None:
                watch(bytes(body[length:]))
            if len(body) > limit:
                return bytes(body[:limit]), False
        # zlib does not complain of a stream that was cut off.
        if gzip is not None and has_begun and not gzip.eof:
            raise ValueError("the gzip body ends before its end")
        return bytes(body), True


async def send_to_app(app: Any, method: str, url: httpx.URL, fields: Fields, body: bytes) -> Reply:
    """Send a request to an ASGI application in this process."""
    request = httpx.Request(method, url, headers=list(fields), content=body)
    response = await httpx.ASGITransport(app=app).handle_async_request(request)
    assert isinstance(response.stream, httpx.AsyncByteStream)
    return Reply(response.status_code, response.headers.raw, response.stream)
