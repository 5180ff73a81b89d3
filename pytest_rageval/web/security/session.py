"""The session of a browser: a random name in a cookie, to which tokens of forms and the login are bound."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http.cookies import CookieError, SimpleCookie

from pytest_rageval.web.security.seal import Seal

COOKIE = "rageval"
ID_BYTES = 24
DAY = 24 * 60 * 60
_ID = re.compile(r"[0-9a-f]{48}")


@dataclass(frozen=True)
class BrowserSession:
    """Who asks: nobody by name, the same browser as before.

    is_new          no cookie came with the request, or one that we did not make
    has_given_token  this browser has given the app's token
    is_program      the token came in a header, which no page of another site can send: forms need no token of theirs
    """

    id: str
    cookie: str
    is_secure: bool
    is_new: bool
    has_given_token: bool
    seal: Seal
    is_program: bool = False

    @property
    def form_token(self) -> str:
        """What forms of this session carry."""
        return self.seal.of("form", self.id)

    def is_form_token(self, given: str) -> bool:
        return self.is_program or self.seal.holds(given, "form", self.id)

    def renewed(self) -> BrowserSession:
        """The same browser under a new name."""
        return replace(self, id=secrets.token_hex(ID_BYTES))

    def set_cookie(self, *, token: str | None = None) -> str:
        """A Set-Cookie header: the session, and that it has given this token.

        Lax, so that an address in a terminal or a message opens without another login; whatever writes is a form, which
        needs a token of its own and comes from our own pages.
        """
        mark = self.seal.of("login", self.id, token) if token is not None else ""
        secure = "; Secure" if self.is_secure else ""
        return f"{self.cookie}={self.id}.{mark}; Path=/; HttpOnly; SameSite=Lax; Max-Age={30 * DAY}{secure}"


def session_of(headers: Mapping[str, str], scheme: str, seal: Seal, token: str | None) -> BrowserSession:
    """The session that a request belongs to; a new one where it has none."""
    name = cookie_name(headers.get("host", ""), scheme)
    id, _, mark = _value(headers.get("cookie", ""), name).partition(".")
    is_secure = scheme == "https"
    if not _ID.fullmatch(id):
        return BrowserSession(secrets.token_hex(ID_BYTES), name, is_secure, True, False, seal)
    has_given_token = token is not None and seal.holds(mark, "login", id, token)
    return BrowserSession(id, name, is_secure, False, has_given_token, seal)


def cookie_name(host: str, scheme: str) -> str:
    """Browsers send cookies to every port of a host: two apps on one machine need two names."""
    port = host.rpartition(":")[2] if re.search(r":\d+$", host) else ""
    name = f"{COOKIE}_{port}" if port else COOKIE
    return f"__Host-{name}" if scheme == "https" else name


def _value(header: str, name: str) -> str:
    try:
        cookie = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return cookie.value if cookie else ""
