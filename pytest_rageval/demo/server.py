"""The demo's app behind the standard library's HTTP server, for one machine: a plain installation has no other."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from socketserver import ThreadingTCPServer
from urllib.parse import unquote_to_bytes, urlsplit

from pytest_rageval.demo.app import DemoApp
from pytest_rageval.demo.parameters import BODY_BYTES

IDLE_S = 75.0
WAKE_UP_S = 0.5


async def serve(app: DemoApp, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve until cancelled; call `started` with the URL once the port is open. Raises OSError if that fails."""
    server = _Server(app, host, port)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        name, bound = server.server_address[:2]
        started(f"http://{f'[{name!s}]' if ':' in str(name) else str(name)}:{bound}")
        # A signal that comes just before the loop begins to wait is noticed at its next wake-up, an event never.
        while True:  # noqa: ASYNC110
            await asyncio.sleep(WAKE_UP_S)
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingTCPServer):
    """A server with one thread a connection; all of them ask the app on its loop."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 100

    def __init__(self, app: DemoApp, host: str, port: int) -> None:
        self.app, self.host, self.loop = app, host, asyncio.get_running_loop()
        self.address_family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        super().__init__((str(address[0]), int(address[1])), _Connection)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore the error: the client has left."""


class _Connection(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = default_request_version = "HTTP/1.1"
    error_message_format = "%(message)s\n"
    error_content_type = "text/plain; charset=utf-8"
    timeout = IDLE_S
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Log no requests."""

    def handle_expect_100(self) -> bool:
        is_expected = super().handle_expect_100()
        self.wfile.flush()
        return is_expected

    def do_GET(self) -> None:
        if (refusal := self._refusal()) is not None:
            self.send_error(*refusal)
            return
        size = int(self.headers.get("content-length", "0"))
        body = self.rfile.read(size)
        if len(body) < size:
            self.close_connection = True
            return
        path, _, query = self.path.partition("?")
        decoded = unquote_to_bytes(path).decode("utf-8", "replace")
        try:
            asking = self.server.app.respond(self.command, decoded, query, body)
            response = asyncio.run_coroutine_threadsafe(asking, self.server.loop).result()
        except CancelledError:  # the server ends
            self.close_connection = True
            return
        except Exception as error:  # noqa: BLE001  a fault of the app costs one request, not the server
            print(f"ERROR: {self.command} {path!a}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
            return
        self.send_response_only(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("connection", "close" if self.close_connection else "keep-alive")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET  # noqa: N815 as the library names them

    def _refusal(self) -> tuple[HTTPStatus, str] | None:
        """Return why the request is refused: its body, or its origin, a page elsewhere (DNS rebinding)."""
        named, origin = self.headers.get("host", "").lower(), self.headers.get("origin")
        lengths = self.headers.get_all("content-length", ["0"])
        if named and not _is_name_of_ours(named, self.server.host.lower()):
            remedy = "use its IP address, localhost or the --host that was given"
            return HTTPStatus.MISDIRECTED_REQUEST, f"{named[:80]!a} is no name of this server; {remedy}"
        if origin is not None and origin.lower() != f"http://{named}":
            return HTTPStatus.FORBIDDEN, f"pages of the origin {origin[:80]!a} may not ask this server"
        if "transfer-encoding" in self.headers:
            return HTTPStatus.LENGTH_REQUIRED, "chunked bodies are not read here; send a Content-Length"
        if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
            return HTTPStatus.BAD_REQUEST, "Content-Length is not a number"
        if len(lengths[0]) > 9 or int(lengths[0]) > BODY_BYTES:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {BODY_BYTES:,} bytes"
        return None


def _is_name_of_ours(named: str, bound_host: str) -> bool:
    try:
        name = urlsplit(f"//{named}").hostname or ""
    except ValueError:
        return False
    if name == bound_host or name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip_address(name)
    except ValueError:
        # A name without a dot is of this network: no outsider can point it at this machine.
        return "." not in name and bound_host not in ("localhost", "127.0.0.1", "::1")
    return True
