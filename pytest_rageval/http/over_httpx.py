"""Requests carried by httpx: for proxies, for applications of this process, and where aiohttp is not installed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from pytest_rageval.http.address import LoggedURL
from pytest_rageval.http.carrier import HEADERS, KEPT_IDLE, CarrierFailure, Outgoing
from pytest_rageval.http.connecting import tls_context
from pytest_rageval.http.failures import (
    BAD_HTTP,
    BROKEN_OFF,
    CONNECT_TIMEOUT,
    NO_CONNECTION,
    NO_REPLY,
    not_http,
    os_words_in,
)
from pytest_rageval.http.limits import MANY_HEADERS
from pytest_rageval.text import excerpt

# Time is limited for an attempt as a whole, by who sends it.
_TIMEOUT = httpx.Timeout(None, connect=CONNECT_TIMEOUT)


class HttpxCarrier:
    """One client for each request under way, kept for the next one."""

    def __init__(self, *, app: Any = None, proxy: str | None = None) -> None:
        """`app`: an ASGI application of this process to ask in place of the network."""
        self._transport = None if app is None else httpx.ASGITransport(app=app)
        self._proxy = proxy
        # The last used comes first, so that few connections are kept warm when little is in flight.
        self._idle: list[httpx.AsyncClient] = []

    async def send(self, request: Outgoing, *, is_again: bool = False) -> _Reply:
        """On a client that was used before, where one is free; its connection may have been closed meanwhile."""
        is_kept = bool(self._idle) and not is_again
        client = self._idle.pop() if is_kept else self._new_client()
        try:
            return _Reply(await _sent(client, request, is_kept=is_kept), client, self._idle)
        except BaseException as error:  # also of one that is cancelled the client is for the next request
            if isinstance(error, CarrierFailure) and error.was_stale:
                await client.aclose()
            else:
                self._idle.append(client)
            raise

    async def aclose(self) -> None:
        """Close the connections that are idle."""
        while self._idle:
            await self._idle.pop().aclose()

    def _new_client(self) -> httpx.AsyncClient:
        # One client a request: a shared pool scans all of its connections at each request (1,426 µs of CPU a request at
        # 64 in flight, 507 µs this way). Cookies are refused: cases would hear of each other through them.
        return httpx.AsyncClient(
            verify=tls_context(),
            transport=self._transport,
            headers=HEADERS,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            follow_redirects=False,
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=KEPT_IDLE),
            proxy=self._proxy,
            trust_env=False,  # which proxy is used is decided above, once, and named in messages
            timeout=_TIMEOUT,
        )


async def _sent(client: httpx.AsyncClient, outgoing: Outgoing, *, is_kept: bool) -> httpx.Response:
    request = client.build_request(outgoing.method, outgoing.url, content=outgoing.body, headers=outgoing.headers)
    request.url = LoggedURL(request.url)
    trace = _Trace()
    if is_kept:
        request.extensions["trace"] = trace
    try:
        return await client.send(request, stream=True)
    except httpx.TransportError as error:
        is_closed = isinstance(error, httpx.ReadError | httpx.WriteError | httpx.CloseError) or (
            isinstance(error, httpx.RemoteProtocolError) and "without sending a response" in str(error)
        )
        raise _failure(error, was_stale=is_kept and is_closed and not trace.has_connected) from None


class _Trace:
    """Hears of a request's steps whether a connection was made for it."""

    def __init__(self) -> None:
        self.has_connected = False

    async def __call__(self, event: str, _: Mapping[str, Any]) -> None:
        self.has_connected |= event.startswith("connection.connect")


class _Reply:
    def __init__(self, response: httpx.Response, client: httpx.AsyncClient, idle: list[httpx.AsyncClient]) -> None:
        self._response, self._client, self._idle = response, client, idle
        self.status = response.status_code

    @property
    def fields(self) -> Sequence[tuple[bytes, bytes]]:
        return self._response.headers.raw

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response.aiter_raw():
                yield piece
        except httpx.TransportError as error:
            raise _failure(error) from None

    async def aclose(self) -> None:
        try:
            await self._response.aclose()
        finally:
            self._idle.append(self._client)


def _failure(error: httpx.TransportError, *, was_stale: bool = False) -> CarrierFailure:
    if isinstance(error, httpx.ConnectTimeout):
        return CarrierFailure("connect", NO_CONNECTION)
    if isinstance(error, httpx.ConnectError | httpx.ProxyError):
        return CarrierFailure("connect", _reason(error))
    text = str(error)
    if isinstance(error, httpx.RemoteProtocolError):
        if "Receive buffer too long" in text:  # the parser keeps 100 kB
            return CarrierFailure("too_large", MANY_HEADERS)
        if not re.search("disconnected|closed", text):
            return CarrierFailure("invalid_response", not_http(text) if "status line" in text else BAD_HTTP)
        return CarrierFailure(
            "reset", NO_REPLY if "without sending a response" in text else BROKEN_OFF, was_stale=was_stale
        )
    return CarrierFailure("reset", _reason(error), was_stale=was_stale)


def _reason(error: httpx.TransportError) -> str:
    return os_words_in(error) or excerpt(str(error)) or type(error).__name__
