"""Keys from the environment variables, and the servers that each may go to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from pytest_rageval.errors import SettingsError

JUDGE_TOKEN = "RAGEVAL_JUDGE_TOKEN"  # noqa: S105 - the name of the variable, not what it holds
"""For servers other than the provider's own host; takes precedence over the provider's key."""
TARGET_TOKEN = "RAGEVAL_TARGET_TOKEN"  # noqa: S105 - the name of the variable, not what it holds
"""For the system under test, of any kind."""


class ServerKey(NamedTuple):
    """A key (None: none is sent) and the environment variable that holds it."""

    value: str | None
    variable: str


KeySource = Callable[[str, str | None, str], ServerKey]
"""Returns the key for the address, the variable of the provider's own key, and the provider's own host."""


def judge_key(address: str, variable: str | None, home: str) -> ServerKey:
    """Return the key for a judge or generator; raise SettingsError if the provider's own host would get none.

    A server that the user names gets RAGEVAL_JUDGE_TOKEN, else the provider's key, as with other clients of these
    APIs. No key crosses the open network without TLS.
    """
    if variable is not None and _is_home(address, home):
        return _own_key(variable, home)
    if urlsplit(address).scheme != "https" and not is_own(address):
        return ServerKey(None, JUDGE_TOKEN)
    for name in (JUDGE_TOKEN, variable):
        if name is not None and (value := os.environ.get(name)):
            return ServerKey(value, name)
    return ServerKey(None, JUDGE_TOKEN)


def unneeded_key(*_address_variable_home: str | None) -> ServerKey:
    """Return no key: no request will be sent, or the user's headers hold the key."""
    return ServerKey(None, "")


def target_key(
    address: str, variable: str | None, home: str, environment: Mapping[str, str] | None = None
) -> ServerKey:
    """Return the key for a model under test; raise SettingsError if the provider's own host would get none.

    The provider's key goes only to its own host over TLS: the owner of any other server could read and use it.
    """
    token = _variable(TARGET_TOKEN, environment)
    if token:
        return ServerKey(token, TARGET_TOKEN)
    if variable is not None and _is_home(address, home):
        return _own_key(variable, home, environment)
    return ServerKey(None, TARGET_TOKEN)


def with_target_token(
    headers: Mapping[str, str] | None, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return headers in lower case with the target's token as bearer; their own `authorization` wins."""
    own_headers = {name.lower(): value for name, value in (headers or {}).items()}
    token = _variable(TARGET_TOKEN, environment)
    if not token:
        return own_headers
    return {"authorization": f"Bearer {token}", **own_headers}


def key_header(key: ServerKey, header: str = "") -> tuple[dict[str, str], str]:
    """Return the header with the key (in `header`, else as a bearer token; empty without a key), and its variable."""
    if not key.value:
        return {}, key.variable
    if header:
        return {header: key.value}, key.variable
    return {"authorization": f"Bearer {key.value}"}, key.variable


def _variable(name: str, environment: Mapping[str, str] | None) -> str | None:
    """Return a variable of the environment, by default of this process's."""
    return (os.environ if environment is None else environment).get(name)


def _is_home(address: str, home: str) -> bool:
    parts = urlsplit(address)
    port = parts.port or 443
    return parts.scheme == "https" and port == 443 and parts.hostname == urlsplit(home).hostname


def _own_key(variable: str, home: str, environment: Mapping[str, str] | None = None) -> ServerKey:
    value = _variable(variable, environment)
    if value:
        return ServerKey(value, variable)
    raise SettingsError(f"the environment variable {variable} is not set; {urlsplit(home).hostname} needs it")


@lru_cache(maxsize=64)
def is_own(url: str) -> bool:
    """Return True if the server is on this machine or in a private network."""
    host = urlsplit(url).hostname or ""
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal", ".lan"))
    return address.is_private or address.is_loopback or address.is_link_local
