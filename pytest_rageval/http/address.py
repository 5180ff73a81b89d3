"""Addresses of requests: URLs completed, taken apart and shown without credentials; headers that can be sent."""

from __future__ import annotations

import functools
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import httpx

from pytest_rageval.errors import SettingsError
from pytest_rageval.http.connecting import proxy_of
from pytest_rageval.io.masking import public_url, secrets_of_url
from pytest_rageval.text import printable


def endpoint(url: str, path: str, **query: str) -> str:
    """The address of `path` below a base URL, whose own path and query are kept.

    SettingsError if it is no HTTP URL, or the environment names a proxy for it that cannot be used.
    """
    shown = printable(public_url(url))
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise SettingsError(f"{shown!r} is not a URL: {error}") from None
    if base.scheme not in ("http", "https") or not base.host:
        raise SettingsError(f"{shown!r} is not an HTTP URL; write it as in http://localhost:8080")
    proxy_of(url)  # one that cannot be used is said before anything is asked
    return str(base.copy_with(path=base.path.rstrip("/") + path, fragment=None).copy_merge_params(query))


@dataclass(frozen=True, slots=True)
class Address:
    """A URL without its user and password, which go into a header; and as it may be shown."""

    url: httpx.URL
    shown: str
    headers: dict[str, str]
    secrets: tuple[str, ...]


@functools.lru_cache(maxsize=64)
def address_of(url: str) -> Address:
    parsed = httpx.URL(url)
    if not parsed.userinfo:
        return Address(parsed, public_url(url), {}, tuple(secrets_of_url(url)))
    basic = b64encode(unquote(parsed.userinfo.decode()).encode()).decode()
    headers = {"authorization": f"Basic {basic}"}
    return Address(parsed.copy_with(userinfo=b""), public_url(url), headers, tuple(secrets_of_url(url)))


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers in lower case, if they can be sent; a value is never quoted, it may be a secret."""
    for name, value in headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise SettingsError(f"header {printable(name)!r} is not a header name")
        if not (value.isascii() and value.isprintable()):
            raise SettingsError(f"header {name}: its value holds characters that cannot be sent; use printable ASCII")
    return {name.lower(): value for name, value in headers.items()}
