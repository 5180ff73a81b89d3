"""The chunks of a system's index, by the optional part of the native contract: `GET {url}/api/v1/index/chunks`.

A reply is `{"chunks": [{chunk_id, rel_path, heading_path, text …}], "next": …}`; while `next` is not null, it is sent
as `cursor` for the chunks that follow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from pytest_rageval.errors import TargetError
from pytest_rageval.io.messages import found
from pytest_rageval.model import Chunk, Json
from pytest_rageval.targets.native_contract import answer_from_response

MOST_PAGES = 10_000


@runtime_checkable
class ListsChunks(Protocol):
    """A target that can list what its index holds."""

    async def index_chunks(self) -> list[Chunk] | None:
        """All chunks; None where the system does not offer that."""


async def listed_chunks(page: Callable[[str | None], Awaitable[Json]], where: str) -> list[Chunk]:
    """The chunks of all pages; TargetError where one is not as the contract has it."""
    chunks: list[Chunk] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        data = await page(cursor)
        listed = data.get("chunks") if isinstance(data, dict) else None
        if not isinstance(listed, list):
            raise TargetError("invalid_response", f"{where}: chunks is {found(listed)}, expected a list")
        answer = answer_from_response({"answer": "", "debug": {"retrieved_chunks": listed}}, where)
        chunks += answer.chunks or ()
        following = data.get("next")
        if following is None:
            return chunks
        if not isinstance(following, str) or following == cursor:
            raise TargetError(
                "invalid_response", f"{where}: next is {found(following)}, expected another cursor or null"
            )
        cursor = following
    raise TargetError("too_large", f"{where}: more than {MOST_PAGES:,} pages")
