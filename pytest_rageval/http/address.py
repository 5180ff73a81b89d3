"""Addresses and connections of requests: URLs, headers, proxies of the environment, TLS, a probe."""

from __future__ import annotations

import functools
import os
import re
import socket
import ssl
import urllib.request
from base64 import b64encode
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import unquote

import httpx

from pytest_rageval.errors import SettingsError
from pytest_rageval.http.failures import os_words
from pytest_rageval.io.masking import public_url
from pytest_rageval.text import printable


def endpoint(url: str, path: str, **query: str) -> str:
    """Return the address of `path` below a base URL, keeping the base's own path and query.

    Raise SettingsError if it is no HTTP URL, or if the environment names an unusable proxy for it.
    """
    shown = printable(public_url(url))
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise SettingsError(f"{shown!r} is not a URL: {error}") from None
    if base.scheme not in ("http", "https") or not base.host:
        raise SettingsError(f"{shown!r} is not an HTTP URL; write it as in http://localhost:8080")
    proxy_of(url)  # reports an unusable proxy before the first request
    below = base.copy_with(path=base.path.rstrip("/") + path, fragment=None)
    return str(below.copy_merge_params(query))


def without_user(url: str) -> tuple[httpx.URL, dict[str, str]]:
    """Split a URL into the URL without user and password, and the header that carries them."""
    parsed = httpx.URL(url)
    if not parsed.userinfo:
        return parsed, {}
    basic = b64encode(unquote(parsed.userinfo.decode()).encode()).decode()
    return parsed.copy_with(userinfo=b""), {"authorization": f"Basic {basic}"}


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with lower-case names; raise SettingsError for invalid ones, never quoting a value."""
    for name, value in headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise SettingsError(f"header {printable(name)!r} is not a header name")
        # A line break in a value would be another header.
        if not (value.isascii() and value.isprintable()):
            raise SettingsError(f"header {name}: its value holds characters that cannot be sent; use printable ASCII")
    return {name.lower(): value for name, value in headers.items()}


def probe(url: str, timeout: float = 5.0) -> str | None:
    """Try one TCP connection (with TLS for https) to the URL's host; return None, or why it failed in one line.

    Skip the try and return None if a proxy of the environment applies.
    """
    # The proxy resolves the name: this machine may not know it, and need not reach it.
    if proxy_of(url) is not None:
        return None
    parsed = httpx.URL(url)
    port = parsed.port or (443 if parsed.scheme == "https" else 80)
    try:
        with socket.create_connection((parsed.host, port), timeout) as connection:
            if parsed.scheme == "https":
                with tls_context().wrap_socket(connection, server_hostname=parsed.host):
                    return None
    except TimeoutError:
        return f"cannot connect to {public_url(url)}: no connection within {timeout:g} s"
    except OSError as error:
        return f"cannot connect to {public_url(url)}: {os_words(error)}"
    except UnicodeError:
        return f"cannot connect to {public_url(url)}: the host name is not valid"
    return None


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment sets for this URL's host, or None for a direct connection.

    Hosts on this machine are always direct. Raise SettingsError if the proxy is unusable.
    """
    parsed = httpx.URL(url)
    proxies = urllib.request.getproxies()
    # As curl and httpx read them: HTTP_PROXY before ALL_PROXY, and NO_PROXY before both.
    name = parsed.scheme if proxies.get(parsed.scheme) else "all"
    proxy = proxies.get(name)
    # A proxy elsewhere cannot reach this machine by that name.
    if not proxy or is_loopback(parsed.host):
        return None
    if urllib.request.proxy_bypass(parsed.netloc.decode("ascii", "replace")):
        return None
    # As curl, which takes a proxy without a scheme for one of HTTP.
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    problem = _problem_of_proxy(proxy)
    if problem is not None:
        variable = f"{name}_proxy" if f"{name}_proxy" in os.environ else f"{name.upper()}_PROXY"
        raise SettingsError(
            f"{variable}: the proxy {printable(public_url(proxy))!r} cannot be used: {problem}; set another, or name "
            f"{parsed.host} in NO_PROXY"
        )
    return proxy


def _problem_of_proxy(proxy: str) -> str | None:
    """Return why a proxy cannot be used, or None."""
    try:
        url = httpx.URL(proxy)
    except httpx.InvalidURL as error:
        return f"it is not a URL ({error})"
    if url.scheme not in ("http", "https"):
        return f"{url.scheme!r} is not http or https"
    if not url.host:
        return "it names no host"
    return None


def is_loopback(host: str) -> bool:
    """Return True if the host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Return the one TLS context that all share: making one takes 75 ms."""
    return httpx.create_ssl_context()
