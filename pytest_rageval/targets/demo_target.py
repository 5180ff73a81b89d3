"""The embedded demo system in this process, which can also list what its index holds."""

from __future__ import annotations

from pytest_rageval.demo.app import create_app
from pytest_rageval.demo.system import System
from pytest_rageval.model import Chunk
from pytest_rageval.targets.asgi_target import AsgiTarget
from pytest_rageval.targets.connection import USUAL, Connection


class DemoTarget(AsgiTarget):
    """The demo over its own notes."""

    def __init__(self, connection: Connection = USUAL) -> None:
        super().__init__(create_app(), "demo", connection)

    def indexed_chunks(self) -> tuple[Chunk, ...]:
        """All chunks of the index, as it is cut by default."""
        index = System().library.index_for().index
        return tuple(
            Chunk(chunk_id=chunk.chunk_id, rel_path=chunk.rel_path, heading_path=chunk.heading_path, text=chunk.text,
                  doc_id=chunk.meta.get("doc_id"))
            for chunk in index.chunks
        )  # fmt: skip
