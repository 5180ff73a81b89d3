"""The guard in front of all pages: host, size, origin, session and login of each request, headers of each response."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pytest_rageval.web.security.body_limit import CLOSE, bounded_receive
from pytest_rageval.web.security.headers import with_headers
from pytest_rageval.web.security.host import is_own_host
from pytest_rageval.web.security.origin import SAFE_METHODS, is_own_origin
from pytest_rageval.web.security.seal import Seal
from pytest_rageval.web.security.session import BrowserSession, session_of
from pytest_rageval.web.settings import WebSettings

METHODS = SAFE_METHODS | {"POST"}
LOGIN = "/login"
ASSETS = "/assets/"
"""The two things that a browser may see before it has given the token."""


class Guard:
    """An ASGI app around another; what it refuses never reaches a page. `refused` renders why."""

    def __init__(
        self, app: ASGIApp, settings: WebSettings, seal: Seal, refused: Callable[[Request, HTTPException], Response]
    ) -> None:
        self.app = app
        self.settings = settings
        self.seal = seal
        self.refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        session = session_of(headers, scope["scheme"], self.seal, self.settings.token)
        scope.setdefault("state", {})["session"] = session

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = with_headers(list(message.get("headers", ())))
                if session.is_new and b"set-cookie" not in dict(sent):
                    sent.append((b"set-cookie", session.set_cookie().encode()))
                message["headers"] = sent
            await send(message)

        refusal = self._refusal(scope, headers, session)
        app: ASGIApp = self.app
        if isinstance(refusal, HTTPException):
            app = self.refused(Request(scope), refusal)
        elif refusal is not None:
            app = refusal
        if scope["method"] == "HEAD":  # pages are asked as by GET; the server leaves out what stands below the headers
            scope = {**scope, "method": "GET"}
        await app(scope, bounded_receive(receive, headers, self.settings.limits), send_guarded)

    def _refusal(self, scope: Scope, headers: Headers, session: BrowserSession) -> HTTPException | Response | None:
        settings = self.settings
        host = headers.get("host", "")
        names = (settings.host, *settings.host_names)
        if len(headers.getlist("host")) != 1 or not is_own_host(host, names, is_loopback=settings.is_loopback):
            return HTTPException(421, "This app is not called so; --host-name NAME allows a name.")
        if "transfer-encoding" in headers and "content-length" in headers:  # a proxy may take the other one for true
            return HTTPException(400, "A body has one length.", CLOSE)
        method = scope["method"]
        if method not in METHODS:
            return HTTPException(405, "Only GET and POST are understood here.", {"Allow": ", ".join(sorted(METHODS))})
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if method not in SAFE_METHODS and not is_own_origin(scope["scheme"], host, origin, site):
            return HTTPException(403, "This request comes from a page of somebody else.")
        is_open = scope["path"] == LOGIN or scope["path"].startswith(ASSETS)
        if settings.token is not None and not session.has_given_token and not is_open:
            if method in SAFE_METHODS and headers.get("hx-request") is None:
                return RedirectResponse(LOGIN, 303)
            return HTTPException(401, "Log in first: this app asks for its token.")
        return None
