"""The differences between chat endpoints: addresses, request bodies, replies and batches of one kind of API."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pytest_rageval.llm.batch import BatchExchange, BatchReply, BatchState
from pytest_rageval.llm.chat_protocol import EVERYTHING, ChatReply, Manner, Question
from pytest_rageval.model import Json


class Wire:
    """One kind of endpoint: its addresses, request bodies and replies; with `takes_batches`, its batches too."""

    api: str
    """Name of the API: `openai`, `azure`, `anthropic`, `ollama`."""
    text_path: str
    """Path of the text in a reply."""
    chat_url: str
    models_url: str
    headers: Mapping[str, str]
    key_name: str
    """The environment variable that holds the key for it."""
    takes_batches = False
    takes_streams = False
    """Its replies can come as a stream of chunks of a chat completion."""

    def body(self, question: Question, manner: Manner = EVERYTHING) -> dict[str, Json]:
        raise NotImplementedError

    def read(self, data: Json) -> ChatReply:
        """Read a reply of this kind; raise ValueError with what is wrong with it."""
        raise NotImplementedError

    async def submit_batch(self, exchange: BatchExchange, requests: Mapping[str, Json]) -> str:
        """Begin a batch of requests, and return its id."""
        raise NotImplementedError

    async def find_batch(
        self, exchange: BatchExchange, requests: Collection[str], since: str, known: Collection[str]
    ) -> str | None:
        """Return the id of the batch of these requests, none of the known ones, if it was begun since that time."""
        raise NotImplementedError

    async def batch_state(self, exchange: BatchExchange, batch: str) -> BatchState:
        raise NotImplementedError

    def batch_reply(self, line: Mapping[str, Json]) -> tuple[str, BatchReply]:
        """Read one line of the results of a batch."""
        raise NotImplementedError
