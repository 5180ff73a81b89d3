"""Texts as vectors: from an endpoint of OpenAI's kind, in batches, checked, each text asked for once."""

from __future__ import annotations

import math
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import TypeAlias

from pytest_rageval.errors import JudgeError, ModelFailure
from pytest_rageval.llm.chat_protocol import below
from pytest_rageval.llm.chat_reply import token_count
from pytest_rageval.llm.credentials import OPENAI_KEY, bearer, judge_key
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.prices import Tariff
from pytest_rageval.llm.provider import Provider
from pytest_rageval.llm.providers.openai import OPENAI_URL
from pytest_rageval.llm.rate_limit import estimated_tokens
from pytest_rageval.llm.server_error import server_error
from pytest_rageval.model import Json
from pytest_rageval.text import cut

BATCH = 64
"""Texts of one request."""
LONGEST_TEXT = 2_000
"""Characters of a text that are sent: many embedding models read no more than 512 tokens."""
REMEMBERED = 2_048
"""Texts whose vectors are kept: retrieval brings the same passages for many questions."""
MOST_DIMENSIONS = 16_384

Vector: TypeAlias = "array[float]"
"""Of length 1, so that the cosine of two vectors is the sum of their products."""


@dataclass(slots=True)
class Bill:
    """What one judgement has taken: tokens and dollars (None: not told), milliseconds of requests."""

    tokens: int | None = 0
    cost_usd: float | None = 0.0
    latency_ms: float = 0.0

    def add(self, tokens: int | None, cost_usd: float | None, latency_ms: float) -> None:
        """One request more."""
        self.tokens = None if self.tokens is None or tokens is None else self.tokens + tokens
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd
        self.latency_ms += latency_ms


class Embedder:
    """An embedding model at a server, for one event loop."""

    def __init__(self, model: str, url: str, options: EndpointOptions, *, backoff: float = 0.5) -> None:
        self.model = model
        address = below(url, "/embeddings")
        headers, key_name = bearer(judge_key(address, OPENAI_KEY, OPENAI_URL))
        self._models_url = below(url, "/models")
        self._provider = Provider(address, headers, key_name, Tariff(model, address), options, backoff=backoff)
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._dimensions: int | None = None

    async def vectors(self, texts: Iterable[str], bill: Bill) -> dict[str, Vector]:
        """The vector of each text that is not blank, by text; JudgeError where what comes are no such vectors."""
        distinct = dict.fromkeys(text for text in texts if text.strip())
        vectors = {text: self._known[text] for text in distinct if text in self._known}
        missing = [text for text in distinct if text not in vectors]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            vectors.update(zip(batch, await self._asked(batch, bill), strict=True))
        for text, vector in vectors.items():
            self._known[text] = vector
            self._known.move_to_end(text)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return vectors

    async def check(self) -> str | None:
        """Why the server cannot be asked, in one line, or None; costs nothing."""
        return await self._provider.problem(self._models_url)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._provider.aclose()

    async def _asked(self, batch: Sequence[str], bill: Bill) -> list[Vector]:
        # A lone surrogate could not be read as JSON at the other end.
        shown = [text[:LONGEST_TEXT].encode("utf-8", "replace").decode() for text in batch]
        try:
            async with self._provider.turn(estimated_tokens("".join(shown), 0)) as turn:
                data, latency_ms = await self._provider.ask({"model": self.model, "input": shown}, turn)
                tokens = token_count(data.get("usage") if isinstance(data, Mapping) else None, "prompt_tokens")
                bill.add(tokens, self._provider.pay(turn, tokens, 0), latency_ms)
        except ModelFailure as failure:
            raise JudgeError(failure.kind, str(failure), status=failure.status) from None
        if (error := server_error(data)) is not None:
            raise JudgeError(
                "invalid_response", f"{self._provider.where}: the reply is an error: {cut(error.message, 200)}"
            )
        try:
            return self._read(data, len(batch))
        except ValueError as wrong:
            raise JudgeError("invalid_response", f"{self._provider.where}: {wrong}") from None

    def _read(self, data: Json, expected: int) -> list[Vector]:
        """One vector a text, in the order of their `index`; ValueError with what is wrong."""
        entries = data.get("data") if isinstance(data, Mapping) else None
        if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
            raise ValueError("the response has no list of embeddings")
        if len(entries) != expected:
            raise ValueError(f"{len(entries)} embeddings came for {expected} texts")
        indices = [entry.get("index", position) for position, entry in enumerate(entries)]
        if not all(type(index) is int for index in indices) or sorted(indices) != list(range(expected)):
            raise ValueError(f"the indices of the embeddings are not 0 to {expected - 1}")
        in_order = sorted(zip(indices, entries, strict=True), key=lambda pair: pair[0])
        return [self._unit(entry.get("embedding")) for _, entry in in_order]

    def _unit(self, written: Json) -> Vector:
        numbers = written if isinstance(written, list) else []
        if not 0 < len(numbers) <= MOST_DIMENSIONS or not all(type(x) in (int, float) for x in numbers):
            raise ValueError(f"an embedding is not a list of 1 to {MOST_DIMENSIONS:,} numbers")
        if len(numbers) != (self._dimensions or len(numbers)):
            raise ValueError(f"an embedding has {len(numbers)} dimensions, others have {self._dimensions}")
        try:
            length = math.hypot(*numbers)
        except OverflowError:
            length = math.inf
        if not 0 < length < math.inf:
            raise ValueError("an embedding has no length, or holds a number that is not finite")
        self._dimensions = len(numbers)
        return array("d", [x / length for x in numbers])


def cosine(first: Vector, second: Vector) -> float:
    """Of two vectors of length 1: in [-1, 1]."""
    return math.fsum(map(mul, first, second))
