"""A real HTTP server on loopback that misbehaves as told: refuses, hangs, drips, cuts off, lies.

    with FaultServer(status(503), gives({"answer": "yes"})) as server:
        ...ask server.url...
    assert len(server.requests) == 2

Each request gets the next behaviour, and the last one again and again. Behaviours are coroutine functions over a
`Connection`; those below cover what goes wrong in practice.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import pytest

from pytest_rageval.http.client import HttpReply, SlottedClient
from pytest_rageval.http.failures import HttpFailure


@dataclass(frozen=True)
class Received:
    """One request as it came in; `at` is the server's clock in seconds since the epoch."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Connection:
    """What a behaviour writes to."""

    writer: asyncio.StreamWriter
    request: Received
    is_over: bool = False

    async def send(self, raw: bytes) -> None:
        self.writer.write(raw)
        await self.writer.drain()

    async def reply(self, status: int, body: bytes, **headers: str) -> None:
        named = {"content_type": "application/json", "content_length": str(len(body))} | headers
        lines = [
            f"HTTP/1.1 {status} Whatever",
            *(f"{name.replace('_', '-')}: {value}" for name, value in named.items()),
        ]
        await self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def cut(self) -> None:
        """End the connection with a reset instead of a farewell."""
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        self.is_over = True

    def close(self) -> None:
        self.writer.close()
        self.is_over = True


Behaviour = Callable[[Connection], Awaitable[None]]


@dataclass
class FaultServer:
    """Runs in a thread of its own between `with` and its end."""

    behaviours: tuple[Behaviour, ...]
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    url: str = ""

    def __init__(self, *behaviours: Behaviour) -> None:
        self.behaviours = behaviours
        self.requests = []
        self.connections = 0

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(60)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    async def _start(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _stop(self) -> None:
        for _ in range(5):  # what was accepted a moment ago gets to its first line, and so to its end
            await asyncio.sleep(0)
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                request = await _read(reader)
                behaviour = self.behaviours[min(len(self.requests), len(self.behaviours) - 1)]
                self.requests.append(request)
                connection = Connection(writer, request)
                await behaviour(connection)
                if connection.is_over:
                    break
        writer.transport.abort() if task.cancelling() else writer.close()
        try:
            await writer.wait_closed()
        except ConnectionError:
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
        self._tasks.discard(task)


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if value}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(method, path, headers, body, time.time())


def closed_port() -> int:
    """A port of this machine where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def gives(data: Any, **headers: str) -> Behaviour:
    """Status 200 with JSON."""
    return status(200, json.dumps(data).encode(), **headers)


def status(code: int, body: bytes = b"", **headers: str) -> Behaviour:
    """Any status and body; header names with underscores for hyphens."""

    async def behave(connection: Connection) -> None:
        await connection.reply(code, body, **headers)

    return behave


def sends_raw(raw: bytes) -> Behaviour:
    """These bytes, then the end of the connection."""

    async def behave(connection: Connection) -> None:
        await connection.send(raw)
        connection.close()

    return behave


async def resets(connection: Connection) -> None:
    """A reset in place of a reply."""
    connection.cut()


async def resets_mid_body(connection: Connection) -> None:
    """Half a body, then a reset."""
    await connection.send(b'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"answer": "')
    await asyncio.sleep(0.05)
    connection.cut()


async def truncates(connection: Connection) -> None:
    """Half a body, then a farewell."""
    await connection.send(b'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"answer": "')
    connection.close()


async def hangs(connection: Connection) -> None:
    """Nothing at all."""
    await asyncio.sleep(3600)


async def drips(connection: Connection) -> None:
    """One byte now and then, for ever: each single read is in time."""
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
    while True:
        await connection.send(b" ")
        await asyncio.sleep(0.05)


async def sends_chunks_for_ever(connection: Connection) -> None:
    """A body without end."""
    await connection.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    chunk = b"x" * 65536
    while True:
        await connection.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))


def gzipped(body: bytes, **headers: str) -> Behaviour:
    """The body, compressed."""
    return status(200, gzip.compress(body), content_encoding="gzip", **headers)


def gzip_bomb(megabytes: int, layers: int = 1) -> Behaviour:
    """Zeros, a thousandfold smaller on the wire for each layer."""

    async def explodes(connection: Connection) -> None:
        packed = b"\0" * 2**20 * megabytes
        for _ in range(layers):
            packed = gzip.compress(packed)
        await connection.reply(200, packed, content_encoding=", ".join(["gzip"] * layers))

    return explodes


class GitHub:
    """Behaviour of a server: comments by id, and the tokens that were sent."""

    def __init__(self, *comments: str) -> None:
        self.comments = dict(enumerate(comments, 1))
        self.refusal: int | None = None
        self.tokens: set[str] = set()

    async def __call__(self, connection: Connection) -> None:
        request = connection.request
        self.tokens.add(request.headers.get("authorization", ""))
        if self.refusal is not None:
            await connection.reply(self.refusal, b'{"message": "Resource not accessible by integration"}')
            return
        await connection.reply(200, json.dumps(self._reply(request.method, request.path, request.body)).encode())

    def _reply(self, method: str, path: str, body: bytes) -> Any:
        if method == "GET":
            page = int(re.search(r"[?&]page=(\d+)", path)[1])  # type: ignore[index]
            listed = [{"id": number, "body": text} for number, text in self.comments.items()]
            return listed[100 * (page - 1) : 100 * page]
        number = int(path.rpartition("/")[2]) if method == "PATCH" else len(self.comments) + 1
        self.comments[number] = json.loads(body)["body"]
        return {"html_url": f"https://github.com/o/r/pull/7#issuecomment-{number}"}


T = TypeVar("T")
YES = {"answer": "yes"}
QUICK = 0.01


def with_client(use: Callable[[SlottedClient], Coroutine[Any, Any, T]], **options: Any) -> T:
    async def run() -> T:
        client = SlottedClient(**{"backoff": QUICK, "timeout": 20.0} | options)
        try:
            return await use(client)
        finally:
            await client.aclose()

    return asyncio.run(run())


def get(url: str, **options: Any) -> HttpReply:
    return with_client(lambda client: client.request("GET", url), **options)


def failure_of(url: str, **options: Any) -> HttpFailure:
    with pytest.raises(HttpFailure) as caught:
        get(url, **options)
    assert "\n" not in str(caught.value)
    return caught.value
