"""The guard in front of all pages: host, size, origin, session and login of each request, headers of each response."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pytest_rageval.text import short
from pytest_rageval.web.sessions import API, TokenCheck
from pytest_rageval.web.site import MEGABYTE, WebLimits, WebSettings

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Other sites get no referrer; with `no-referrer` browsers would send `Origin: null` with our own forms too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
NO_CACHE = "private, no-cache"
"""Browsers reload a page each time, except when going back."""


def with_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response, with our defaults for those it does not set."""
    names = {name.lower() for name, _ in headers}
    ours = HEADERS | {"Cache-Control": NO_CACHE}
    added = ((name.lower().encode(), value.encode()) for name, value in ours.items())
    return [*headers, *(pair for pair in added if pair[0] not in names)]


LINGER_S = 1.0
"""Seconds for which a body that is refused for its size is still read."""
SAFE_METHODS = frozenset({"GET", "HEAD"})
METHODS = SAFE_METHODS | {"POST"}
LOGIN = "/login"
ASSETS = "/assets/"
"""The login page and the assets need no token."""
TOKEN = "token"  # noqa: S105 because it is the name of a parameter
"""The token in an address becomes a cookie and is removed, so that no history, bookmark or referrer has it."""
PAGES_WITH_EFFECTS = frozenset({"/label/cases"})
"""Pages that query systems on opening: links from other sites must not open them."""
SLOWEST = 1_000
"""Minimum bytes per second of a body on average: a byte now and then would hold a connection for days."""
CLOSE = {"Connection": "close"}
"""Close the connection, because the rest of the body stays unread on it."""
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?")


class Guard:
    """ASGI middleware that checks each request; `refused` renders the page of a refused one.

    Starlette's TrustedHostMiddleware knows no addresses of networks, so hosts are checked here.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: WebSettings,
        tokens: TokenCheck,
        refusal_page: Callable[[Request, HTTPException], Response],
    ) -> None:
        self.app = app
        self.settings = settings
        self.tokens = tokens
        self.refusal_page = refusal_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = with_headers(list(message.get("headers", ())))
            await send(message)

        app: ASGIApp = self.app
        try:
            self._check(scope, headers)
            app = self._login(scope, headers) or self.app
        except HTTPException as refusal:
            app = self.refusal_page(Request(scope), refusal)
        if scope["method"] == "HEAD":  # pages handle it as GET; the server drops the body
            scope = {**scope, "method": "GET"}
        await app(scope, bounded_receive(receive, headers, self.settings.limits), send_guarded)

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Raise HTTPException for a request with a wrong host, method, body length or origin."""
        settings = self.settings
        host = headers.get("host", "")
        names = (settings.host, *settings.host_names)
        # A name that an attacker's DNS points at this machine would read the pages (DNS rebinding).
        if len(headers.getlist("host")) != 1 or not is_own_host(host, names, is_loopback=settings.is_loopback):
            raise HTTPException(421, "This app is not called so; --host-name NAME allows a name.")
        if "transfer-encoding" in headers and "content-length" in headers:  # a proxy may use the other one (smuggling)
            raise HTTPException(400, "A body has one length.", CLOSE)
        method = scope["method"]
        if method not in METHODS:
            raise HTTPException(405, "Only GET and POST are understood here.", {"Allow": ", ".join(sorted(METHODS))})
        if self._is_foreign(scope, headers, host):
            raise HTTPException(403, "This request comes from a page of somebody else.")

    def _is_foreign(self, scope: Scope, headers: Headers, host: str) -> bool:
        """Return True if a page of another site sends the request; it may hold plain links to pages of ours."""
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site")
        if scope["method"] not in SAFE_METHODS:
            return not is_own_origin(scope["scheme"], host, origin, site)
        # Another port of this host is another app, though browsers call it the same site.
        if site not in ("cross-site", "same-site"):
            return False
        is_link = headers.get("sec-fetch-mode") == "navigate"
        has_effects = scope["path"] in PAGES_WITH_EFFECTS and TOKEN not in Request(scope).query_params
        return not is_link or has_effects

    def _login(self, scope: Scope, headers: Headers) -> Response | None:
        """Return a redirect to the login, or away from a token's address; None to pass."""
        request = Request(scope)
        address = scope["client"][0] if scope.get("client") else ""
        is_safe = scope["method"] in SAFE_METHODS
        has_given_token = self.tokens.is_given(scope["session"])
        if is_safe and TOKEN in request.query_params:
            to = str(request.url.remove_query_params(TOKEN))
            if not self.tokens.accepts(request.query_params[TOKEN], address):
                return RedirectResponse(to, 303)
            if not has_given_token:
                self.tokens.log_in(scope["session"])
            # A redirect would still count as cross-site navigation; a refresh is our own navigation.
            return HTMLResponse(headers={"Refresh": f"0; url={to}", "Referrer-Policy": "no-referrer"})
        is_open = scope["path"] == LOGIN or scope["path"].startswith(ASSETS)
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.tokens.accepts(given.strip(), address):
            request.state.is_program = True
            return None
        if self.tokens.token is None or has_given_token or is_open:
            return None
        if is_safe and not kind and headers.get("hx-request") is None and not scope["path"].startswith(API):
            return RedirectResponse(LOGIN, 303)
        raise HTTPException(401, "Log in first: this app asks for its token.", {"WWW-Authenticate": "Bearer"})


def bounded_receive(receive: Receive, headers: Headers, limits: WebLimits) -> Receive:
    """Return a `receive` that rejects a body that is too large (413) or too slow (408)."""
    is_upload = headers.get("content-type", "").lower().startswith("multipart/form-data")
    most = limits.upload_bytes if is_upload else limits.form_bytes
    announced = headers.get("content-length", "0")
    size = separators = 0
    is_over = False
    began: float | None = None

    async def bounded() -> Message:
        nonlocal size, separators, is_over, began
        if is_over:  # only the end of the connection is left to wait for
            return await receive()
        # Refused by its announced size, before 64 MB are received in vain.
        if announced.isdecimal() and int(announced) > most:
            raise await _too_large(most, receive)
        began = began or time.monotonic()
        # A body may take longer the more of it has come: a large upload over a slow line is no attack.
        left = began + limits.body_seconds + size / SLOWEST - time.monotonic()
        try:
            message = await asyncio.wait_for(receive(), max(0.0, min(left, limits.body_seconds)))
        except TimeoutError:
            raise HTTPException(408, f"This came too slowly: {size:,} bytes until now.", CLOSE) from None
        is_over = not message.get("more_body", False)
        piece = message.get("body", b"")
        size += len(piece)
        if size > most:
            raise await _too_large(most, receive)
        separators += piece.count(b"&")  # the form parser does not count blank fields: millions take it seconds
        if not is_upload and separators > limits.fields:
            raise HTTPException(400, f"This form has more than {limits.fields:,} fields.", CLOSE)
        return message

    return bounded


async def _too_large(most: int, receive: Receive) -> HTTPException:
    """Read on for a moment: who still sends when the connection ends is told of a broken one, not of the size."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while (await receive()).get("more_body", False):
                pass
    return HTTPException(413, f"This is larger than {short(most / MEGABYTE)} MB, the most that is taken.", CLOSE)


def host_name(header: str) -> str | None:
    """Return the lower-case name of a Host header without its port; None if invalid."""
    match = _HOST.fullmatch(header)
    return match["name"].strip("[]").rstrip(".").lower() if match else None


def is_own_host(header: str, names: Iterable[str], *, is_loopback: bool) -> bool:
    """Return True if the Host header names this app.

    IP addresses cannot be rebound by DNS: a loopback app accepts loopback addresses, any other app all. Ports are
    ignored, because a forwarded port differs.
    """
    name = host_name(header)
    if name is None:
        return False
    if name == "localhost" or name in {own.lower() for own in names}:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or not is_loopback


def is_own_origin(scheme: str, host: str, origin: str | None, fetch_site: str | None) -> bool:
    """Return True if a request with these headers may write: neither is foreign. Programs send neither."""
    if fetch_site is not None and fetch_site != "same-origin":
        return False
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
        is_bare = not (parts.path or parts.query or parts.fragment or parts.username)
    except ValueError:
        return False
    # A proxy may use https in front of our http: a page of the same host is ours either way.
    return is_bare and parts.scheme in {scheme, "https"} and parts.netloc.lower() == host.lower()
