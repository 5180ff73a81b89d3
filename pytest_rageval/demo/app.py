"""The demo system as an ASGI app: the native contract over HTTP, with every error as readable JSON."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from pytest_rageval.demo.parameters import BODY_BYTES, Ask, BadRequest, IndexBudget, parse_body
from pytest_rageval.demo.rerank import LanguageModel, LlmError
from pytest_rageval.demo.system import System, listed_chunk

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Response(NamedTuple):
    """One response, its body JSON."""

    status: int
    headers: dict[str, str]
    body: bytes


def create_app(corpus: Path | None = None, *, graph: Path | None = None, llm: LanguageModel | None = None) -> DemoApp:
    """Make the demo over its own notes, or over another folder of vaults (then without a graph, unless given).

    A language model, if given, writes the answers and reranks, and the app belongs to the model's event loop. Raises
    FileNotFoundError if the corpus is no folder.
    """
    if corpus is not None and not corpus.is_dir():
        raise FileNotFoundError(f"corpus {corpus} is not a folder")
    return DemoApp(System(corpus, graph, llm))


PAGE_CHUNKS = 500


class DemoApp:
    """The routes of the demo; called as an ASGI app, or by `respond`.

    POST /api/v1/ask[?debug=true], POST /api/v1/index, GET /api/v1/index/stats, GET /api/v1/index/chunks[?cursor=N],
    GET /api/v1/health. The index is built on the first request, in a thread.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._routes: dict[str, tuple[str, Callable[[str, bytes], Awaitable[dict[str, Any]]]]] = {
            "/api/v1/ask": ("POST", self._ask),
            "/api/v1/index": ("POST", self._index),
            "/api/v1/index/stats": ("GET", self._stats),
            "/api/v1/index/chunks": ("GET", self._chunks),
            "/api/v1/health": ("GET", self._health),
        }

    async def respond(self, method: str, path: str, query: str, body: bytes) -> Response:
        """Return the response to a request, whatever is wrong with it."""
        try:
            if len(body) > BODY_BYTES:
                raise BadRequest(f"the body is larger than {BODY_BYTES:,} bytes", status=413)
            if path not in self._routes:
                raise BadRequest(f"no such path {path!a}; known are {', '.join(self._routes)}", status=404)
            allowed, handle = self._routes[path]
            if method != allowed:
                return _response(405, _error(f"{path} is for {allowed}, not {method}"), allow=allowed)
            return _response(200, await handle(query, body))
        except BadRequest as refused:
            return _response(refused.status, _error(*refused.problems))
        except LlmError as failed:
            # No quotation instead: it would be taken for the model's answer.
            return _response(502, _error(f"no answer from the language model {failed}"))

    async def __call__(self, connection: Message, receive: Receive, send: Send) -> None:
        if connection["type"] == "lifespan":
            await _live(receive, send)
        elif connection["type"] != "http":
            await send({"type": "websocket.close"})
        elif (body := await _body(receive)) is not None:
            query = connection.get("query_string", b"").decode("latin-1")
            response = await self.respond(connection["method"], connection["path"], query, body)
            headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            await send({"type": "http.response.body", "body": response.body})

    async def _ask(self, query: str, body: bytes) -> dict[str, Any]:
        debug = _parameter(query, "debug", "true|1|false|0", "true or false") in ("true", "1")
        ask = parse_body(Ask, body)
        # A search takes a millisecond: a thread would cost more than it frees. Building an index takes longer.
        library = self._system.library
        built = library.index_for(ask) if library.is_ready(ask) else await asyncio.to_thread(library.index_for, ask)
        return await self._system.ask(ask, built, debug=debug)

    async def _index(self, query: str, body: bytes) -> dict[str, Any]:
        _parameter(query)
        wanted = parse_body(IndexBudget, body if body.strip() else b"{}")
        return (await asyncio.to_thread(self._system.library.rebuild, wanted)).coverage

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


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request; None if the client left before it was complete."""
    body = bytearray()
    while (message := await receive())["type"] != "http.disconnect":
        body += message.get("body", b"")
        if len(body) > BODY_BYTES or not message.get("more_body", False):
            return bytes(body)
    return None


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


def _response(status: int, content: dict[str, Any], **headers: str) -> Response:
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return Response(status, {"content-type": "application/json", "content-length": str(len(body)), **headers}, body)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
