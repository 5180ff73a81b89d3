"""How is a server asked, and what may go wrong on the way? The only module that imports httpx.

`SlottedClient` sends requests for targets and judges alike: a total deadline an attempt, retries only where they are
safe, a limit on what a reply may hold, and no credential in anything that can be read afterwards.
"""

from __future__ import annotations

import asyncio
import functools
import json as json_
import os
import re
import socket
import ssl
import urllib.request
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import unquote

import httpx

from pytest_rageval.errors import SettingsError
from pytest_rageval.http.retries import REPEATABLE_STATUS, RETRIED_STATUS, HttpFailure, seconds_of, try_again
from pytest_rageval.io.masking import Mask, public_url, secrets_of_headers, secrets_of_url
from pytest_rageval.text import printable

__all__ = ["HttpFailure", "HttpReply", "SlottedClient", "endpoint", "probe", "public_url"]

CONNECT_TIMEOUT = 10.0
"""Seconds for one connection to come about."""
EXCERPT = 200
"""Characters of a reply that a message quotes."""
_EXCERPT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A reply with status 2xx: header names in lower case, the body decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class SlottedClient:
    """Sends requests, at most `slots` at a time; belongs to one event loop.

    timeout    seconds for one attempt as a whole; a request with its retries and waits takes at most
               `timeout` × (`retries` + 1)
    retries    further attempts after a connection failure, 429, 502, 503 or 504; nothing else is sent twice
    max_bytes  the largest body accepted, counted after decompression
    headers    sent with every request; what looks like a credential among them is masked in replies and messages
    app        an ASGI application of this process to ask in place of the network
    backoff    seconds before the first retry, doubled for each further one, with as much again of jitter
    is_repeatable  a request that was worked on may be sent again at no harm: 500, 529, time-outs and connections that
               break off are retried too
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
    ) -> None:
        self.timeout = timeout
        self.retries = retries
        self.max_bytes = max_bytes
        self.backoff = backoff
        self._retried_status = REPEATABLE_STATUS if is_repeatable else RETRIED_STATUS
        self._retried_kinds = frozenset({"connect", "timeout", "reset"} if is_repeatable else {"connect"})
        self._headers = _checked(headers or {})
        self._transport = None if app is None else httpx.ASGITransport(app=app)
        self._free = asyncio.Semaphore(slots)
        self._idle: list[httpx.AsyncClient] = []

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
        address = _address(url)
        sent = address.headers | self._headers | _checked(headers or {})
        mask = Mask([*secrets_of_headers(sent), *address.secrets])
        body = None
        if json is not None:
            sent["content-type"] = "application/json"
            body = json_.dumps(json, allow_nan=False).encode()
        async with self._slot() as client:
            request = client.build_request(method, address.url, content=body, headers=sent)
            request.url = _LoggedURL(request.url)
            deadline = asyncio.get_running_loop().time() + self.timeout * (self.retries + 1)
            call = _Call(client, request, f"{method} {address.shown}", mask, deadline)
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
        while self._idle:
            await self._idle.pop().aclose()

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[httpx.AsyncClient]:
        async with self._free:
            # The last used comes first, so that few connections are kept warm when little is in flight.
            client = self._idle.pop() if self._idle else self._new_client()
            try:
                yield client
            finally:
                self._idle.append(client)

    def _new_client(self) -> httpx.AsyncClient:
        # One client a slot: a shared pool scans all of its connections at each request (1,426 µs of CPU a request at 64
        # in flight, 507 µs this way). Cookies are refused: cases would hear of each other through them.
        return httpx.AsyncClient(
            verify=_tls(),
            transport=self._transport,
            headers={"accept": "application/json", "accept-encoding": "gzip", "user-agent": "pytest-rageval"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            follow_redirects=False,
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT),
        )

    async def _attempt(self, call: _Call, before: Callable[[], Awaitable[None]] | None = None) -> HttpReply:
        if before is not None:
            await before()
        seconds = min(self.timeout, call.seconds_left())
        try:
            # httpx counts time by single reads, so a body that drips would never end.
            async with asyncio.timeout(seconds):
                response = await call.client.send(call.request, stream=True)
                try:
                    return await self._reply(call, response)
                finally:
                    await response.aclose()
        except TimeoutError:
            message = f"{call.name}: no complete reply within {max(seconds, 0):.3g} s"
            raise HttpFailure("timeout", message, is_retryable="timeout" in self._retried_kinds) from None
        except httpx.TransportError as error:
            kind = _kind_of(error)
            message = call.mask.text(f"{call.name}: {_reason(error)}")
            raise HttpFailure(kind, message, is_retryable=kind in self._retried_kinds) from None

    async def _reply(self, call: _Call, response: httpx.Response) -> HttpReply:
        status = response.status_code
        if 300 <= status < 400:
            to = _excerpt(call.mask.text(public_url(response.headers.get("location", ""))))
            message = (
                f"{call.name}: status {status}, redirect to {to or 'nowhere'}; not followed, give that URL instead"
            )
            raise HttpFailure("invalid_response", message, status=status)
        if not 200 <= status < 300:
            raise _refusal(call, response, await _beginning(response), self._retried_status)
        try:
            body, is_whole = await _decompressed(response, self.max_bytes)
        except ValueError as error:
            raise HttpFailure("invalid_response", f"{call.name}: {error}", status=status) from None
        if not is_whole:
            message = f"{call.name}: the reply is larger than {self.max_bytes:,} bytes"
            raise HttpFailure("too_large", message, status=status)
        return HttpReply(status, dict(response.headers), call.mask.bytes(body))


@dataclass(frozen=True, slots=True)
class _Call:
    """One request under way: how it is named in messages, what is masked in them, and when its time is over."""

    client: httpx.AsyncClient
    request: httpx.Request
    name: str
    mask: Mask
    deadline: float

    def seconds_left(self) -> float:
        return self.deadline - asyncio.get_running_loop().time()


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────


def _refusal(call: _Call, response: httpx.Response, beginning: bytes, retried: frozenset[int]) -> HttpFailure:
    """A status of 400 or more as a failure, with whether and when to try again."""
    status, asked = response.status_code, response.headers.get("retry-after")
    said = _excerpt(call.mask.text(beginning.decode("utf-8", "replace")))
    message = f"{call.name}: status {status}" + (f": {said}" if said else "")
    is_retryable = status in retried
    retry_after = seconds_of(asked) if is_retryable and asked is not None else None
    left = max(0.0, call.seconds_left())
    if retry_after is not None and retry_after > left:
        message += f"; asks to wait {retry_after:.6g} s, more than the {left:.3g} s left for this request"
        return HttpFailure("rate_limited", message, status=status, retry_after=retry_after)
    kind = "rate_limited" if status == 429 else "http_4xx" if status < 500 else "http_5xx"
    return HttpFailure(kind, message, status=status, is_retryable=is_retryable, retry_after=retry_after)


async def _decompressed(response: httpx.Response, limit: int) -> tuple[bytes, bool]:
    """The body, and whether it is whole; reading ends where it passes the limit. ValueError for a bad encoding.

    httpx would inflate each network chunk at once, a thousandfold and once more for each further encoding named.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise ValueError(f"content-encoding {_excerpt(encoding)!r} was not asked for; only gzip is accepted")
    inflate = _Gunzip() if encoding.endswith("gzip") else None
    body = bytearray()
    async for raw in response.aiter_raw():
        body += inflate.some(raw, limit + 1 - len(body)) if inflate else raw
        if len(body) > limit:
            return bytes(body[:limit]), False
    if inflate and inflate.is_cut:
        raise ValueError("the gzip body ends before its end")
    return bytes(body), True


class _Gunzip:
    """Inflates piece by piece, and no more of it than there is room for."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self._has_begun = False

    @property
    def is_cut(self) -> bool:
        return self._has_begun and not self._stream.eof

    def some(self, raw: bytes, room: int) -> bytes:
        """At most `room` (≥ 1) bytes; what is left behind then does not matter, the reply is too large."""
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


async def _beginning(response: httpx.Response) -> bytes:
    """As much of a refusal's body as a message may quote; nothing where it cannot be read."""
    try:
        return (await _decompressed(response, _EXCERPT_BYTES))[0]
    except (ValueError, httpx.TransportError):
        return b""


def _kind_of(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        return "connect"
    if isinstance(error, httpx.TimeoutException):
        return "timeout"
    if isinstance(error, httpx.RemoteProtocolError) and not re.search("disconnected|closed", str(error)):
        return "invalid_response"
    return "reset"


def _reason(error: httpx.TransportError) -> str:
    """What happened, in the words of the operating system where it has some."""
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {CONNECT_TIMEOUT:g} s"
    deepest: BaseException | None = error
    while deepest is not None:
        while isinstance(deepest, BaseExceptionGroup):
            deepest = deepest.exceptions[0]
        if isinstance(deepest, OSError) and deepest.strerror:
            return _os_words(deepest)
        deepest = deepest.__cause__ or deepest.__context__
    return _excerpt(str(error)) or type(error).__name__


def _os_words(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS certificate not accepted: {_excerpt(error.verify_message)}"
    if error.errno and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)  # asyncio has texts of its own there
    return _excerpt(error.strerror or str(error)) or type(error).__name__


def _excerpt(text: str) -> str:
    line = printable(" ".join(text[: 4 * EXCERPT].split()))
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"


# ── addresses ─────────────────────────────────────────────────────────────────────────────────────────────────


def endpoint(url: str, path: str, **query: str) -> str:
    """The address of `path` below a base URL, whose own path and query are kept; SettingsError if it is no HTTP URL."""
    shown = printable(public_url(url))
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise SettingsError(f"{shown!r} is not a URL: {error}") from None
    if base.scheme not in ("http", "https") or not base.host:
        raise SettingsError(f"{shown!r} is not an HTTP URL; write it as in http://localhost:8080")
    return str(base.copy_with(path=base.path.rstrip("/") + path, fragment=None).copy_merge_params(query))


@dataclass(frozen=True, slots=True)
class _Address:
    """A URL without its user and password, which go into a header; and as it may be shown."""

    url: httpx.URL
    shown: str
    headers: dict[str, str]
    secrets: tuple[str, ...]


@functools.lru_cache(maxsize=64)
def _address(url: str) -> _Address:
    parsed = httpx.URL(url)
    if not parsed.userinfo:
        return _Address(parsed, public_url(url), {}, tuple(secrets_of_url(url)))
    basic = b64encode(unquote(parsed.userinfo.decode()).encode()).decode()
    headers = {"authorization": f"Basic {basic}"}
    return _Address(parsed.copy_with(userinfo=b""), public_url(url), headers, tuple(secrets_of_url(url)))


class _LoggedURL(httpx.URL):
    """httpx writes the URL of each request to its log: there, too, without credentials."""

    def __str__(self) -> str:
        return public_url(super().__str__())


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers in lower case, if they can be sent; a value is never quoted, it may be a secret."""
    for name, value in headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise SettingsError(f"header {printable(name)!r} is not a header name")
        if not (value.isascii() and value.isprintable()):
            raise SettingsError(f"header {name}: its value holds characters that cannot be sent; use printable ASCII")
    return {name.lower(): value for name, value in headers.items()}


@functools.cache
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()  # 75 ms, so one for all


# ── before the first request ──────────────────────────────────────────────────────────────────────────────────


def probe(url: str, timeout: float = 5.0) -> str | None:
    """Try one TCP connection (with TLS for https) to the URL's host: None if it comes about, else why not, in one line.

    Where a proxy of the environment stands between, nothing is tried.
    """
    parsed = httpx.URL(url)
    port = parsed.port or (443 if parsed.scheme == "https" else 80)
    if parsed.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(parsed.host):
        return None
    try:
        with socket.create_connection((parsed.host, port), timeout) as connection:
            if parsed.scheme == "https":
                with _tls().wrap_socket(connection, server_hostname=parsed.host):
                    return None
    except TimeoutError:
        return f"cannot connect to {public_url(url)}: no connection within {timeout:g} s"
    except OSError as error:
        return f"cannot connect to {public_url(url)}: {_os_words(error)}"
    except UnicodeError:
        return f"cannot connect to {public_url(url)}: the host name is not valid"
    return None
