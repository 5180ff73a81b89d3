"""The app's token: compared with what is given, and guessed at by nobody for long."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import threading
import time
from collections import OrderedDict, deque

from starlette.exceptions import HTTPException

FAILURES, WITHIN_S = 20, 60.0
"""Wrong tokens of one address after which no more are looked at for a while: guessing must take for ever."""
MOST_ADDRESSES = 10_000
"""That are remembered; those whose last failure is longest ago go."""
UNGUESSABLE = 32
"""Characters of a token from which on nobody counts failures: they would only let strangers lock the owner out."""


def new_token() -> str:
    """Return a random token for one run of the server; it is kept in memory alone."""
    return secrets.token_urlsafe(UNGUESSABLE)


class TokenCheck:
    """The token that a browser or a program must give; None: nobody is asked."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        self._failures = LoginFailures()

    def accepts(self, given: str, address: str) -> bool:
        """Compare in constant time; HTTPException once this address has given too many wrong ones."""
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
    """When wrong tokens were given, by address: who guesses keeps nobody else out."""

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
    """What one person has: an IPv4 address, or of IPv6 the 64 bits that a provider gives to a household."""
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(number, ipaddress.IPv4Address):
        return str(number)
    return str(number.ipv4_mapped or ipaddress.ip_network((number, 64), strict=False))
