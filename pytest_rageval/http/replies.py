"""Reading of replies: their headers and bodies, the encodings accepted, and limits on both."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Sequence

from pytest_rageval.text import excerpt

MOST_HEADER_FIELDS = 200
MOST_HEADER_BYTES = 64 * 1024
EXCERPT_BYTES = 16 * 1024
"""Of a refusal's body."""
MANY_HEADERS = f"the reply has more than {MOST_HEADER_FIELDS} header fields, or {MOST_HEADER_BYTES:,} bytes of them"


def header_excess(fields: Sequence[tuple[bytes, bytes]]) -> str | None:
    """Why these are too many headers to be read, or None. Nothing is looked up in them before this is known."""
    is_much = (
        len(fields) > MOST_HEADER_FIELDS
        or sum(len(name) + len(value) + 4 for name, value in fields) > MOST_HEADER_BYTES
    )
    return MANY_HEADERS if is_much else None


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


async def bounded_body(pieces: AsyncIterator[bytes], encoding: str, limit: int) -> tuple[bytes, bool]:
    """The body, and whether it is whole; reading ends where it passes the limit. ValueError for a bad encoding.

    Inflated at once, each piece could grow a thousandfold, and once more for each further encoding named.
    """
    encoding = encoding.strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise ValueError(f"content-encoding {excerpt(encoding)!r} was not asked for; only gzip is accepted")
    inflate = _Gunzip() if encoding.endswith("gzip") else None
    body = bytearray()
    async for raw in pieces:
        body += inflate.some(raw, limit + 1 - len(body)) if inflate else raw
        if len(body) > limit:
            return bytes(body[:limit]), False
    if inflate and inflate.is_cut:
        raise ValueError("the gzip body ends before its end")
    return bytes(body), True


class _Gunzip:
    """Inflates piece by piece, and no more of it than there is room for."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self._has_begun = False

    @property
    def is_cut(self) -> bool:
        return self._has_begun and not self._stream.eof

    def some(self, raw: bytes, room: int) -> bytes:
        """At most `room` (≥ 1) bytes; what is left behind then does not matter, the reply is too large."""
        out = bytearray()
        while raw and len(out) < room:
            if self._stream.eof:  # gzip allows several members in a row
                self._stream = zlib.decompressobj(wbits=31)
            self._has_begun = True
            try:
                out += self._stream.decompress(raw, room - len(out))
            except zlib.error as error:
                raise ValueError(f"the body is not the gzip it claims to be: {error}") from None
            raw = self._stream.unused_data
        return bytes(out)
