"""A server behind a token bucket, as the limits of providers are: it refuses what comes too fast and keeps count.

    with BucketServer(Bucket(rate=5, burst=2, retry_after="seconds")) as server:
        ...ask and judge at server.url...
    assert server.asked.broken == 0

It answers questions by the native contract, and speaks as an OpenAI server for judges. Both have a bucket of their own.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Literal, NamedTuple

from fault_server import Connection, FaultServer

NONSENSE = ("soon", "-5", "1e3", "", "Wed, 99 Foo 2025 99:99:99 GMT", "nan")
ANSWER = {
    "answer": "Water boils at 100 degrees at sea level.",
    "abstained": False,
    "debug": {
        "retrieved_chunks": [
            {
                "rel_path": "notes/water.md",
                "heading_path": "# Water > ## Boiling",
                "text": "Water boils at 100 degrees.",
            }
        ]
    },
}
ON_THE_WAY_S = 0.5
"""Seconds in which a request may come that was sent before the refusal of another was read, on a slow machine."""


class Bucket(NamedTuple):
    """Tokens that come back at `rate` a second up to `burst`; what a refusal says of the time to wait."""

    rate: float
    burst: int
    retry_after: Literal["none", "seconds", "date", "nonsense"] = "none"
    latency: float = 0.005


@dataclass
class Tap:
    """One bucket in use.

    served  how often each text was answered
    broken  requests that came before a Retry-After was over
    """

    bucket: Bucket
    served: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    broken: int = 0
    first: float = 0.0
    last: float = 0.0

    def __post_init__(self) -> None:
        self._level = float(self.bucket.burst)
        self._filled_at = time.time()
        self._said_at = self._closed_until = 0.0

    def refusal(self, now: float) -> str | None:
        """The Retry-After of a refused request, perhaps empty; None if there is a token for it."""
        self.first = self.first or now
        if self._said_at + ON_THE_WAY_S < now < self._closed_until:
            self.broken += 1
        self._level = min(float(self.bucket.burst), self._level + self.bucket.rate * (now - self._filled_at))
        self._filled_at = now
        if self._level >= 1:
            self._level -= 1
            return None
        self.refused += 1
        return self._words((1 - self._level) / self.bucket.rate, now)

    def _words(self, seconds: float, now: float) -> str:
        kind = self.bucket.retry_after
        if kind == "none":
            return ""
        if kind == "nonsense":
            return random.choice(NONSENSE)
        until = now + math.ceil(seconds)
        if kind == "date":
            until = math.ceil(now + seconds)
        if until > self._closed_until:
            self._said_at = now
            self._closed_until = until
        return formatdate(until, usegmt=True) if kind == "date" else str(math.ceil(seconds))


class BucketServer(FaultServer):
    """The server; `asked` and `judged` keep count of both kinds of calls."""

    def __init__(self, asked: Bucket, judged: Bucket | None = None) -> None:
        super().__init__(self._behave)
        self.asked = Tap(asked)
        self.judged = Tap(judged or Bucket(10_000, 10_000))

    async def _behave(self, connection: Connection) -> None:
        path = connection.request.path
        if path.endswith("/models"):
            await connection.reply(200, b'{"data": [{"id": "judge-1"}]}')
            return
        is_judge = path.endswith("/chat/completions")
        tap = self.judged if is_judge else self.asked
        wait = tap.refusal(time.time())
        if wait is not None:
            headers = {"retry_after": wait} if wait else {}
            await connection.reply(429, b'{"error": {"message": "slow down"}}', **headers)
            return
        asked = connection.request.json
        text = json.dumps(asked["messages"]) if is_judge else asked["question"]
        tap.served[text] += 1
        await asyncio.sleep(tap.bucket.latency)
        tap.last = time.time()
        await connection.reply(200, json.dumps(_JUDGED if is_judge else ANSWER).encode())


_JUDGED = {
    "model": "judge-1",
    "choices": [
        {
            "message": {"role": "assistant", "content": json.dumps({"score": 5, "reasoning": "It says so."})},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 100, "completion_tokens": 20},
}
