"""The server: uvicorn with one process on one socket, and the browser that is opened on it."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from html import escape
from pathlib import Path
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_bytes
from pytest_rageval.web.site import WebSettings

IDLE_S = 15
"""Seconds that an idle connection stays open for another request."""
LARGEST_HEAD = 32 * 1024
END_S = 3
"""Seconds for requests to end when the server stops."""


def open_socket(settings: WebSettings) -> socket.socket:
    """Return the listening socket, or raise SettingsError if it cannot be opened."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (")[0]
        place = f"--host {settings.host} --port {settings.port}"
        raise SettingsError(f"{place}: {why}; another --port, or --port 0, may do") from None


def browser_address(listening: socket.socket, settings: WebSettings) -> str:
    """Return the address for a browser on this machine."""
    host = settings.host
    # These mean all addresses of the machine, and lead nowhere in a browser.
    if host in ("0.0.0.0", "::"):  # noqa: S104 compared, not bound
        host = "localhost"
    elif ":" in host:
        host = f"[{host}]"
    port = listening.getsockname()[1]
    return f"http://{host}:{port}/"


def make_server(app: FastAPI, settings: WebSettings) -> uvicorn.Server:
    """Return a server with one worker and no access log: page addresses are private.

    Only the named proxies may set forwarded headers. uvicorn by default trusts every client on this machine, or
    FORWARDED_ALLOW_IPS of an environment that may be meant for another server.
    """
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        loop="asyncio",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=IDLE_S,
        limit_concurrency=settings.limits.connections,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        timeout_graceful_shutdown=END_S,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=[*settings.proxies],
    )
    return uvicorn.Server(config)


def serve_web(
    app: FastAPI,
    settings: WebSettings,
    say: Callable[[str], None],
    *,
    is_opened: bool,
    is_token_shown: bool,
    page: str = "/",
) -> None:
    """Serve until Ctrl-C.

    is_token_shown  print the address with the token; not needed if the user has chosen the token
    page            the page to open; its address is printed unless it is the first page
    """
    with open_socket(settings) as listening, ExitStack() as undone:
        undone.callback(app.state.label_desk.close)
        root = browser_address(listening, settings)
        shown_token = settings.token if is_token_shown else None
        first = _with_token(root, shown_token)
        say(f"rageval web: {first} over {settings.reports} and {settings.data}; Ctrl-C ends it")
        address = root.removesuffix("/") + page
        if page != "/":
            say(_with_token(address, shown_token))
        if is_opened:
            port = listening.getsockname()[1]
            file = settings.data / f"open-{port}.html"
            undone.enter_context(opened_through(file, _with_token(address, settings.token)))
        with suppress(KeyboardInterrupt):  # uvicorn raises it again after all requests have ended
            make_server(app, settings).run(sockets=[listening])


def _with_token(address: str, token: str | None) -> str:
    if not token:
        return address
    separator = "&" if "?" in address else "?"
    return f"{address}{separator}token={quote(token)}"


@contextmanager
def opened_through(file: Path, address: str) -> Iterator[None]:
    """Open an address in a browser, through a file that only its owner can read.

    Other users of the machine can see the arguments of the browser's process, and so the token.
    """
    to = escape(address)
    content = f'<!doctype html><meta http-equiv="refresh" content="0; url={to}"><a href="{to}">rageval web</a>'
    try:
        write_bytes(file, content.encode(), mode=0o600)
        webbrowser.open(file.as_uri())
        yield
    finally:
        file.unlink(missing_ok=True)
