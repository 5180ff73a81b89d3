"""What is asked and judged in the benchmarks? A server on loopback that replies after a fixed time, at little cost.

Run as a process of its own: prints its port, serves until its standard input ends. Every question gets the same answer,
every judgement the same score, so that nothing is computed here. `POST /begin?ask_ms=…&judge_ms=…` starts a
measurement, `GET /figures` tells what happened since. With `sigma` times are log-normal, of that median.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
import time
from dataclasses import asdict, dataclass, field
from urllib.parse import parse_qs, urlsplit

ANSWER = {
    "answer": "The pump is primed by opening valve 3 and turning the crank until water shows [1].",
    "abstained": False,
    "references": [{"chunk_id": "c1", "rel_path": "manual/pump.md", "heading_path": "# Pump > ## Priming"}],
    "debug": {
        "retrieved_chunks": [
            {
                "chunk_id": f"c{rank}",
                "rel_path": "manual/pump.md",
                "heading_path": "# Pump > ## Priming" if rank == 1 else f"# Pump > ## Part {rank}",
                "text": f"The pump is primed by opening valve {2 + rank} and turning the crank until water shows. " * 3,
                "rank": rank,
                "score_vector": round(0.9 - rank / 50, 3),
                "score_final": round(0.9 - rank / 50, 3),
                "token_count": 51,
            }
            for rank in range(1, 6)
        ],
        "latency": {"retrieval_ms": 12.5, "generation_ms": 180.0},
    },
}
"""The answer of a usual RAG system to a usual question: five chunks, one reference, 2.4 kB."""
JUDGEMENT = {"score": 5, "reasoning": "Every claim of the answer stands in context 1."}


def _reply(content: object) -> bytes:
    body = json.dumps(content).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


_ANSWER, _JUDGEMENT, _DONE = _reply(ANSWER), _reply(JUDGEMENT), _reply({})


@dataclass(slots=True)
class Figures:
    """One measurement. Times are seconds of this process's clock; the span is from first request to last reply."""

    ask_s: float = 0.0
    judge_s: float = 0.0
    sigma: float = 0.0
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    slept_s: float = 0.0
    asked: int = 0
    judged: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    first: float | None = None
    last: float = 0.0
    cpu_s: float = 0.0


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, one request at a time, bodies with a length: what the benchmarks' clients send."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0 or len(self._received) < end + 4 + _content_length(self._received, end):
            return
        target = bytes(self._received[: self._received.index(b" HTTP/1.1")]).partition(b" ")[2]
        self._received.clear()
        self._server.handle(target, self)

    def reply(self, content: bytes) -> None:
        """Send a whole reply, unless the other side is gone."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(content)


class Server:
    """Answers after the set time and keeps the figures."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._figures = Figures()

    def handle(self, target: bytes, connection: Connection) -> None:
        """Reply to one whole request, now or when its time has come."""
        now = time.perf_counter()
        figures = self._figures
        if target.startswith(b"/api/v1/ask"):
            figures.asked += 1
            self._reply_in(figures.ask_s, _ANSWER, connection, now)
        elif target.startswith(b"/judge"):
            figures.judged += 1
            self._reply_in(figures.judge_s, _JUDGEMENT, connection, now)
        elif target.startswith(b"/begin"):
            self._figures = _begun(target)
            connection.reply(_DONE)
        else:
            del (told := asdict(figures))["chance"]
            told |= {"cpu_s": time.process_time() - figures.cpu_s}
            connection.reply(_reply(told))

    def _reply_in(self, seconds: float, content: bytes, connection: Connection, now: float) -> None:
        figures = self._figures
        if figures.first is None:
            figures.first = now
        figures.in_flight += 1
        figures.most_in_flight = max(figures.most_in_flight, figures.in_flight)
        if figures.sigma:
            seconds *= math.exp(figures.chance.gauss(0, figures.sigma))
        figures.slept_s += seconds
        if seconds:
            self._loop.call_later(seconds, self._send, content, connection, figures)
        else:
            self._send(content, connection, figures)

    def _send(self, content: bytes, connection: Connection, figures: Figures) -> None:
        connection.reply(content)
        figures.in_flight -= 1
        figures.last = time.perf_counter()


def _begun(target: bytes) -> Figures:
    wanted = parse_qs(urlsplit(target.decode()).query)
    ask_s, judge_s = (float(wanted.get(name, ["0"])[0]) / 1000 for name in ("ask_ms", "judge_ms"))
    sigma = float(wanted.get("sigma", ["0"])[0])
    return Figures(ask_s=ask_s, judge_s=judge_s, sigma=sigma, cpu_s=time.process_time())


def _content_length(received: bytearray, end: int) -> int:
    head = bytes(received[:end]).lower()
    at = head.find(b"\r\ncontent-length:")
    return 0 if at < 0 else int(head[at + 17 :].partition(b"\r\n")[0])


async def main() -> None:
    server = Server()
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Connection(server), "127.0.0.1", 0, backlog=1024)
    print(listening.sockets[0].getsockname()[1], flush=True)
    # Whoever started this process holds its standard input; when that ends, however it ends, so does the server.
    await asyncio.to_thread(sys.stdin.read)
    listening.close()


if __name__ == "__main__":
    asyncio.run(main())
