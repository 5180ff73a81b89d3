"""The demo system as an ASGI app: the native contract over HTTP, with every error as readable JSON."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from pytest_rageval.demo.parameters import BODY_BYTES, Ask, BadRequest, IndexBudget, LlmError, parse_body
from pytest_rageval.demo.system import Library, answer, listed_chunk

if TYPE_CHECKING:
    from pytest_rageval.demo.llm import Llm

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def create_app(
    corpus: Path | None = None,
    *,
    graph: Path | None = None,
    llm: Llm | None = None,
    bound_host: str | None = None,
) -> DemoApp:
    """Make the demo over its own notes, or over another folder of vaults (then without a graph, unless given).

    A language model, if given, writes the answers and reranks, and the app belongs to the model's event loop. With the
    host that it is served at, requests of pages from elsewhere are refused. Raises FileNotFoundError if the corpus is
    no folder.
    """
    if corpus is None:
        corpus = HERE / "corpus"
        graph = graph or HERE / "knowledge" / "graph.toml"
    if not corpus.is_dir():
        raise FileNotFoundError(f"corpus {corpus} is not a folder")
    return DemoApp(Library(corpus, graph), llm, bound_host)


HERE = Path(__file__).parent
PAGE_CHUNKS = 500


class Parameter(NamedTuple):
    """The one parameter that a query string may have: its name, the pattern of its values, and that in words."""

    name: str = ""
    pattern: str = ""
    expected: str = "what `next` said"

    def value_in(self, query: str) -> str:
        """Return the last value; blank if it is absent."""
        value = ""
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name != self.name:
                known = f"known is {self.name}" if self.name else "none is known here"
                raise BadRequest(f"unknown query parameter {name!a}; {known}")
            if not re.fullmatch(self.pattern, value):
                raise BadRequest(f"{self.name} is {value!a}, expected {self.expected}")
        return value


class DemoApp:
    """The routes of the demo, as an ASGI app without a lifespan.

    May be used from any thread and event loop; with a language model, from that model's loop only.

    POST /api/v1/ask[?debug=true], POST /api/v1/index, GET /api/v1/index/stats, GET /api/v1/index/chunks[?cursor=N],
    GET /api/v1/health. The index is built on the first request, in a thread.
    """

    def __init__(self, library: Library, llm: Llm | None, bound_host: str | None) -> None:
        self._library = library
        self._llm = llm
        self._bound_host = bound_host
        debug = Parameter("debug", "true|1|false|0", "true or false")
        cursor = Parameter("cursor", "[0-9]{1,9}")
        self._routes = {
            "/api/v1/ask": ("POST", debug, self._ask),
            "/api/v1/index": ("POST", Parameter(), self._index),
            "/api/v1/index/stats": ("GET", Parameter(), self._stats),
            "/api/v1/index/chunks": ("GET", cursor, self._chunks),
            "/api/v1/health": ("GET", Parameter(), self._health),
        }

    async def __call__(self, connection: Message, receive: Receive, send: Send) -> None:
        if connection["type"] != "http":
            raise NotImplementedError(f"no {connection['type']} here")
        status = 200
        headers = {"content-type": "application/json"}
        try:
            content = await self._content(connection, receive)
        except BadRequest as refused:
            status = refused.status
            content = _error(*refused.problems)
            headers |= refused.headers
        except LlmError as failed:
            # No quotation instead: it would be taken for the model's answer.
            status = 502
            content = _error(f"no answer from the language model {failed}")
        body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        headers["content-length"] = str(len(body))
        written = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": written})
        await send({"type": "http.response.body", "body": body})

    async def _content(self, connection: Message, receive: Receive) -> dict[str, Any]:
        if self._bound_host is not None:
            _check_origin(connection, self._bound_host.lower())
        body = await _body(receive)
        path = connection["path"]
        method = connection["method"]
        if path not in self._routes:
            raise BadRequest(f"no such path {path!a}; known are {', '.join(self._routes)}", status=404)
        allowed, parameter, handle = self._routes[path]
        if method != allowed:
            raise BadRequest(f"{path} is for {allowed}, not {method}", status=405, allow=allowed)
        query = connection.get("query_string", b"").decode("latin-1")
        return await handle(parameter.value_in(query), body)

    async def _ask(self, debug: str, body: bytes) -> dict[str, Any]:
        ask = parse_body(Ask, body)
        # A search takes a millisecond: a thread would cost more than it frees. Building an index takes longer.
        built = self._library.built(ask)
        if built is None:
            built = await asyncio.to_thread(self._library.index_for, ask)
        return await answer(ask, built, self._llm, debug=debug in ("true", "1"))

    async def _index(self, _: str, body: bytes) -> dict[str, Any]:
        wanted = parse_body(IndexBudget, body if body.strip() else b"{}")
        built = await asyncio.to_thread(self._library.rebuild, wanted)
        return built.coverage

    async def _stats(self, _: str, __: bytes) -> dict[str, Any]:
        built = await asyncio.to_thread(self._library.index_for)
        return built.coverage

    async def _chunks(self, cursor: str, _: bytes) -> dict[str, Any]:
        built = await asyncio.to_thread(self._library.index_for)
        chunks = built.index.chunks
        start = int(cursor or 0)
        end = start + PAGE_CHUNKS
        return {
            "chunks": [listed_chunk(chunk) for chunk in chunks[start:end]],
            "next": str(end) if end < len(chunks) else None,
        }

    async def _health(self, _: str, __: bytes) -> dict[str, Any]:
        return {"status": "ok", "index": "built" if self._library.built() else "not built yet"}


async def _body(receive: Receive) -> bytes:
    """Return the body of a request; what a client that left had sent of it is no valid one."""
    body = b""
    while True:
        message = await receive()
        part: bytes = message.get("body", b"")
        body += part
        if len(body) > BODY_BYTES:
            raise BadRequest(f"the body is larger than {BODY_BYTES:,} bytes", status=413)
        if not message.get("more_body", False):
            return body


def _check_origin(connection: Message, bound_host: str) -> None:
    """Refuse a name that is not this server's, and a page of another origin (DNS rebinding)."""
    headers = {name: value.decode("latin-1").lower() for name, value in connection["headers"]}
    named = headers.get(b"host", "")
    origin = headers.get(b"origin")
    if named and not _is_name_of_ours(named, bound_host):
        remedy = "use its IP address, localhost or the --host that was given"
        raise BadRequest(f"{named[:80]!a} is no name of this server; {remedy}", status=421)
    if origin is not None and origin != f"http://{named}":
        raise BadRequest(f"pages of the origin {origin[:80]!a} may not ask this server", status=403)


def _is_name_of_ours(named: str, bound_host: str) -> bool:
    try:
        name = urlsplit(f"//{named}").hostname or ""
    except ValueError:
        return False
    if name == bound_host or name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return bool(ip_address(name))
    except ValueError:
        # A name without a dot is of this network: no outsider can point it at this machine.
        return "." not in name and bound_host not in ("localhost", "127.0.0.1", "::1")


def _error(*problems: str) -> dict[str, Any]:
    return {"error": "; ".join(problems), "problems": list(problems)}
