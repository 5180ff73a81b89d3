"""Sessions and the app's token: signed cookies and form tokens, and a limit on wrong tokens."""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.exceptions import HTTPException

from pytest_rageval.errors import SettingsError

KEY_FILE = "web.key"
KEY_BYTES = 32
NOT_FOR_GIT = """# Versions of agents and datasets are for git; the app's key, its index and what it works on are not.
/web.key
/open-*.html
/jobs/
/uploads/
"""


@dataclass(frozen=True)
class Seal:
    """A signing key that survives a restart, so that open forms can still be submitted."""

    key: bytes

    def of(self, purpose: str, *parts: str) -> str:
        """Return the HMAC of these parts in hexadecimal, which needs the key."""
        text = "\0".join((purpose, *parts))
        return hmac.new(self.key, text.encode(), sha256).hexdigest()

    def verifies(self, given: str, purpose: str, *parts: str) -> bool:
        """Return True if `given` is the HMAC of these parts. Compare in constant time."""
        return hmac.compare_digest(given.encode(), self.of(purpose, *parts).encode())


def open_seal(data: Path) -> Seal:
    """Return the key of this data folder. Create it if missing, readable by its owner only and ignored by git."""
    path = data / KEY_FILE
    try:
        data.mkdir(parents=True, exist_ok=True)
        ignore = data / ".gitignore"
        if not ignore.exists():
            ignore.write_text(NOT_FOR_GIT, encoding="utf-8")
        try:
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
    return Seal(key)


COOKIE = "rageval"
ID_BYTES = 24
DAY = 24 * 60 * 60
_ID = re.compile(r"[0-9a-f]{48}")


@dataclass(frozen=True)
class BrowserSession:
    """The anonymous session of a browser or program.

    is_new           the request has no valid cookie
    has_given_token  this browser has given the app's token
    is_program       the token is in a header, which other sites cannot send: forms need no form token
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
        """Return the token that the forms of this session carry."""
        return self.seal.of("form", self.id)

    def is_form_token(self, given: str) -> bool:
        return self.is_program or self.seal.verifies(given, "form", self.id)

    def renewed(self) -> BrowserSession:
        """Return the session under a new id."""
        return replace(self, id=secrets.token_hex(ID_BYTES))

    def set_cookie(self, *, token: str | None = None) -> str:
        """Return the Set-Cookie header of the session, with the proof that it has given this token.

        SameSite is Lax, so that a link in a terminal or a message opens without another login. Every write is a form
        with a token of its own, sent from our own pages.
        """
        mark = self.seal.of("login", self.id, token) if token is not None else ""
        secure = "; Secure" if self.is_secure else ""
        return f"{self.cookie}={self.id}.{mark}; Path=/; HttpOnly; SameSite=Lax; Max-Age={30 * DAY}{secure}"


def session_of(headers: Mapping[str, str], scheme: str, seal: Seal, token: str | None) -> BrowserSession:
    """Return the session of a request, or a new one if it has none."""
    name = cookie_name(headers.get("host", ""), scheme)
    id, _, mark = _value(headers.get("cookie", ""), name).partition(".")
    is_secure = scheme == "https"
    if not _ID.fullmatch(id):
        return BrowserSession(secrets.token_hex(ID_BYTES), name, is_secure, True, False, seal)
    has_given_token = token is not None and seal.verifies(mark, "login", id, token)
    return BrowserSession(id, name, is_secure, False, has_given_token, seal)


def cookie_name(host: str, scheme: str) -> str:
    """Return the name of the cookie. It has the port, because browsers send cookies to every port of a host."""
    port = host.rpartition(":")[2] if re.search(r":\d+$", host) else ""
    name = f"{COOKIE}_{port}" if port else COOKIE
    return f"__Host-{name}" if scheme == "https" else name


def _value(header: str, name: str) -> str:
    try:
        cookie = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return cookie.value if cookie else ""


FAILURES, WITHIN_S = 20, 60.0
"""Wrong tokens of one address, and seconds, after which its tokens are refused for a while: this limits guessing."""
MOST_ADDRESSES = 10_000
"""Maximum number of addresses with failures; the one with the oldest last failure is dropped."""
UNGUESSABLE = 32
"""Characters from which a token needs no limit on failures: a limit would only let strangers lock the owner out."""


def new_token() -> str:
    """Return a random token for one run of the server, kept in memory only."""
    return secrets.token_urlsafe(UNGUESSABLE)


class TokenCheck:
    """The check of the token that a browser or program must give; None requires no token."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        self._failures = LoginFailures()

    def accepts(self, given: str, address: str) -> bool:
        """Compare in constant time; raise HTTPException once this address has given too many wrong tokens."""
        if self.token is None:
            return False
        is_guessable = len(self.token) < UNGUESSABLE
        if is_guessable and self._failures.are_too_many(address):
            raise HTTPException(429, "Too many wrong tokens; wait a minute.", {"Retry-After": str(int(WITHIN_S))})
        is_right = hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self.token.encode())
        if not is_right:
            self._failures.add(address)
        return is_right


class LoginFailures:
    """The times of wrong tokens by network, so that guessing locks out no other client."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def are_too_many(self, address: str) -> bool:
        with self._lock:
            times = self._times.get(network_of(address))
            return times is not None and len(times) == FAILURES and time.monotonic() - times[0] < WITHIN_S

    def add(self, address: str) -> None:
        with self._lock:
            network = network_of(address)
            self._times.setdefault(network, deque(maxlen=FAILURES)).append(time.monotonic())
            self._times.move_to_end(network)
            while len(self._times) > MOST_ADDRESSES:
                self._times.popitem(last=False)


def network_of(address: str) -> str:
    """Return the network of one client: the IPv4 address, or the IPv6 /64 that a provider assigns to a household."""
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(number, ipaddress.IPv4Address):
        return str(number)
    return str(number.ipv4_mapped or ipaddress.ip_network((number, 64), strict=False))
