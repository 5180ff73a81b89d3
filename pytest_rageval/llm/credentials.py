"""Which key of the environment goes with a question to a judge, and to whom?"""

from __future__ import annotations

import os
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from pytest_rageval.errors import SettingsError

OPENAI_KEY = "OPENAI_API_KEY"
ANTHROPIC_KEY = "ANTHROPIC_API_KEY"
TOKEN = "RAGEVAL_JUDGE_TOKEN"  # noqa: S105 - the name of the variable, not what it holds
"""For servers other than the provider's own host; comes before the provider's key."""


def bearer(address: str, variable: str, home: str, *, is_needed: bool = True) -> tuple[dict[str, str], str]:
    """The key as a bearer token, where there is one, and the variable that it is taken from."""
    key, name = _key_for(address, variable, home, is_needed=is_needed)
    return ({"authorization": f"Bearer {key}"} if key else {}), name


def x_api_key(address: str, variable: str, home: str, *, is_needed: bool = True) -> tuple[dict[str, str], str]:
    """The same as the header `x-api-key`."""
    key, name = _key_for(address, variable, home, is_needed=is_needed)
    return ({"x-api-key": key} if key else {}), name


def _key_for(address: str, variable: str, home: str, *, is_needed: bool) -> tuple[str | None, str]:
    """What to send, and the variable that it comes from; SettingsError where the provider's own host would get nothing.

    A server that the user has named gets the token that was set for it, else the provider's key, as clients of these
    APIs do everywhere; but nothing goes over the open network without TLS.
    """
    parts = urlsplit(address)
    if (parts.scheme, parts.hostname, parts.port or 443) == ("https", urlsplit(home).hostname, 443):
        if (key := os.environ.get(variable)) or not is_needed:
            return key or None, variable
        raise SettingsError(f"the environment variable {variable} is not set; {urlsplit(home).hostname} needs it")
    if parts.scheme != "https" and not is_own(address):
        return None, TOKEN
    for name in (TOKEN, variable):
        if key := os.environ.get(name):
            return key, name
    return None, TOKEN


@lru_cache(maxsize=64)
def is_own(url: str) -> bool:
    """Is the server on this machine or in a private network?"""
    host = urlsplit(url).hostname or ""
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal", ".lan"))
    return address.is_private or address.is_loopback or address.is_link_local
