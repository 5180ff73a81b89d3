"""Requests carried by aiohttp, where it is installed: a third of httpx's CPU for each, however many are in flight."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import AsyncIterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import BadStatusLine, HttpProcessingError
from yarl import URL

from pytest_rageval.http.carrier import HEADERS, KEPT_IDLE, CarrierFailure, Outgoing
from pytest_rageval.http.connecting import tls_context
from pytest_rageval.http.failures import (
    BAD_HTTP,
    BROKEN_OFF,
    CONNECT_TIMEOUT,
    NO_CONNECTION,
    NO_REPLY,
    not_http,
    os_words,
    os_words_in,
)
from pytest_rageval.http.limits import MANY_HEADERS, MOST_HEADER_BYTES, MOST_HEADER_FIELDS
from pytest_rageval.text import excerpt

# Time is limited for an attempt as a whole, by who sends it. `connect` counts from looking the name up to TLS.
_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT)


class AiohttpCarrier:
    """One session, made at the first request; its connections are kept by host."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._unkept: aiohttp.ClientSession | None = None
        """Each request on a connection of its own."""

    async def send(self, request: Outgoing, *, is_again: bool = False) -> _Reply:
        """On a kept connection, unless `is_again`, else on a new one."""
        connection = _Connection()
        try:
            response = await self._in(is_again).request(
                request.method,
                # Written as it is: yarl would spell escapes anew, and signed addresses would not be those any more.
                URL(str(request.url), encoded=True),
                headers=request.headers,
                data=request.body,
                allow_redirects=False,
                trace_request_ctx=connection,
                ssl=tls_context() if request.url.scheme == "https" else True,
                middlewares=_NONE if request.method == "POST" else _ONCE,
            )
        except (_Passed, aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as failure:
            error = failure.error if isinstance(failure, _Passed) else failure
            is_closed = isinstance(error, aiohttp.ServerDisconnectedError | OSError) and not isinstance(
                error, aiohttp.ClientConnectorError | aiohttp.ServerTimeoutError
            )
            raise _failure(error, was_stale=is_closed and not connection.is_new) from None
        except (aiohttp.ClientError, OSError) as error:
            raise _failure(error) from None
        except UnicodeError:  # a name that cannot be asked for
            raise CarrierFailure("connect", "Name or service not known") from None
        packing = response.headers.get("transfer-encoding", "chunked").lower()
        if response.status < 200 or packing != "chunked":
            response.close()
            raise CarrierFailure("invalid_response", BAD_HTTP)
        return _Reply(response)

    async def aclose(self) -> None:
        """Close the connections."""
        for session in (self._session, self._unkept):
            if session is not None:
                await session.close()
        self._session = self._unkept = None

    def _in(self, is_again: bool) -> aiohttp.ClientSession:
        if is_again:
            self._unkept = self._unkept or self._new_session(_Connector(force_close=True))
            return self._unkept
        if self._session is None:
            self._session = self._new_session(_Connector(keepalive_timeout=KEPT_IDLE))
        return self._session

    def _new_session(self, connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
        """A session that goes with this carrier, and not before it.

        Nobody closes what a run leaves that is cut short: its end is not the place for aiohttp's complaints.
        """
        session = _new_session(connector)
        weakref.finalize(self, session.detach)
        return session


class _Connector(aiohttp.TCPConnector):
    """Keeps connections; how many there are is limited by who sends requests."""

    def __init__(self, **options: Any) -> None:
        # The system's own look-up of names, as httpx does it, also where a package for another one is installed.
        super().__init__(limit=0, resolver=aiohttp.ThreadedResolver(), **options)
        # aiohttp has no public place for a protocol of one's own; should this one go, its own words are said instead.
        protocol: type[ResponseHandler] = _Protocol
        self._factory = partial(protocol, loop=self._loop)

    def __del__(self, _warnings: Any = None) -> None:
        """Without aiohttp's complaint; see `AiohttpCarrier`."""


class _Protocol(ResponseHandler):
    """Keeps why the parser gave up, and says it to who reads the body.

    aiohttp ends the connection then. It leaves the reader waiting, or tells it that the server ended the connection, as
    the pieces happen to come.
    """

    parser_error: HttpProcessingError | None = None

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        super().set_exception(exc, *cause)
        if isinstance(exc, HttpProcessingError):
            self.parser_error = self.parser_error or exc  # one that gave up and is fed again has lost its reason
            if self._payload is not None and not self._payload.is_eof():
                self._payload.set_exception(self.parser_error)


def _new_session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    trace = aiohttp.TraceConfig()
    trace.on_connection_create_start.append(_hear_of_new_connection)
    return aiohttp.ClientSession(
        connector=connector,
        headers=HEADERS,
        cookie_jar=aiohttp.DummyCookieJar(),  # cases would hear of each other through cookies
        skip_auto_headers=("content-type",),
        auto_decompress=False,
        timeout=_TIMEOUT,
        max_line_size=MOST_HEADER_BYTES,
        max_field_size=MOST_HEADER_BYTES,
        max_headers=MOST_HEADER_FIELDS,
        trace_configs=[trace],
    )


class _Connection:
    """Whether a connection was made for a request."""

    is_new = False


async def _hear_of_new_connection(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
    context.trace_request_ctx.is_new = True


class _Passed(Exception):
    """What aiohttp would answer by sending the request once more."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """aiohttp repeats a GET by itself, uncounted and also on new connections; here nobody but the caller repeats."""
    try:
        return await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Passed(error) from None


_ONCE = (_once,)
_NONE = ()
"""For a POST, which it never repeats: a middleware costs 15 µs of CPU a request."""


class _Reply:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        connection = response.connection  # none, where the reply is complete already
        self._protocol = connection.protocol if connection is not None else None

    @property
    def fields(self) -> Sequence[tuple[bytes, bytes]]:
        return self._response.raw_headers

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response.content.iter_any():
                yield piece
        except (aiohttp.ClientError, OSError, HttpProcessingError) as error:
            parser_error = self._protocol.parser_error if isinstance(self._protocol, _Protocol) else None
            raise _failure(parser_error or error) from None

    async def aclose(self) -> None:
        self._response.release()  # ends the connection unless the body was read to its end


def _failure(error: Exception, *, was_stale: bool = False) -> CarrierFailure:
    if isinstance(error, aiohttp.ServerTimeoutError):
        return CarrierFailure("connect", NO_CONNECTION)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = error.certificate_error
        return CarrierFailure("connect", os_words(reason) if isinstance(reason, OSError) else excerpt(str(reason)))
    if isinstance(error, aiohttp.ClientConnectorError):
        return CarrierFailure("connect", os_words(error.os_error))
    if isinstance(error, aiohttp.ClientResponseError | HttpProcessingError):
        return _unreadable(error)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return CarrierFailure("reset", NO_REPLY, was_stale=was_stale)
    return CarrierFailure("reset", os_words_in(error) or _quoted_os_words(error) or BROKEN_OFF, was_stale=was_stale)


def _quoted_os_words(error: Exception) -> str | None:
    """The system's words where aiohttp has only the representation of an error, within its own message."""
    number = re.search(r"Error\(([0-9]+), ", str(error))
    return os.strerror(int(number[1])) if number else None


def _unreadable(error: aiohttp.ClientResponseError | HttpProcessingError) -> CarrierFailure:
    deepest: BaseException = error
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    if error.message.startswith(("Too many headers", "Too many trailers", "Got more than")):
        return CarrierFailure("too_large", MANY_HEADERS)
    is_status_line = isinstance(deepest, BadStatusLine)
    return CarrierFailure("invalid_response", not_http(error.message) if is_status_line else BAD_HTTP)
