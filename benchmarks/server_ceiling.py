"""Could the loopback server be what is measured? Its cost a request, asked by a raw client that does nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from harness import Figure, Row, Scale
from loopback import loopback

REQUESTS = 20_000
CONNECTIONS = 16
ROUNDS = 3
BODY = b'{"question": "How is the pump primed?", "k": 5}'


def rows(scale: Scale) -> Iterator[Row]:
    """CPU of the server, and time between replies with both processes at work."""
    requests = scale.cases(REQUESTS)
    cpu_us, wall_us = [], []
    with loopback() as server:
        for _ in range(scale.rounds(ROUNDS)):
            server.begin()
            started = time.perf_counter()
            asyncio.run(_ask_all(server.url, requests))
            wall_us.append((time.perf_counter() - started) / (2 * requests) * 1e6)
            cpu_us.append(server.seen(requests).cpu_s / (2 * requests) * 1e6)
    yield Row("loopback server: its own CPU a request", "µs", Figure.of(cpu_us))
    yield Row(f"loopback server: a request, {CONNECTIONS} connections, raw client", "µs", Figure.of(wall_us))


async def _ask_all(url: str, requests: int) -> None:
    host, port = url.removeprefix("http://").split(":")
    shares = [len(range(first, requests, CONNECTIONS)) for first in range(CONNECTIONS)]
    await asyncio.gather(*(_ask(host, int(port), share) for share in shares))


async def _ask(host: str, port: int, times: int) -> None:
    """Ask and judge this many times over one connection."""
    reader, writer = await asyncio.open_connection(host, port)
    for _ in range(times):
        for path in (b"/api/v1/ask?debug=true", b"/judge"):
            writer.write(b"POST %s HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" % (path, len(BODY), BODY))
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
    writer.close()
    await writer.wait_closed()
