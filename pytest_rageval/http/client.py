"""The HTTP client of targets and model endpoints.

`SlottedClient` has a total deadline for each attempt, retries only where they are safe, limits the size of replies,
and masks credentials in all that it returns.
"""

from __future__ import annotations

import asyncio
import json as json_
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import httpx

from pytest_rageval.http.address import checked_headers, proxy_of, without_user
from pytest_rageval.http.attempts import AttemptCount, RetryRule, make_attempts
from pytest_rageval.http.call_limit import CallLimit, Limits
from pytest_rageval.http.call_tally import note_masked
from pytest_rageval.http.connection import HttpConnection, ProxyAddress, Reply, StaleConnection, send_to_app
from pytest_rageval.http.failures import (
    REPEATABLE_STATUS,
    RETRIED_STATUS,
    HttpFailure,
    is_refusal,
    kind_of_status,
    longest_wait,
)
from pytest_rageval.io.masking import Mask, public_url, secrets_of_headers, secrets_of_url
from pytest_rageval.text import excerpt

HEADERS = {
    "accept": "application/json",
    "accept-encoding": "gzip",
    "connection": "keep-alive",
    "user-agent": "pytest-rageval",
}
"""Sent with every request."""
EXCERPT_BYTES = 16 * 1024
"""Bytes read of a refusal's body."""
MOST_ADDRESSES = 64
"""Addresses whose headers and masks are cached."""
_JSON = json_.JSONEncoder(allow_nan=False)


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A reply with status 2xx: header names in lower case, the body decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    attempts: int = 1
    """Number of times the request was sent, including retries and replaced connections."""


class SlottedClient:
    """An HTTP client with at most `slots` requests at a time; belongs to one event loop.

    A request that the server refuses as one too many is sent again in a later turn of its limit.

    timeout    seconds for one attempt as a whole; a request with its retries and the waits between them takes at most
               `timeout` × (`retries` + 1), without its waits for a turn
    retries    further attempts after a connection failure, 502, 503 or 504; nothing else that failed is sent twice
    max_bytes  the largest body accepted, counted after decompression
    headers    sent with every request; likely credentials among them are masked in replies and messages
    app        an ASGI application in this process to call in place of the network
    backoff    seconds before the first retry, doubled for each further one, with as much again of jitter
    is_repeatable  requests may safely be processed twice: 408, 409, 425, 500, time-outs and broken connections are
               retried too
    status_in  returns the status that a reply means, from its own and its body: some servers hide an error in a 200
    named      name of `timeout` in messages: the setting behind it
    limit_of   returns the limit of a server, which others share; in place of one of its own with `slots`
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
        named: str = "timeout",
        limit_of: Callable[[Hashable], CallLimit] | None = None,
    ) -> None:
        self.max_bytes = max_bytes
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff
        self._named = named
        self._retried_status = REPEATABLE_STATUS if is_repeatable else RETRIED_STATUS
        self._retried_kinds = frozenset({"connect", "timeout", "reset"} if is_repeatable else {"connect"})
        self._status_in = status_in or (lambda status, _: status)
        self._headers = checked_headers(headers or {})
        self._app = app
        # Without others to share it with, the limit holds for all servers of this client together.
        own_limit = CallLimit(Limits(slots))
        self._limit_of = limit_of or (lambda _: own_limit)
        self._idle: dict[tuple[str, str | None], list[HttpConnection]] = {}
        # Headers, name and mask of an address are made once: a target sends all its requests to one or two.
        self._address = lru_cache(MOST_ADDRESSES)(self._address_of)
        self._proxy_of = lru_cache(MOST_ADDRESSES)(proxy_of)

    async def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        files: Mapping[str, tuple[str | None, bytes]] | None = None,
        tokens: int = 0,
        before_send: Callable[[], None] | None = None,
        watch: Callable[[bytes], None] | None = None,
    ) -> HttpReply:
        """Send one request, with `json` or a form with `files` as its body; raise HttpFailure for a status but 2xx.

        tokens       what it counts for in a limit on tokens
        before_send  called each time before it is sent; what it raises ends the call
        watch        called with each piece of the reply's body as it arrives
        """
        to = self._address(method, url)
        content: list[tuple[bytes, bytes]] = []
        body = b""
        if json is not None:
            content.append((b"content-type", b"application/json"))
            body = _JSON.encode(json).encode()
        elif files is not None:
            # httpx writes the form: its boundary and the escapes of file names are easy to get wrong.
            form = httpx.Request(method, to.url, files=files)
            content.append((b"content-type", form.headers["content-type"].encode()))
            body = form.read()
        # A server may answer 411 to a POST that states no length.
        if body or method not in ("GET", "HEAD"):
            content.append((b"content-length", b"%d" % len(body)))
        rule = RetryRule(self.retries, self.backoff, self.timeout)
        call = _Call(to, (*to.fields, *content), body, rule, AttemptCount(), watch)
        return await make_attempts(
            lambda seconds_left: self._attempt(call, seconds_left),
            self._limit_of(to.server),
            rule,
            to.name,
            tokens=tokens,
            before_send=before_send,
            count=call.count,
        )

    async def aclose(self) -> None:
        """Close the idle connections; call it when no request is under way."""
        while self._idle:
            _, connections = self._idle.popitem()
            for connection in connections:
                await connection.aclose()

    def _address_of(self, method: str, url: str) -> _Address:
        """Build the parts that all requests to this URL share."""
        address, user = without_user(url)
        headers = {**user, **self._headers}
        origin = f"{address.scheme}://{address.netloc.decode('ascii', 'replace')}"
        proxy = None if self._app is not None else self._proxy_of(origin)
        fields = httpx.Request(method, address, headers={**HEADERS, **headers}).headers.raw
        # httpx states a length of 0 here; each call states that of its own body.
        fields = [field for field in fields if field[0].lower() != b"content-length"]
        target = address.raw_path
        name = f"{method} {public_url(url)}"
        through = None
        if proxy is not None:
            proxy_url, basic = without_user(proxy)
            user_fields = [(b"proxy-authorization", value.encode()) for value in basic.values()]
            through = ProxyAddress(proxy_url, user_fields)
            if address.scheme == "http":  # without a tunnel, the proxy reads the whole URL and the user in each request
                target = str(address.copy_with(fragment=None)).encode()
                fields = [*fields, *user_fields]
            name += f" through the proxy {public_url(proxy)}"
        mask = Mask([*secrets_of_headers(headers), *secrets_of_url(url), *secrets_of_url(proxy or "")])
        return _Address(
            method=method,
            url=address,
            target=target,
            fields=fields,
            proxy=through,
            place=(origin, proxy),
            # Two applications in this process may share an address: each has a limit of its own.
            server=origin if self._app is None else (origin, id(self._app)),
            mask=mask,
            name=name,
        )

    async def _attempt(self, call: _Call, seconds_left: float) -> HttpReply:
        timeout = call.rule.timeout
        seconds = min(timeout, seconds_left)
        name = call.to.name
        try:
            # For the attempt as a whole: with a limit for each read, a trickling body would never end.
            async with asyncio.timeout(seconds):
                incoming = await self._send(call)
                try:
                    return await self._reply(call, incoming, seconds_left)
                finally:
                    incoming.close()
        except TimeoutError:
            limit = f"{timeout:.6g} s ({self._named})"
            # A hundredth of tolerance: the first attempt begins a moment after its time.
            if seconds <= 0.99 * timeout:
                total = f"timeout × (retries + 1) = {call.rule.seconds:.6g} s"
                limit = f"{max(seconds, 0):.3g} s (what was left of {total})"
            is_retryable = "timeout" in self._retried_kinds
            message = f"{name}: no complete reply within {limit}"
            raise HttpFailure("timeout", message, is_retryable=is_retryable) from None
        except HttpFailure as failure:
            failure.args = (call.to.mask.text(f"{name}: {failure}"),)
            failure.is_retryable |= failure.status is None and failure.kind in self._retried_kinds
            raise

    async def _send(self, call: _Call) -> Reply:
        """Send the call and return the head of the reply; if an idle connection was closed, retry once on a new one.

        A server may close an idle connection while the request is on its way: that is not the request's fault.
        """
        to = call.to
        if self._app is not None:
            return await send_to_app(self._app, to.method, to.url, call.fields, call.body)
        connection = self._idle_connection(to.place)
        if connection is not None:
            try:
                return await self._send_through(connection, call)
            except StaleConnection:
                call.count.add()
        return await self._send_through(await HttpConnection.open(to.url, to.proxy), call)

    def _idle_connection(self, place: tuple[str, str | None]) -> HttpConnection | None:
        # Last in, first out: few connections stay open when few requests are in flight.
        idle = self._idle.get(place, [])
        while idle:
            connection = idle.pop()
            if connection.is_usable():
                return connection
        return None

    async def _send_through(self, connection: HttpConnection, call: _Call) -> Reply:
        to = call.to
        reply = await connection.send(to.method, to.target, call.fields, call.body)

        def close() -> None:
            if connection.is_free_after(reply):
                self._idle.setdefault(to.place, []).append(connection)

        reply.close = close
        return reply

    async def _reply(self, call: _Call, incoming: Reply, seconds_left: float) -> HttpReply:
        """Read a reply; raise HttpFailure, whose message lacks the request's name and is not masked."""
        status = incoming.status
        excess = incoming.excess
        if excess is not None:
            raise HttpFailure("too_large", excess, status=status)
        headers = incoming.headers
        if 300 <= status < 400:
            # Followed, a POST would become a GET, and credentials would go to another host.
            to = excerpt(call.to.mask.text(public_url(headers.get("location", ""))))
            message = f"status {status}, redirect to {to or 'nowhere'}; not followed, give that URL instead"
            raise HttpFailure("invalid_response", message, status=status)
        if not 200 <= status < 300:
            beginning = b""
            # The status counts, also where the body that explains it breaks off.
            with suppress(ValueError, HttpFailure):
                beginning, _ = await incoming.body(EXCERPT_BYTES)
            raise self._error_of(call, incoming, beginning, self._status_in(status, beginning), seconds_left)
        try:
            body, is_whole = await incoming.body(self.max_bytes, call.watch)
        except ValueError as error:
            raise HttpFailure("invalid_response", str(error), status=status) from None
        if not is_whole:
            raise HttpFailure("too_large", f"the reply is larger than {self.max_bytes:,} bytes", status=status)
        meant = self._status_in(status, body)
        if meant != status:
            raise self._error_of(call, incoming, body, meant, seconds_left)
        # A server may repeat the credentials that it was sent, as an echo or in an error.
        public_body = call.to.mask.bytes(body)
        if public_body != body:
            note_masked()
        return HttpReply(status, headers, public_body, call.count.sent)

    def _error_of(
        self, call: _Call, incoming: Reply, beginning: bytes, status: int, seconds_left: float
    ) -> HttpFailure:
        """Build the failure for a reply that means status 400 or above, with when to retry."""
        body = call.to.mask.text(beginning[:EXCERPT_BYTES].decode("utf-8", "replace"))
        message = f"status {incoming.status}"
        if incoming.status < 300:
            message += f" with an error of status {status}"
        shown = excerpt(body)
        if shown:
            message += f": {shown}"
        kind = kind_of_status(status)
        retry_after = longest_wait(incoming.headers.get("retry-after", ""))
        if is_refusal(status, retry_after, body):
            return HttpFailure(kind, message, status=status, is_refusal=True, retry_after=retry_after, body=body)
        is_retryable = status in self._retried_status
        # To wait would only end in a time-out, which says less.
        if is_retryable and retry_after is not None and retry_after > seconds_left:
            left = max(0.0, seconds_left)
            message += f"; asks to wait {retry_after:.6g} s, more than the {left:.3g} s left for this request"
            kind = "rate_limited"
            is_retryable = False
        return HttpFailure(kind, message, status=status, is_retryable=is_retryable, retry_after=retry_after, body=body)


class _Address(NamedTuple):
    """The constant parts of requests with one method and URL.

    place   where connections lead to
    server  whose limit holds
    """

    method: str
    url: httpx.URL
    target: bytes
    fields: Sequence[tuple[bytes, bytes]]
    proxy: ProxyAddress | None
    place: tuple[str, str | None]
    server: Hashable
    mask: Mask
    name: str


@dataclass(slots=True)
class _Call:
    """One request, with the number of times that it was sent."""

    to: _Address
    fields: Sequence[tuple[bytes, bytes]]
    body: bytes
    rule: RetryRule
    count: AttemptCount
    watch: Callable[[bytes], None] | None = None
