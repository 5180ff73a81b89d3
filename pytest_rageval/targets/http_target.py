"""The native HTTP contract, `POST {url}/api/v1/ask?debug=true`, by our HTTP client or the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pytest_rageval.errors import SettingsError, TargetError
from pytest_rageval.http.address import endpoint
from pytest_rageval.http.client import SlottedClient
from pytest_rageval.http.failures import HttpFailure, retry_after_in
from pytest_rageval.io.masking import public_url
from pytest_rageval.io.messages import describe, shown_value
from pytest_rageval.links import docs_page
from pytest_rageval.llm.credentials import with_target_token
from pytest_rageval.model import Answer, AskRequest, Chunk, Json
from pytest_rageval.targets.foreign_code import call_foreign, too_large
from pytest_rageval.targets.native_contract import answer_from_body, answer_from_response, data_from_body, get_ready
from pytest_rageval.targets.target import USUAL, BaseTarget, Connection, Surroundings

MOST_PAGES = 10_000
OTHER_API = f"; an API of its own is described by target.mapping, see {docs_page('target-server')}"
"""The remedy for servers that do not know our path or body."""
ASK_PATH = "/api/v1/ask"
STATS_PATH = "/api/v1/index/stats"
CHUNKS_PATH = "/api/v1/index/chunks"


@runtime_checkable
class ListsChunks(Protocol):
    """A target that can list the chunks of its index."""

    async def index_chunks(self) -> list[Chunk] | None:
        """Return all chunks; None if the system does not list them."""


async def listed_chunks(page: Callable[[str | None], Awaitable[Json]], where: str) -> list[Chunk]:
    """Return the chunks of all pages; raise TargetError if a page breaks the contract.

    A page is `{"chunks": [{chunk_id, rel_path, heading_path, text …}], "next": …}`; while `next` is not null, it is
    sent as `cursor` to get the next page.
    """
    chunks: list[Chunk] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        data = await page(cursor)
        listed = data.get("chunks") if isinstance(data, dict) else None
        if not isinstance(listed, list):
            raise TargetError("invalid_response", f"{where}: chunks is {describe(listed)}, expected a list")
        # Checked as strictly as the chunks of an answer: labels refer to both.
        answer = answer_from_response({"answer": "", "debug": {"retrieved_chunks": listed}}, where)
        chunks += answer.chunks or ()
        following = data.get("next")
        if following is None:
            return chunks
        # A server that returns the same cursor would be asked for the same page for ever.
        if not isinstance(following, str) or following == cursor:
            raise TargetError(
                "invalid_response", f"{where}: next is {describe(following)}, expected another cursor or null"
            )
        cursor = following
    raise TargetError("too_large", f"{where}: more than {MOST_PAGES:,} pages")


def from_spec(spec: str, given: Surroundings) -> BaseTarget:
    """Make the target at a URL: with its mapping if there is one, else by the native contract."""
    if given.mapping is None:
        return HttpTarget(spec, given.connection)
    from pytest_rageval.targets.mapped_target import MappedTarget  # here, because few have a mapping

    return MappedTarget(spec, given.mapping, given.connection)


class HttpTarget(BaseTarget):
    """Queries a server. `name` is its URL without credentials."""

    takes_turns = True
    keeps_conversations = True
    url: str

    def __init__(self, url: str, connection: Connection = USUAL, *, name: str | None = None) -> None:
        self.name = name or public_url(url)
        self.url = url
        self._ask = endpoint(url, ASK_PATH, debug="true")
        self._stats = endpoint(url, STATS_PATH)
        self._where = f"POST {public_url(self._ask)}" if name is None else name
        self._client = SlottedClient(
            headers=with_target_token(connection.headers, connection.environment), **connection.of_client
        )

    async def ask(self, request: AskRequest) -> Answer:
        """Answer one question; raise TargetError if no usable answer arrives."""
        get_ready()
        try:
            reply = await self._client.request("POST", self._ask, json=ask_body(request))
        except HttpFailure as failure:
            # The statuses of a server that has another path or another body.
            remedy = OTHER_API if failure.status in (404, 405, 422) else ""
            raise TargetError(failure.kind, f"{failure}{remedy}", status=failure.status) from None
        return answer_from_body(reply.body, self._where)

    async def index_stats(self) -> dict[str, Json] | None:
        """Return the system's statistics of its index; None if it does not offer them."""
        try:
            reply = await self._client.request("GET", self._stats)
            stats = data_from_body(reply.body, f"GET {public_url(self._stats)}")
        except HttpFailure as failure:
            if failure.kind == "http_4xx":
                return None
            raise TargetError(failure.kind, str(failure), status=failure.status) from None
        return stats if isinstance(stats, dict) else None

    async def index_chunks(self) -> list[Chunk] | None:
        """Return all chunks of the index; None if the system does not list them."""
        try:
            return await listed_chunks(self._page, f"GET {public_url(endpoint(self.url, CHUNKS_PATH))}")
        except HttpFailure as failure:
            if failure.kind == "http_4xx":
                return None
            raise TargetError(failure.kind, str(failure), status=failure.status) from None

    async def _page(self, cursor: str | None) -> Json:
        parameters = {} if cursor is None else {"cursor": cursor}
        url = endpoint(self.url, CHUNKS_PATH, **parameters)
        reply = await self._client.request("GET", url)
        return data_from_body(reply.body, f"GET {public_url(url)}")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def ask_body(request: AskRequest) -> dict[str, Json]:
    """Return question, k, scope, history and all set parameters; the server's defaults apply to the rest.

    Only a turn of a conversation has a `conversation_id`: servers may refuse what they do not know.
    """
    body: dict[str, Json] = {**request.params, "question": request.question, "k": request.k}
    if request.history is not None:
        body["history"] = [turn._asdict() for turn in request.history]
    if request.conversation_id is not None:
        body["conversation_id"] = request.conversation_id
    if request.vaults:
        body["vaults"] = list(request.vaults)
    if request.folders:
        body["folders"] = list(request.folders)
    return body


class ClientTarget(BaseTarget):
    """Speaks the native contract through any object with `base_url` and `post`, sync or async.

    The client handles its own credentials, retries and time-outs except the total one; its owner closes it.
    """

    keeps_conversations = True

    def __init__(
        self, client: Any, name: str | None = None, *, timeout: float = 120.0, max_bytes: int = 16 * 2**20
    ) -> None:
        # httpx always has a base URL, which is blank by default and then has no host.
        base = getattr(client.base_url, "host", client.base_url)
        if not base:
            raise SettingsError(f"rag_client: the {type(client).__name__} has no base URL; give it one")
        library, _, _ = type(client).__module__.partition(".")
        self.name = name or f"{library}.{type(client).__name__}"
        self._client = client
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._is_async = inspect.iscoroutinefunction(client.post)

    async def ask(self, request: AskRequest) -> Answer:
        """Send one question once."""
        question = {"params": {"debug": "true"}, "json": ask_body(request)}

        def post() -> _ClientReply:
            return _reply_of(self._client.post(ASK_PATH, **question))

        async def post_async() -> _ClientReply:
            return _reply_of(await self._client.post(ASK_PATH, **question))

        call = post_async if self._is_async else post
        status, body, retry_after = await call_foreign(
            call, self.name, self._timeout, is_async=self._is_async, kind_of=_kind_of
        )
        if len(body) > self._max_bytes:
            raise TargetError("too_large", too_large(self.name, self._max_bytes))
        if 200 <= status < 300:
            return answer_from_body(body, self.name)
        message = f"{self.name}: status {status}: {shown_value(body.decode('utf-8', 'replace'))}"
        raise TargetError(_kind_of_status(status), message, status=status, retry_after=retry_after)

    async def aclose(self) -> None:
        """Do nothing: the client's owner closes it."""


def _kind_of_status(status: int) -> str:
    if status == 429:
        return "rate_limited"
    if status >= 500:
        return "http_5xx"
    return "http_4xx" if status >= 400 else "invalid_response"


class _ClientReply(NamedTuple):
    """What is read of a response of another client."""

    status: int
    body: bytes
    retry_after: float | None


def _reply_of(response: Any) -> _ClientReply:
    wait = retry_after_in(getattr(response, "headers", None))
    return _ClientReply(int(response.status_code), bytes(response.content), wait)


_KINDS = {
    "ConnectError": "connect",
    "ConnectTimeout": "connect",
    "ConnectionRefusedError": "connect",
    "TimeoutException": "timeout",
    "Timeout": "timeout",
    "NetworkError": "reset",
    "RemoteProtocolError": "reset",
    "ConnectionError": "reset",
}


def _kind_of(error: BaseException) -> str:
    """Return the error kind by the names of the exception's classes, so that the client's library is not imported."""
    return next((_KINDS[base.__name__] for base in type(error).__mro__ if base.__name__ in _KINDS), "exception")
