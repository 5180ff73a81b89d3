"""The HTTP client of targets and model endpoints alike.

`SlottedClient` sends requests: a total deadline an attempt, retries only where they are safe, a limit on what a reply
may hold, and no credential in anything that can be read afterwards.
"""

from __future__ import annotations

import asyncio
import json as json_
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from pytest_rageval.http.address import Address, LoggedURL, address_of, checked_headers
from pytest_rageval.http.connecting import proxy_of, tls_context
from pytest_rageval.http.failures import CONNECT_TIMEOUT, HttpFailure, kind_of, reason_of
from pytest_rageval.http.limits import EXCERPT_BYTES, beginning_of, bounded_body, header_excess
from pytest_rageval.http.retries import REPEATABLE_STATUS, RETRIED_STATUS, longest_wait, try_again
from pytest_rageval.io.masking import Mask, public_url, secrets_of_headers, secrets_of_url
from pytest_rageval.text import excerpt

KEPT_IDLE = 4.0
"""Seconds for which a connection is kept for the next request; many servers close after 5."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A reply with status 2xx: header names in lower case, the body decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    attempts: int = 1
    """How often the request was sent, retries and replaced connections included."""


class SlottedClient:
    """Sends requests, at most `slots` at a time; belongs to one event loop.

    timeout    seconds for one attempt as a whole; a request with its retries and waits takes at most
               `timeout` × (`retries` + 1)
    retries    further attempts after a connection failure, 429, 502, 503 or 504; nothing else is sent twice
    max_bytes  the largest body accepted, counted after decompression
    headers    sent with every request; what looks like a credential among them is masked in replies and messages
    app        an ASGI application of this process to ask in place of the network
    backoff    seconds before the first retry, doubled for each further one, with as much again of jitter
    is_repeatable  a request that was worked on may be sent again at no harm: 408, 409, 425, 500, 529, time-outs and
               connections that break off are retried too
    status_in  the status that a reply means, by its own and its body: some servers hide an error in a 200
    limit      what messages call `timeout`: the setting that it was taken from
    """

    def __init__(
        self,
        *,
        slots: int = 16,
        timeout: float = 120.0,
        retries: int = 2,
        max_bytes: int = 16 * 2**20,
        headers: Mapping[str, str] | None = None,
        app: Any = None,
        backoff: float = 0.5,
        is_repeatable: bool = False,
        status_in: Callable[[int, bytes], int] | None = None,
        limit: str = "timeout",
    ) -> None:
        self.timeout = timeout
        self._limit = limit
        self.retries = retries
        self.max_bytes = max_bytes
        self.backoff = backoff
        self._retried_status = REPEATABLE_STATUS if is_repeatable else RETRIED_STATUS
        self._retried_kinds = frozenset({"connect", "timeout", "reset"} if is_repeatable else {"connect"})
        self._status_in = status_in or (lambda status, _: status)
        self._headers = checked_headers(headers or {})
        self._transport = None if app is None else httpx.ASGITransport(app=app)
        self._free = asyncio.Semaphore(slots)
        self._idle: dict[str | None, list[httpx.AsyncClient]] = {}
        """By the proxy that they use."""
        self._proxies: dict[str, str | None] = {}

    async def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        before_retry: Callable[[], Awaitable[None]] | None = None,
    ) -> HttpReply:
        """Send one request, `json` as its body where given; raises HttpFailure unless a reply with 2xx comes."""
        address = address_of(url)
        sent = address.headers | self._headers | checked_headers(headers or {})
        proxy = self._proxy(address)
        mask = Mask([*secrets_of_headers(sent), *address.secrets, *secrets_of_url(proxy or "")])
        name = f"{method} {address.shown}" + (f" through the proxy {public_url(proxy)}" if proxy else "")
        body = None
        if json is not None:
            sent["content-type"] = "application/json"
            body = json_.dumps(json, allow_nan=False).encode()
        async with self._slot(proxy) as (client, is_reused):
            request = client.build_request(method, address.url, content=body, headers=sent)
            request.url = LoggedURL(request.url)
            deadline = asyncio.get_running_loop().time() + self.timeout * (self.retries + 1)
            call = _Call(client, request, name, mask, deadline, is_reused=is_reused)
            try:
                return await self._attempt(call)
            except HttpFailure as failure:
                if not (failure.is_retryable and self.retries):
                    raise
                first = failure
            return await try_again(
                lambda: self._attempt(call, before_retry),
                first,
                retries=self.retries,
                backoff=self.backoff,
                seconds_left=call.seconds_left,
            )

    async def aclose(self) -> None:
        """Close the connections that are idle; call it when no request is under way."""
        for clients in self._idle.values():
            while clients:
                await clients.pop().aclose()

    def _proxy(self, address: Address) -> str | None:
        if self._transport is not None:
            return None
        host = f"{address.url.scheme}://{address.url.netloc.decode('ascii', 'replace')}"
        if host not in self._proxies:
            self._proxies[host] = proxy_of(str(address.url))
        return self._proxies[host]

    @asynccontextmanager
    async def _slot(self, proxy: str | None) -> AsyncIterator[tuple[httpx.AsyncClient, bool]]:
        """A client for this proxy, and whether it was used before."""
        async with self._free:
            # The last used comes first, so that few connections are kept warm when little is in flight.
            idle = self._idle.setdefault(proxy, [])
            is_reused = bool(idle)
            client = idle.pop() if is_reused else self._new_client(proxy)
            try:
                yield client, is_reused
            finally:
                idle.append(client)

    def _new_client(self, proxy: str | None) -> httpx.AsyncClient:
        # One client a slot: a shared pool scans all of its connections at each request (1,426 µs of CPU a request at 64
        # in flight, 507 µs this way). Cookies are refused: cases would hear of each other through them.
        return httpx.AsyncClient(
            verify=tls_context(),
            transport=self._transport,
            headers={"accept": "application/json", "accept-encoding": "gzip", "user-agent": "pytest-rageval"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            follow_redirects=False,
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=KEPT_IDLE),
            proxy=proxy,
            trust_env=False,  # which proxy is used is decided here, once, and named in messages
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT),
        )

    async def _attempt(self, call: _Call, before: Callable[[], Awaitable[None]] | None = None) -> HttpReply:
        if before is not None:
            await before()
        seconds = min(self.timeout, call.seconds_left())
        call.attempts += 1
        try:
            # httpx counts time by single reads, so a body that drips would never end.
            async with asyncio.timeout(seconds):
                response = await self._sent(call)
                try:
                    return await self._reply(call, response)
                finally:
                    await response.aclose()
        except TimeoutError:
            total = f"timeout × (retries + 1) = {self.timeout * (self.retries + 1):.6g} s"
            # Making the request took some of the time of the first attempt: a moment, not what is to be named.
            is_whole = seconds > 0.99 * self.timeout
            limit = (
                f"{self.timeout:.6g} s ({self._limit})"
                if is_whole
                else f"{max(seconds, 0):.3g} s (what was left of {total})"
            )
            message = f"{call.name}: no complete reply within {limit}"
            raise HttpFailure("timeout", message, is_retryable="timeout" in self._retried_kinds) from None
        except httpx.TransportError as error:
            kind = kind_of(error)
            message = call.mask.text(f"{call.name}: {reason_of(error)}")
            raise HttpFailure(kind, message, is_retryable=kind in self._retried_kinds) from None

    async def _sent(self, call: _Call) -> httpx.Response:
        """The beginning of the reply. Where a kept connection turns out to be closed, another one is taken, once.

        A server that closes an idle connection may do so while the request is on its way: nothing was wrong with it.
        """
        if not call.is_reused:
            return await call.client.send(call.request, stream=True)
        call.is_reused = False
        trace = _Trace()
        call.request.extensions["trace"] = trace
        try:
            return await call.client.send(call.request, stream=True)
        except (httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.RemoteProtocolError) as error:
            is_closed = not isinstance(error, httpx.RemoteProtocolError) or "without sending" in str(error)
            if trace.has_connected or not is_closed:
                raise
        finally:
            del call.request.extensions["trace"]
        call.attempts += 1
        return await call.client.send(call.request, stream=True)

    async def _reply(self, call: _Call, response: httpx.Response) -> HttpReply:
        status = response.status_code
        if (excess := header_excess(response.headers)) is not None:
            raise HttpFailure("too_large", f"{call.name}: {excess}", status=status)
        if 300 <= status < 400:
            to = excerpt(call.mask.text(public_url(response.headers.get("location", ""))))
            message = (
                f"{call.name}: status {status}, redirect to {to or 'nowhere'}; not followed, give that URL instead"
            )
            raise HttpFailure("invalid_response", message, status=status)
        if not 200 <= status < 300:
            beginning = await beginning_of(response)
            meant = self._status_in(status, beginning)
            raise _refusal(call, response, beginning, meant, is_retryable=meant in self._retried_status)
        try:
            body, is_whole = await bounded_body(response, self.max_bytes)
        except ValueError as error:
            raise HttpFailure("invalid_response", f"{call.name}: {error}", status=status) from None
        if not is_whole:
            message = f"{call.name}: the reply is larger than {self.max_bytes:,} bytes"
            raise HttpFailure("too_large", message, status=status)
        meant = self._status_in(status, body)
        if meant != status:
            raise _refusal(call, response, body, meant, is_retryable=meant in self._retried_status)
        return HttpReply(status, dict(response.headers), call.mask.bytes(body), call.attempts)


class _Trace:
    """Hears of a request's steps whether a connection was made for it."""

    def __init__(self) -> None:
        self.has_connected = False

    async def __call__(self, event: str, _: Mapping[str, Any]) -> None:
        self.has_connected |= event.startswith("connection.connect")


@dataclass(slots=True)
class _Call:
    """One request under way: how it is named in messages, what is masked in them, and when its time is over."""

    client: httpx.AsyncClient
    request: httpx.Request
    name: str
    mask: Mask
    deadline: float
    is_reused: bool
    """Whether its connection may have been kept from an earlier request."""
    attempts: int = 0

    def seconds_left(self) -> float:
        return self.deadline - asyncio.get_running_loop().time()


def _refusal(
    call: _Call, response: httpx.Response, beginning: bytes, status: int, *, is_retryable: bool
) -> HttpFailure:
    """A reply that means a status of 400 or more as a failure, with when to try again."""
    asked = response.headers.get_list("retry-after")
    body = call.mask.text(beginning[:EXCERPT_BYTES].decode("utf-8", "replace"))
    message = f"{call.name}: status {response.status_code}"
    if response.status_code < 300:
        message += f" with an error of status {status}"
    if shown := excerpt(body):
        message += f": {shown}"
    retry_after = longest_wait(asked) if is_retryable else None
    left = max(0.0, call.seconds_left())
    if retry_after is not None and retry_after > left:
        message += f"; asks to wait {retry_after:.6g} s, more than the {left:.3g} s left for this request"
        return HttpFailure("rate_limited", message, status=status, retry_after=retry_after, body=body)
    kind = "rate_limited" if status == 429 else "http_4xx" if status < 500 else "http_5xx"
    return HttpFailure(kind, message, status=status, is_retryable=is_retryable, retry_after=retry_after, body=body)
