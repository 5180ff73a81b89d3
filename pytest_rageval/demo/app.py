"""The demo system as an ASGI app: the native contract over HTTP, with every error as readable JSON."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from pytest_rageval.demo.parameters import BODY_BYTES, BadRequest, parse_ask, parse_index
from pytest_rageval.demo.rerank import LanguageModel, LlmError
from pytest_rageval.demo.system import System, listed_chunk

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Message, Receive, Send], Awaitable[None]]


def create_app(corpus: Path | None = None, *, graph: Path | None = None, llm: LanguageModel | None = None) -> AsgiApp:
    """Make the demo over its own notes, or over another folder of vaults (then without a graph, unless given).

    A language model, if given, writes the answers and reranks, and the app belongs to the model's event loop.

    POST /api/v1/ask[?debug=true], POST /api/v1/index, GET /api/v1/index/stats,
    GET /api/v1/index/chunks[?cursor=N], GET /api/v1/health. The index is built
    on the first request, in a thread; lifespan events are answered but not needed. Raises FileNotFoundError if the
    corpus is no folder.
    """
    if corpus is not None and not corpus.is_dir():
        raise FileNotFoundError(f"corpus {corpus} is not a folder")
    return _App(System(corpus, graph, llm))


PAGE_CHUNKS = 500


class _App:
    def __init__(self, system: System) -> None:
        self._system = system
        self._routes: dict[str, tuple[str, Callable[[str, bytes], Awaitable[dict[str, Any]]]]] = {
            "/api/v1/ask": ("POST", self._ask),
            "/api/v1/index": ("POST", self._index),
            "/api/v1/index/stats": ("GET", self._stats),
            "/api/v1/index/chunks": ("GET", self._chunks),
            "/api/v1/health": ("GET", self._health),
        }

    async def __call__(self, connection: Message, receive: Receive, send: Send) -> None:
        if connection["type"] == "lifespan":
            await _live(receive, send)
        elif connection["type"] == "http":
            await self._respond(connection, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _respond(self, connection: Message, receive: Receive, send: Send) -> None:
        try:
            body = await _body(receive)
            path = connection["path"]
            if path not in self._routes:
                raise BadRequest(f"no such path {path!a}; known are {', '.join(self._routes)}", status=404)
            method, handle = self._routes[path]
            if connection["method"] != method:
                problem = f"{path} is for {method}, not {connection['method']}"
                await _send(send, 405, _error(problem), allow=method)
                return
            response = await handle(connection.get("query_string", b"").decode("latin-1"), body)
        except BadRequest as refused:
            await _send(send, refused.status, _error(*refused.problems))
        except LlmError as failed:
            # No quotation instead: it would be taken for the model's answer.
            await _send(send, 502, _error(f"no answer from the language model {failed}"))
        except _GoneError:
            return
        else:
            await _send(send, 200, response)

    async def _ask(self, query: str, body: bytes) -> dict[str, Any]:
        debug = _parameter(query, "debug", "true|1|false|0", "true or false") in ("true", "1")
        ask = parse_ask(body)
        # A search takes a millisecond: a thread would cost more than it frees. Building an index takes longer.
        library = self._system.library
        built = library.index_for(ask) if library.is_ready(ask) else await asyncio.to_thread(library.index_for, ask)
        return await self._system.ask(ask, built, debug=debug)

    async def _index(self, query: str, body: bytes) -> dict[str, Any]:
        _parameter(query)
        built = await asyncio.to_thread(lambda: self._system.library.rebuild(**parse_index(body)))
        return built.coverage

    async def _stats(self, query: str, _: bytes) -> dict[str, Any]:
        _parameter(query)
        return (await asyncio.to_thread(self._system.library.index_for)).coverage

    async def _chunks(self, query: str, _: bytes) -> dict[str, Any]:
        start = int(_parameter(query, "cursor", "[0-9]{1,9}", "what `next` said") or 0)
        chunks = (await asyncio.to_thread(self._system.library.index_for)).index.chunks
        end = start + PAGE_CHUNKS
        return {
            "chunks": [listed_chunk(chunk) for chunk in chunks[start:end]],
            "next": str(end) if end < len(chunks) else None,
        }

    async def _health(self, query: str, _: bytes) -> dict[str, Any]:
        _parameter(query)
        return {"status": "ok", "index": "built" if self._system.library.is_ready() else "not built yet"}


class _GoneError(Exception):
    """The client left before its request was complete."""


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_BYTES:
            raise BadRequest(f"the body is larger than {BODY_BYTES:,} bytes", status=413)
        if not message.get("more_body", False):
            return b"".join(parts)


def _parameter(query: str, known: str = "", values: str = "", expected: str = "") -> str | None:
    """Return the value of the one parameter that a query string may have; None if it is absent."""
    found = None
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name != known:
            raise BadRequest(
                f"unknown query parameter {name!a}; {f'known is {known}' if known else 'none is known here'}"
            )
        if not re.fullmatch(values, value):
            raise BadRequest(f"{known} is {value!a}, expected {expected}")
        found = value
    return found


def _error(*problems: str) -> dict[str, Any]:
    return {"error": "; ".join(problems), "problems": list(problems)}


async def _send(send: Send, status: int, content: dict[str, Any], *, allow: str | None = None) -> None:
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if allow is not None:
        headers.append((b"allow", allow.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
