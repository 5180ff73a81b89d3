"""A RAG system behind the native HTTP contract: `POST {url}/api/v1/ask?debug=true`."""

from __future__ import annotations

from pytest_rageval.errors import TargetError
from pytest_rageval.http.address import endpoint
from pytest_rageval.http.client import SlottedClient
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.io.masking import public_url
from pytest_rageval.llm.credentials import with_target_token
from pytest_rageval.model import Answer, AskRequest, Chunk, Json
from pytest_rageval.targets.ask_body import ASK_PATH, CHUNKS_PATH, STATS_PATH, ask_body
from pytest_rageval.targets.connection import USUAL, Connection
from pytest_rageval.targets.index_listing import listed_chunks
from pytest_rageval.targets.native_contract import answer_from_body, data_from_body, get_ready

OTHER_API = "; an API of its own is described by target.mapping, see docs/targets.md"
"""Where a server knows nothing of our path, or of our body."""


class HttpTarget:
    """Asks a server. `name` is its URL without credentials."""

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
        """One question; raises TargetError where no usable answer comes."""
        get_ready()
        try:
            reply = await self._client.request("POST", self._ask, json=ask_body(request))
        except HttpFailure as failure:
            remedy = OTHER_API if failure.status in (404, 405, 422) else ""
            raise TargetError(failure.kind, f"{failure}{remedy}", status=failure.status) from None
        return answer_from_body(reply.body, self._where)

    async def index_stats(self) -> dict[str, Json] | None:
        """What the system says of its index; None where it does not offer that."""
        try:
            reply = await self._client.request("GET", self._stats)
            stats = data_from_body(reply.body, f"GET {public_url(self._stats)}")
        except HttpFailure as failure:
            if failure.kind == "http_4xx":
                return None
            raise TargetError(failure.kind, str(failure), status=failure.status) from None
        return stats if isinstance(stats, dict) else None

    async def index_chunks(self) -> list[Chunk] | None:
        """All chunks of the index; None where the system does not list them."""
        try:
            return await listed_chunks(self._page, f"GET {public_url(endpoint(self.url, CHUNKS_PATH))}")
        except HttpFailure as failure:
            if failure.kind == "http_4xx":
                return None
            raise TargetError(failure.kind, str(failure), status=failure.status) from None

    async def _page(self, cursor: str | None) -> Json:
        url = endpoint(self.url, CHUNKS_PATH, **({} if cursor is None else {"cursor": cursor}))
        return data_from_body((await self._client.request("GET", url)).body, f"GET {public_url(url)}")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
