"""Connections for httpcore that separate each reply from the bytes behind it.

httpcore passes all it has read to its parser. Bytes behind a reply stay in the parser's buffer and become the reply to
the next request. `ReplyStream` therefore returns no byte behind the end of a reply, and reports itself readable while
such bytes remain: httpcore closes an idle connection that is readable instead of reusing it.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import httpcore

_MOST_UNREAD = 256 * 1024
"""Bytes read from the system ahead of the parser."""
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;|\r?\n)")
_LONGEST_SIZE = 32
"""Bytes of a chunk's first line that are examined."""


class ReplyStream(asyncio.Protocol, httpcore.AsyncNetworkStream):
    """One connection. Call `expect` after the head of a reply, to set where its body ends."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._unread = bytearray()
        self._framing: Literal["head", "sized", "chunked", "until closed"] = "head"
        self._room = 0
        """Bytes to return before the framing is read again."""
        self._line = b""
        """The beginning of a line that was returned in part."""
        self.is_untouched = True
        """True until the first byte of a reply to the last request."""
        self._is_between = True
        """True if the next write begins a request."""
        self._is_soiled = False
        self._is_ended = self._is_lost = False
        self._error: Exception | None = None
        self._change: asyncio.Future[None] | None = None

    def expect(self, status: int, method: str, headers: Mapping[str, str]) -> None:
        """Determine how the body ends from the reply's status and headers (RFC 9112, 6.3)."""
        if method == "HEAD" or status in (204, 304):
            self._framing, self._room = "sized", 0
        elif "transfer-encoding" in headers:
            self._framing, self._room = "chunked", 0
        elif "content-length" in headers:
            # Repeated lengths are joined by commas; the parser refuses different ones.
            self._framing, self._room = "sized", int(headers["content-length"].partition(",")[0])
        else:
            self._framing = "until closed"
        self._line = b""

    # ── as httpcore uses it ──────────────────────────────────────────────────────────────────────────────────

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes of the reply, none from behind its end; b"" at the end of the connection."""
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
        end = min(self._end_of_piece(), max_bytes)
        piece = bytes(self._unread[:end])
        del self._unread[:end]
        self._note(piece)
        if len(self._unread) < _MOST_UNREAD:
            self._transport.resume_reading()
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes of a request; send nothing on a connection with unread bytes from an earlier reply."""
        if self._is_between:
            self._is_soiled, self._is_between, self.is_untouched = bool(self._unread), False, True
            # The SOCKS handshake is not HTTP; no HTTP request begins with one of these bytes.
            self._framing, self._line = "until closed" if buffer[:1] in (b"\x01", b"\x05") else "head", b""
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

    def _end_of_piece(self) -> int:
        """Return how many of the unread bytes certainly belong to this reply."""
        if self._framing == "head":
            if found := _END_OF_HEAD.search(self._line + self._unread[:2]):
                return found.end() - len(self._line)
            return found.end() if (found := _END_OF_HEAD.search(self._unread)) else len(self._unread)
        if self._framing == "until closed":
            return len(self._unread)
        if self._room or self._framing == "sized":
            if not self._room:
                raise httpcore.ReadError("the body is longer than its length")
            return min(self._room, len(self._unread))
        return self._unread.find(b"\n") + 1 or len(self._unread)

    def _note(self, piece: bytes) -> None:
        """Update the framing from the bytes that were handed out."""
        if self._framing == "head":
            is_end = _END_OF_HEAD.search(self._line + piece) is not None
            self._line = b"" if is_end else (self._line + piece)[-2:]
        elif self._room:
            self._room -= len(piece)
        elif self._framing == "chunked":
            self._line = (self._line + piece)[:_LONGEST_SIZE]
            if piece.endswith(b"\n"):
                size = _CHUNK_SIZE.match(self._line)
                self._room = int(size[1], 16) + 2 if size and int(size[1], 16) else 0
                self._line = b""


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
