"""Connections for httpcore that know whether bytes came behind a reply.

httpcore passes all it has read to its parser. Bytes behind a reply stay in the parser's buffer and would become the
reply to the next request. `ReplyStream` therefore keeps what it handed out, to look for the reply's end in it, and
reports itself readable while unread bytes remain: httpcore closes an idle connection that is readable.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import h11
import httpcore

_MOST_UNREAD = 256 * 1024
"""Bytes read from the system ahead of the parser."""
_MOST_KEPT = 1024 * 1024
"""Bytes of a reply that are kept to look for its end; a longer one in chunks ends its connection."""


class ReplyStream(asyncio.Protocol, httpcore.AsyncNetworkStream):
    """One connection."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._unread = bytearray()
        self._given, self._given_bytes = bytearray(), 0
        """What was read since the last request, and how much."""
        self.is_untouched = True
        """True until the first byte of a reply to the last request."""
        self._is_between = True
        """True if the next write begins a request."""
        self._is_soiled = False
        self._is_ended = self._is_lost = False
        self._error: Exception | None = None
        self._change: asyncio.Future[None] | None = None

    def has_more(self, method: str, status: int, headers: Mapping[str, str]) -> bool:
        """Return True if bytes came behind the reply to a request with this method, or if that cannot be told."""
        length, has_body = headers.get("content-length", ""), method != "HEAD" and status not in (204, 304)
        if has_body and length.isdecimal() and "transfer-encoding" not in headers:
            head = self._given.find(b"\r\n\r\n") + 4
            if head + int(length) == self._given_bytes:  # nearly always
                return False
        if self._given_bytes > len(self._given):
            return True
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method=method, target="/", headers=[("host", "")]))
        parser.send(h11.EndOfMessage())
        parser.receive_data(bytes(self._given))
        with suppress(h11.RemoteProtocolError):
            while (event := parser.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.EndOfMessage):
                    return bool(parser.trailing_data[0])
        return True

    # ── as httpcore uses it ──────────────────────────────────────────────────────────────────────────────────

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes; b"" at the end of the connection."""
        if self._is_soiled:
            raise httpcore.ReadError("the server sent bytes that belong to no request")
        if self._unread:
            await asyncio.sleep(0)  # lets other tasks run while a fast server sends
        while not self._unread and not self._is_ended:
            await self._next_change()
        self._is_between = True
        if not self._unread:
            if self._error is not None:
                raise httpcore.ReadError(str(self._error)) from self._error
            return b""
        piece = bytes(self._unread[:max_bytes])
        del self._unread[:max_bytes]
        self._given_bytes += len(piece)
        if len(self._given) < _MOST_KEPT:
            self._given += piece
        if len(self._unread) < _MOST_UNREAD:
            self._transport.resume_reading()
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes of a request; send nothing on a connection with unread bytes from an earlier reply."""
        if self._is_between:
            self._is_soiled, self._is_between, self.is_untouched = bool(self._unread), False, True
            self._given.clear()
            self._given_bytes = 0
        if self._is_soiled or self._is_ended:
            raise httpcore.WriteError(str(self._error or "the connection is over")) from self._error
        self._transport.write(buffer)

    async def aclose(self) -> None:
        """End the connection at once."""
        self._transport.abort()
        while not self._is_lost:
            await self._next_change()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> ReplyStream:
        """Upgrade the connection to TLS."""
        try:
            async with asyncio.timeout(timeout):
                transport = await asyncio.get_running_loop().start_tls(
                    self._transport, self, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError:
            self._transport.abort()
            raise httpcore.ConnectTimeout from None
        except (OSError, ValueError) as error:
            self._transport.abort()
            raise httpcore.ConnectError(str(error)) from error
        if transport is None or self._unread:  # bytes from before TLS are not trusted
            self._transport.abort()
            raise httpcore.ConnectError("the server broke off TLS")
        self._transport = transport
        return self

    def get_extra_info(self, info: str) -> Any:
        """Return whether httpcore should close the idle connection, or an object of the transport."""
        if info == "is_readable":
            return self._is_ended or bool(self._unread)
        return self._transport.get_extra_info(info)

    # ── as asyncio uses it ───────────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport  # type: ignore[assignment]  # always a Transport for streams

    def data_received(self, data: bytes) -> None:
        """Buffer the data until it is read, and pause the transport when the buffer is full."""
        self._unread += data
        self.is_untouched = False
        if len(self._unread) >= _MOST_UNREAD:
            self._transport.pause_reading()
        self._changed()

    def eof_received(self) -> None:
        """Mark the end of the data; asyncio then closes the connection."""
        self._is_ended = True
        self._changed()

    def connection_lost(self, exc: Exception | None) -> None:
        """Mark the connection as lost, with its reason."""
        self._is_ended = self._is_lost = True
        self._error = self._error or exc
        self._changed()

    # ── within ───────────────────────────────────────────────────────────────────────────────────────────────

    async def _next_change(self) -> None:
        self._change = self._change or asyncio.get_running_loop().create_future()
        await asyncio.shield(self._change)

    def _changed(self) -> None:
        if self._change is not None:
            self._change.set_result(None)
            self._change = None


class ReplyStreams(httpcore.AsyncNetworkBackend):
    """A factory of connections. `newest` is the last one, None before the first."""

    def __init__(self) -> None:
        self.newest: ReplyStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> ReplyStream:
        """Connect to the first address that replies, trying the next one after a quarter of a second."""
        try:
            async with asyncio.timeout(timeout):
                _, self.newest = await asyncio.get_running_loop().create_connection(
                    ReplyStream, host, port, happy_eyeballs_delay=0.25
                )
        except TimeoutError:
            raise httpcore.ConnectTimeout from None
        except UnicodeError:  # not a valid host name
            raise httpcore.ConnectError("Name or service not known") from None
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        return self.newest

    async def sleep(self, seconds: float) -> None:
        """Wait between retries, for httpcore's interface; it makes no retries here."""
        await asyncio.sleep(seconds)
