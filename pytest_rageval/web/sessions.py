"""Sessions: signed cookies, the tokens of forms, and the app's token with a limit on wrong ones."""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import time
from collections import Counter
from collections.abc import MutableMapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from pytest_rageval.errors import SettingsError

KEY_FILE = "web.key"
KEY_BYTES = 32
NOT_FOR_GIT = """# Versions of agents and datasets are for git; the app's key and what it works on are not.
/web.key
/open-*.html
/jobs/
/uploads/
/datasets/*/*.open
/datasets/*/*.bak
.*.rageval-tmp
"""


def open_key(data: Path) -> bytes:
    """Return the signing key of this data folder, which survives a restart, so that open forms stay valid.

    Create it if missing, readable by its owner only and ignored by git.
    """
    path = data / KEY_FILE
    try:
        data.mkdir(parents=True, exist_ok=True)
        ignore = data / ".gitignore"
        if not ignore.exists():
            ignore.write_text(NOT_FOR_GIT, encoding="utf-8")
        try:
            # Two servers that start at once must not use two keys: the second one reads the first one's.
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            key = path.read_bytes()
        else:
            key = secrets.token_bytes(KEY_BYTES)
            with os.fdopen(handle, "wb") as file:
                file.write(key)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be kept: {error.strerror}; name another folder with --data") from None
    if len(key) != KEY_BYTES:
        raise SettingsError(f"{path}: {len(key)} bytes, expected {KEY_BYTES}; remove it, and a new one is made")
    return key


MONTH_S = 30 * 24 * 60 * 60
API = "/api/"
"""The beginning of the addresses of the API."""
FORM, LOGIN = "form", "login"
"""The keys of a session: the token of its forms, and the proof that it has given the app's token."""
Session = MutableMapping[str, Any]


class Sessions:
    """ASGI middleware for sessions in signed cookies: bound to the host and HTTPS alone if the request is by HTTPS.

    SameSite is Lax, so that a link in a terminal or a message opens without another login. Every write is a form
    with a token of its own, sent from our own pages. Browsers send cookies to every port of a host, so the name
    tells the apps of different folders apart.
    """

    def __init__(self, app: ASGIApp, key: bytes, data: Path) -> None:
        name = f"rageval_{sha256(str(data).encode()).hexdigest()[:8]}"
        self._plain = SessionMiddleware(app, key.hex(), name, MONTH_S)
        self._secure = SessionMiddleware(app, key.hex(), f"__Host-{name}", MONTH_S, https_only=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        middleware = self._secure if scope.get("scheme") == "https" else self._plain
        await middleware(scope, receive, send)


def form_token(request: Request) -> str:
    """Return the token that the forms of this session carry."""
    token: str = request.session.setdefault(FORM, secrets.token_hex(16))
    return token


def is_form_token(request: Request, given: str) -> bool:
    """Check the token of a form. A program gives the app's token in a header, which other sites cannot send."""
    return is_program(request) or hmac.compare_digest(given.encode(), form_token(request).encode())


def is_program(request: Request) -> bool:
    """Return True if the request has the app's token in its header."""
    return bool(getattr(request.state, "is_program", False))


FAILURES, WITHIN_S = 20, 60.0
"""Wrong tokens of one network in so many seconds after which it is refused."""
UNGUESSABLE = 32
"""Characters from which a token needs no limit on failures: a limit would only let strangers lock the owner out."""


def new_token() -> str:
    """Return a random token for one run of the server, kept in memory only."""
    return secrets.token_urlsafe(UNGUESSABLE)


class TokenCheck:
    """The check of the token that a browser or program must give; None requires no token."""

    def __init__(self, token: str | None, key: bytes) -> None:
        self.token = token
        # A cookie holds this mark and not the token, and another token ends all logins.
        self._mark = hmac.new(key, (token or "").encode(), sha256).hexdigest()
        self._failures = LoginFailures()

    def accepts(self, given: str, address: str) -> bool:
        """Compare in constant time; raise HTTPException after too many wrong tokens."""
        if self.token is None:
            return False
        is_guessable = len(self.token) < UNGUESSABLE
        if is_guessable and self._failures.are_too_many(address):
            raise HTTPException(429, "Too many wrong tokens; wait a minute.", {"Retry-After": str(int(WITHIN_S))})
        is_right = hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self.token.encode())
        if not is_right:
            self._failures.add(address)
        return is_right

    def is_given(self, session: Session) -> bool:
        """Return True if the browser of this session has given the present token."""
        return self.token is not None and hmac.compare_digest(str(session.get(LOGIN, "")), self._mark)

    def log_in(self, session: Session) -> None:
        """Mark a session as logged in, and renew it, so that forms of an earlier one are worthless."""
        session.clear()
        session[LOGIN] = self._mark


class LoginFailures:
    """The wrong tokens of the last minute by network, so that guessing locks out no other client."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._wrong = Counter[str]()

    def are_too_many(self, address: str) -> bool:
        if time.monotonic() - self._since > WITHIN_S:
            self._since = time.monotonic()
            self._wrong.clear()
        return self._wrong[network_of(address)] >= FAILURES

    def add(self, address: str) -> None:
        self._wrong[network_of(address)] += 1


def network_of(address: str) -> str:
    """Return the network of one client: the IPv4 address, or the IPv6 /64 that a provider assigns to a household."""
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(number, ipaddress.IPv4Address):
        return str(number)
    return str(number.ipv4_mapped or ipaddress.ip_network((number, 64), strict=False))
