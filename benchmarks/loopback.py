"""The loopback server as the benchmarks see it: started, told the latency, asked for figures, ended."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SERVER = Path(__file__).with_name("server.py")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the server saw since `begin`: requests, the most of them at once, seconds from first request to last reply.

    slept_s  what the server waited before its replies, in all
    cpu_s    CPU seconds of the server itself
    """

    asked: int
    judged: int
    most_in_flight: int
    span_s: float
    slept_s: float
    cpu_s: float


class Loopback:
    """A running server."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.url = f"http://127.0.0.1:{port}"

    def begin(self, *, ask_ms: float = 0, judge_ms: float = 0, sigma: float = 0) -> None:
        """Forget what was, reply after these times from now on; with `sigma` log-normal ones of these medians."""
        self._request("POST", f"/begin?ask_ms={ask_ms}&judge_ms={judge_ms}&sigma={sigma}")

    def seen(self, cases: int) -> Seen:
        """The figures since `begin`; RuntimeError unless each of the cases was asked and judged once."""
        told = self._request("GET", "/figures")
        if (told["asked"], told["judged"]) != (cases, cases):
            raise RuntimeError(f"{cases} cases were {told['asked']} times asked and {told['judged']} times judged")
        span = told["last"] - told["first"]
        return Seen(
            int(told["asked"]), int(told["judged"]), int(told["most_in_flight"]), span, told["slept_s"], told["cpu_s"]
        )

    def _request(self, method: str, path: str) -> dict[str, float]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request(method, path)
            told: dict[str, float] = json.loads(connection.getresponse().read())
            return told
        finally:
            connection.close()


@contextmanager
def loopback() -> Iterator[Loopback]:
    """A server for the time of the block."""
    command = [sys.executable, "-X", "utf8", str(SERVER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Loopback(int(process.stdout.readline()))
        finally:
            process.stdin.close()
            process.wait(timeout=30)
