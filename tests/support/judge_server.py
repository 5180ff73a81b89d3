"""A real HTTP server on loopback that speaks as OpenAI, Anthropic and embedding servers do, and says what it is told.

    with JudgeServer({"score": 4, "reasoning": "…"}) as server:
        ...ask server.url...
    assert len(server.chats) == 1

Each chat request gets the next reply, and the last one again and again. A reply is a dict or list (sent as JSON text),
a string (sent as it is), or a behaviour of `fault_server` (a status, a hang …). Without any, each request gets the
smallest reply that fits the schema it brings, with `score` for its numbers.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fault_server import Behaviour, Connection, FaultServer, Received

Vector = Callable[[str], Sequence[float]]


class JudgeServer(FaultServer):
    """The server. Beside what it is told to reply:

    models         names that GET /v1/models lists
    refuses        name of a parameter → what a 400 says of it: `seed`, `temperature`, `json_schema`, `response_format`…
    usage          tokens in and out of every reply, None for a server that does not tell
    key            the only key that it takes; others get 401
    delay          seconds before each reply
    finish         finish_reason of OpenAI's kind; Anthropic's stop_reason is made of it
    vector         the embedding of a text
    served         what it says that its model is; a dated name of what was asked for, unless set
    """

    def __init__(
        self,
        *replies: object,
        score: float = 4,
        models: Sequence[str] = ("judge-1",),
        refuses: Mapping[str, str] | None = None,
        usage: tuple[int, int] | None = (100, 20),
        key: str | None = None,
        delay: float = 0.0,
        finish: str = "stop",
        vector: Vector | None = None,
        served: str | None = None,
    ) -> None:
        super().__init__(self._behave)
        self.replies, self.score, self.models = replies, score, models
        self.refuses, self.usage, self.key, self.delay, self.finish = refuses or {}, usage, key, delay, finish
        self.vector = vector or by_words
        self.served = served
        self.chats: list[Received] = []
        """Requests for a reply, those that were refused among them."""
        self.embeddings: list[Received] = []
        self.most_at_once = 0
        self._answered = 0
        self._at_once = 0

    async def _behave(self, connection: Connection) -> None:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(self.delay)
            await self._route(connection)
        finally:
            self._at_once -= 1

    async def _route(self, connection: Connection) -> None:
        request = connection.request
        path = request.path.partition("?")[0]
        told = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.key is not None and told != self.key:
            await _send(connection, 401, {"error": {"message": f"Incorrect API key provided: {told}"}})
        elif path.endswith("/models"):
            await _send(connection, 200, {"data": [{"id": name} for name in self.models]})
        elif path.endswith("/embeddings"):
            self.embeddings.append(request)
            await self._next(connection, self._embeddings)
        elif path.endswith(("/chat/completions", "/messages")):
            self.chats.append(request)
            await self._chat(connection, _openai if path.endswith("/chat/completions") else _anthropic)
        else:
            await _send(connection, 404, {"error": "no such address"})

    async def _chat(self, connection: Connection, shape: Callable[..., Any]) -> None:
        asked = connection.request.json
        refusal = next((message for name, message in self.refuses.items() if _sends(asked, name)), None)
        if refusal is not None:
            await _send(connection, 400, {"error": {"message": refusal, "type": "invalid_request_error"}})
        else:
            await self._next(connection, shape)

    async def _next(self, connection: Connection, shape: Callable[..., Any]) -> None:
        reply = self.replies[min(self._answered, len(self.replies) - 1)] if self.replies else None
        self._answered += 1
        if callable(reply):
            behave: Behaviour = reply
            await behave(connection)
        elif shape == self._embeddings:
            await _send(connection, 200, self._embeddings(connection.request) if reply is None else reply)
        else:
            said = _fitting(connection.request.json, self.score) if reply is None else reply
            await _send(connection, 200, shape(self, connection.request.json, said))

    def _embeddings(self, request: Received) -> Any:
        asked = request.json
        data = [{"index": i, "embedding": list(self.vector(text))} for i, text in enumerate(asked["input"])]
        return {"model": asked["model"], "data": data, "usage": {"prompt_tokens": 5, "total_tokens": 5}}


def by_words(text: str) -> list[float]:
    """Texts with the same words lie near each other: each word is a direction of its own, as far as 64 suffice."""
    vector = [0.01] * 64
    for word in text.lower().replace(".", " ").replace("?", " ").split():
        vector[hashlib.sha256(word.encode()).digest()[0] % 64] += 1.0
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


def _openai(server: JudgeServer, asked: Any, said: object) -> Any:
    message = {"role": "assistant", "content": said if isinstance(said, str) else json.dumps(said)}
    reply: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1767225600,
        "model": server.served or f"{asked['model']}-2026-01-01",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "message": message, "finish_reason": server.finish}],
    }
    if server.usage:
        tokens_in, tokens_out = server.usage
        reply["usage"] = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": sum(server.usage),
        }
    return reply


def _anthropic(server: JudgeServer, asked: Any, said: object) -> Any:
    content: dict[str, object]
    if isinstance(said, str) or "tools" not in asked:
        content = {"type": "text", "text": said if isinstance(said, str) else json.dumps(said)}
    else:
        content = {"type": "tool_use", "id": "t1", "name": asked["tools"][0]["name"], "input": said}
    reply = {
        "model": asked["model"],
        "content": [content],
        "stop_reason": "max_tokens" if server.finish == "length" else "end_turn",
    }
    if server.usage:
        reply["usage"] = {"input_tokens": server.usage[0], "output_tokens": server.usage[1]}
    return reply


async def _send(connection: Connection, status: int, data: Any) -> None:
    await connection.reply(status, json.dumps(data).encode())


def _sends(asked: Any, name: str) -> bool:
    """Does the request hold this parameter, or, as its response_format, this type?"""
    return name in asked or asked.get("response_format", {}).get("type") == name


def _fitting(asked: Any, score: float) -> Any:
    """The smallest value of the schema that a request brings."""
    if "tools" in asked:
        schema = asked["tools"][0]["input_schema"]
    else:
        schema = asked.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return _value(schema, score)


def _value(schema: Any, score: float) -> Any:
    if "enum" in schema:
        numbers = [one for one in schema["enum"] if isinstance(one, int | float) and one <= score]
        return max(numbers) if numbers else schema["enum"][0]
    if schema.get("type") == "object":
        return {name: _value(one, score) for name, one in schema.get("properties", {}).items()}
    if schema.get("type") in ("integer", "number"):
        return min(max(score, schema.get("minimum", score)), schema.get("maximum", score))
    return {"array": [], "boolean": False}.get(schema.get("type"), "because")
