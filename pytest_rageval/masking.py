"""What of a URL, a header or a reply may be written down? Credentials are masked before anything else sees them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

MASK = "***"
# Shorter ones cannot be told from words: masking "test" wherever it stands would change what a system answered.
SHORTEST_SECRET = 8
_SECRET_NAME = re.compile(r"auth|key|token|secret|passw|cookie|credential|session|signature|^sig$", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Does a header, a parameter or a query key of this name hold a credential?"""
    return _SECRET_NAME.search(name) is not None


def public_url(url: str) -> str:
    """The URL as it may be shown: without user, password and fragment, with credentials in its query masked."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return re.sub(r"//[^/]*@", "//", url.partition("?")[0].partition("#")[0])
    shown = parts.query
    if any(_SECRET_NAME.search(name) for name, _ in query):
        shown = "&".join(f"{name}={MASK if _SECRET_NAME.search(name) else value}" for name, value in query)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, shown, ""))


def public_target(spec: str) -> str:
    """The spelling of a target as it may be shown: the URL in it, if there is one, as `public_url` shows it."""
    url = re.search("[A-Za-z][A-Za-z0-9+-]*://", spec)
    return spec if url is None else spec[: url.start()] + public_url(spec[url.start() :])


def secrets_of_url(url: str) -> list[str]:
    """The password and the credentials in the query."""
    parts = urlsplit(url)
    found = [value for name, value in parse_qsl(parts.query) if _SECRET_NAME.search(name)]
    password = parts.netloc.rpartition("@")[0].partition(":")[2]
    return [*found, password, unquote(password)]


def secrets_of_headers(headers: Mapping[str, str]) -> list[str]:
    """The values of headers that by their name hold credentials, and the bare token of `Bearer TOKEN`."""
    found = []
    for name, value in headers.items():
        if _SECRET_NAME.search(name):
            found += [value, value.partition(" ")[2]]
    return found


class Mask:
    """Replaces known credentials wherever a server echoes them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        whole = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        whole |= {secret.replace("/", "\\/") for secret in whole}  # as some write "/" in JSON
        self._secrets = sorted(whole, key=lambda secret: (-len(secret), secret))

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def bytes(self, body: bytes) -> bytes:
        for secret in self._secrets:
            body = body.replace(secret.encode(), MASK.encode())
        return body
