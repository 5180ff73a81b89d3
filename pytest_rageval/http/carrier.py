"""Requests as they are sent and replies as they begin, whichever library carries them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import httpx

HEADERS = {
    "accept": "application/json",
    "accept-encoding": "gzip",
    "connection": "keep-alive",
    "user-agent": "pytest-rageval",
}
"""Sent with every request."""
KEPT_IDLE = 4.0
"""Seconds for which a connection is kept for the next request; many servers close after 5."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request; names of headers in lower case."""

    method: str
    url: httpx.URL
    headers: Mapping[str, str]
    body: bytes | None


class Incoming(Protocol):
    """The beginning of a reply. `fields` are its headers as they came, `pieces` its body as it comes, still packed."""

    @property
    def status(self) -> int: ...

    @property
    def fields(self) -> Sequence[tuple[bytes, bytes]]: ...

    def pieces(self) -> AsyncIterator[bytes]:
        """Raises CarrierFailure where the body breaks off."""

    async def aclose(self) -> None:
        """Give the connection back, or end it where the body was not read to its end."""


class Carrier(Protocol):
    """Carries requests from one event loop, as many at a time as are asked of it."""

    async def send(self, request: Outgoing, *, is_again: bool = False) -> Incoming:
        """Raises CarrierFailure. `is_again`: on a new connection, since a kept one was closed."""

    async def aclose(self) -> None:
        """Close the connections that are idle."""


class CarrierFailure(Exception):
    """No reply, or a part of one. The message says what happened, in the system's words where it has some.

    kind       connect, reset, too_large or invalid_response
    was_stale  a kept connection turned out to be closed: nothing was wrong with the request
    """

    def __init__(self, kind: str, reason: str, *, was_stale: bool = False) -> None:
        super().__init__(reason)
        self.kind = kind
        self.was_stale = was_stale


def headers_of(fields: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their names in lower case; several of a name are joined by commas."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name, value = raw_name.decode("latin-1").lower(), _text(raw_value)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def values_of(name: bytes, fields: Sequence[tuple[bytes, bytes]]) -> list[str]:
    """Each value of the headers of one name, which is given in lower case."""
    return [_text(value) for field, value in fields if field.lower() == name]


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
