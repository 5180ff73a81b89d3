"""How connections come about: TLS, proxies of the environment, and a probe before the first request."""

from __future__ import annotations

import functools
import socket
import ssl
import urllib.request

import httpx

from pytest_rageval.http.failures import os_words
from pytest_rageval.io.masking import public_url


def probe(url: str, timeout: float = 5.0) -> str | None:
    """Try one TCP connection (with TLS for https) to the URL's host: None if it comes about, else why not, in one line.

    Where a proxy of the environment stands between, nothing is tried.
    """
    parsed = httpx.URL(url)
    port = parsed.port or (443 if parsed.scheme == "https" else 80)
    if parsed.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(parsed.host):
        return None
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


@functools.cache
def tls_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()  # 75 ms, so one for all
