"""The `Host` of a request: a name that other people's pages cannot make their own (DNS rebinding)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?")


def host_name(header: str) -> str | None:
    """The name or address of a Host header, in small letters without its port; None where it is no host."""
    match = _HOST.fullmatch(header)
    return match["name"].strip("[]").rstrip(".").lower() if match else None


def is_own_host(header: str, names: Iterable[str], *, is_loopback: bool) -> bool:
    """Is the app called by a name of its own?

    Numbers cannot be rebound to another address: where only this machine can reach the app, those of this machine are
    right, else all. Ports are no matter: a forwarded one differs.
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
