"""Requests that go out in batches at half price, and their replies when they are there.

Judging is done twice: a first time to learn which requests it takes, and again once their replies were collected. A
request is identified by a hash of its body, so that equal requests are sent once and their replies found again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from pytest_rageval.errors import ModelFailure
from pytest_rageval.http.client import HttpReply, SlottedClient
from pytest_rageval.http.failures import HttpFailure, kind_of_status
from pytest_rageval.io.masking import public_url
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.llm.chat_protocol import json_from_body, object_at, string_at
from pytest_rageval.llm.server_error import refusal_in, status_in
from pytest_rageval.model import Json
from pytest_rageval.text import excerpt

PRICE = 0.5
"""Share of the usual price."""
MOST_REQUESTS, MOST_BYTES = 10_000, 100 * 2**20
"""Of one batch; OpenAI takes 50,000 and 200 MB, Anthropic 100,000 and 256 MB."""
LARGEST_RESULTS = 2**30
DEFERRED = "deferred"
"""Kind of the failure of a request that waits for its batch."""


class BatchReply(NamedTuple):
    """The reply to one request, or why there is none: it expired, or was cancelled."""

    status: int
    body: bytes = b""
    problem: str = ""


class BatchState(NamedTuple):
    """The state of a batch, as the provider reports it; `results` are the URLs of its results, once it has ended."""

    id: str
    is_ended: bool
    words: str
    results: tuple[str, ...] = ()


class BatchExchange:
    """The requests about batches to one provider, whose answers are JSON."""

    def __init__(self, headers: Mapping[str, str], timeout: float) -> None:
        client = partial(
            SlottedClient, timeout=timeout, headers=headers, max_bytes=LARGEST_RESULTS, status_in=status_in
        )
        # A submission is never sent twice: the provider may have taken one that it did not answer.
        self._clients = {"GET": client(), "POST": client(retries=0)}

    async def get(self, url: str) -> Mapping[str, Json]:
        """Return the object at a URL; raise ModelFailure."""
        return await self._object("GET", url)

    async def post(self, url: str, **content: Any) -> Mapping[str, Json]:
        """Return the reply to a POST of `json` or of `files`; raise ModelFailure."""
        return await self._object("POST", url, **content)

    async def lines(self, url: str) -> AsyncIterator[Mapping[str, Json]]:
        """Yield the objects of a file of JSON lines; leave out lines that are none."""
        content = await self._sent("GET", url)
        for line in content.splitlines():
            try:
                value = parse(line)
            except StrictJsonError:
                continue  # its request counts as one without a reply
            if isinstance(value, Mapping):
                yield value

    async def aclose(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            await client.aclose()

    async def _object(self, method: str, url: str, **content: Any) -> Mapping[str, Json]:
        body = await self._sent(method, url, **content)
        return object_at(json_from_body(body, f"{method} {public_url(url)}"), "")

    async def _sent(self, method: str, url: str, **content: Any) -> bytes:
        try:
            reply = await self._clients[method].request(method, url, **content)
        except HttpFailure as failure:
            raise ModelFailure(failure.kind, str(failure), status=failure.status) from None
        return reply.body


@dataclass(slots=True)
class BatchClient:
    """A client in place of HTTP's: it returns collected replies, and keeps all other requests for a batch."""

    replies: dict[str, BatchReply] = field(default_factory=dict)
    waiting: dict[str, Json] = field(default_factory=dict)

    async def request(self, method: str, url: str, *, json: Json = None, **_of_http: Any) -> HttpReply:
        """Return the collected reply; raise HttpFailure if it is a refusal, or of kind `deferred` if there is none."""
        name = f"batched {method} {public_url(url)}"
        key = request_id(json)
        reply = self.replies.get(key)
        if reply is None:
            self.waiting[key] = json
            raise HttpFailure(DEFERRED, f"{name}: waits for its batch")
        if reply.problem:
            raise HttpFailure("batch", f"{name}: {reply.problem}")
        status = status_in(reply.status, reply.body)
        if status < 300:
            return HttpReply(status, {}, reply.body)
        body = reply.body.decode("utf-8", "replace")
        message = f"{name}: status {status}: {excerpt(refusal_in(body).message)}"
        raise HttpFailure(kind_of_status(status), message, status=status, body=body)

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""

    def portions(self) -> Iterator[dict[str, Json]]:
        """Yield the waiting requests in portions that a provider takes."""
        portion: dict[str, Json] = {}
        size = 0
        for key, body in self.waiting.items():
            length = len(json.dumps(body))
            if portion and (len(portion) == MOST_REQUESTS or size + length > MOST_BYTES):
                yield portion
                portion = {}
                size = 0
            portion[key] = body
            size += length
        if portion:
            yield portion


def request_id(body: Json) -> str:
    """Return the name of a request in a batch: 40 hexadecimal digits of its content."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:40]


def batch_name(requests: Iterable[str]) -> str:
    """Return a name for a batch of these requests, whatever their order."""
    return request_id(sorted(requests))


def batch_id(reply: Mapping[str, Json]) -> str:
    """Return the id of a new batch or file."""
    identifier = string_at(reply.get("id"), "id")
    if not identifier:
        raise ModelFailure("invalid_response", "the provider's reply has no id")
    return identifier
