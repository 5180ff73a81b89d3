"""A small HTTP/1.1 server for one ASGI app on one machine: what the demo needs, and politeness about the rest."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from pytest_rageval.demo.app import AsgiApp, Message
from pytest_rageval.demo.parameters import BODY_BYTES

HEAD_BYTES = 32 * 1024
IDLE_S = 75.0
BODY_S = 30.0

_Headers = list[tuple[bytes, bytes]]


class _Request(NamedTuple):
    method: str
    target: str
    headers: _Headers
    keep_alive: bool

    def header(self, name: bytes) -> bytes | None:
        """All values of a header, joined; None where it is absent."""
        values = [value for key, value in self.headers if key == name]
        return b", ".join(values) if values else None


class _RefusedError(Exception):
    """A request that is answered with an error and the end of the connection."""

    def __init__(self, status: HTTPStatus, problem: str) -> None:
        super().__init__(problem)
        self.status = status


async def serve(app: AsgiApp, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serves until cancelled; `started` gets the URL once the port is open. Raises OSError where it cannot be."""
    server = await asyncio.start_server(
        lambda reader, writer: _converse(app, host, reader, writer), host, port, limit=HEAD_BYTES
    )
    try:
        bound = server.sockets[0].getsockname()
        started(f"http://{f'[{bound[0]}]' if ':' in bound[0] else bound[0]}:{bound[1]}")
        await asyncio.Event().wait()
    finally:
        server.close()


async def _converse(app: AsgiApp, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection: requests one after the other until either side ends it."""
    try:
        while True:
            request = await _head(reader)
            _check_sender(request, host)
            body = await _body(request, reader, writer)
            await _answer(app, request, body, writer)
            if not request.keep_alive:
                break
    except _RefusedError as refused:
        _write(writer, refused.status, [], f"{refused}\n".encode(), False)
    except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
        pass  # The client left, or said nothing for too long: there is nobody to tell.
    except asyncio.CancelledError:
        pass  # The server ends. Letting this through would make some Python versions log a traceback for each client.
    finally:
        writer.close()


async def _head(reader: asyncio.StreamReader) -> _Request:
    try:
        raw = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), IDLE_S)
    except asyncio.LimitOverrunError:
        raise _RefusedError(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the request head is larger than {HEAD_BYTES:,} bytes"
        ) from None
    first, *lines = raw[:-4].split(b"\r\n")
    words = first.decode("latin-1").split(" ")
    if len(words) != 3 or not words[1].startswith("/") or words[2] not in ("HTTP/1.0", "HTTP/1.1"):
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "the request line is not HTTP/1.1")
    headers: _Headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "a header line is not name: value")
        headers.append((name.lower(), value.strip()))
    closing = any(name == b"connection" and b"close" in value.lower() for name, value in headers)
    return _Request(words[0], words[1], headers, words[2] == "HTTP/1.1" and not closing)


def _check_sender(request: _Request, bound_host: str) -> None:
    """Refuse what a page of another origin sends, under its own name for this machine (DNS rebinding) or from afar."""
    named = (request.header(b"host") or b"").decode("latin-1").lower()
    if named and not _is_name_of_ours(named, bound_host.lower()):
        problem = (
            f"{named[:80]!a} is no name of this server; use its IP address, localhost or the --host that was given"
        )
        raise _RefusedError(HTTPStatus.MISDIRECTED_REQUEST, problem)
    origin = request.header(b"origin")
    if origin is not None and origin.decode("latin-1").lower() != f"http://{named}":
        shown = origin[:80].decode("latin-1")
        raise _RefusedError(HTTPStatus.FORBIDDEN, f"pages of the origin {shown!a} may not ask this server")


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
        # A name without a point is of this network: nobody outside can let it mean this machine.
        return "." not in name and bound_host not in ("localhost", "127.0.0.1", "::1")
    return True


async def _body(request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    if request.header(b"transfer-encoding") is not None:
        raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "chunked bodies are not read here; send a Content-Length")
    length = request.header(b"content-length") or b"0"
    if not length.isdigit():
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
    if len(length) > 9 or int(length) > BODY_BYTES:
        raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {BODY_BYTES:,} bytes")
    if (request.header(b"expect") or b"").lower() == b"100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return await asyncio.wait_for(reader.readexactly(int(length)), BODY_S)


async def _answer(app: AsgiApp, request: _Request, body: bytes, writer: asyncio.StreamWriter) -> None:
    path, _, query = request.target.partition("?")
    connection: Message = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),
        "query_string": query.encode("latin-1"),
        "headers": request.headers,
    }
    incoming: list[Message] = [{"type": "http.request", "body": body}]
    outgoing: list[Message] = []

    async def receive() -> Message:
        return incoming.pop() if incoming else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        outgoing.append(message)

    try:
        await app(connection, receive, send)
    except Exception as error:  # noqa: BLE001 - a fault of the app costs one request, not the server; it is said in full
        print(f"ERROR: {request.method} {path!a}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        problem = HTTPStatus.INTERNAL_SERVER_ERROR
        _write(writer, problem, [], f"{problem.phrase}\n".encode(), request.keep_alive)
    else:
        start, *rest = outgoing
        content = b"".join(message.get("body", b"") for message in rest)
        shown = b"" if request.method == "HEAD" else content
        _write(writer, HTTPStatus(start["status"]), start["headers"], shown, request.keep_alive)
    await writer.drain()


def _write(writer: asyncio.StreamWriter, status: HTTPStatus, headers: _Headers, body: bytes, keep_alive: bool) -> None:
    sent = list(headers) or [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
    ]
    sent.append((b"connection", b"keep-alive" if keep_alive else b"close"))
    lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode(), *(name + b": " + value for name, value in sent)]
    writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
