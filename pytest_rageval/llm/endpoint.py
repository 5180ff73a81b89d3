"""One address of a model server: POST requests, their JSON, and failures by kind."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from pytest_rageval.errors import ModelFailure
from pytest_rageval.http.call_limit import tallied
from pytest_rageval.http.client import SlottedClient
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.io.masking import public_url
from pytest_rageval.llm.batch import PRICE, BatchClient, BatchExchange
from pytest_rageval.llm.chat_protocol import json_from_body
from pytest_rageval.llm.endpoint_options import EndpointOptions, Limits, RequestSlot, Tariff, pace_of
from pytest_rageval.llm.server_error import refusal_in, status_in
from pytest_rageval.model import Json

PROBE_SECONDS = 5.0


Connect = Callable[..., Any]
"""Creates a client from the arguments of `SlottedClient`, with its methods `request` and `aclose`."""


class RequestRefused(ModelFailure):
    """A request that the server refuses as invalid (400 or 422), for the reason in `error`."""

    def __init__(self, failure: HttpFailure) -> None:
        super().__init__(failure.kind, str(failure))
        self.error = refusal_in(failure.body)


class Endpoint:
    """A client for one address; belongs to one event loop.

    headers     sent with every request, including the key
    key_name    the environment variable of that key, for messages; empty for other sources
    connect     creates the client that sends the requests
    connection  arguments of `SlottedClient`
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        key_name: str,
        *,
        connect: Connect = SlottedClient,
        **connection: Any,
    ) -> None:
        self._url = url
        self.where = f"POST {public_url(url)}"
        self._headers, self._key_name = headers, key_name
        self._client = connect(headers=headers, status_in=status_in, **connection)

    async def ask(
        self, body: Mapping[str, Json], before_retry: Callable[[], Awaitable[None]] | None = None
    ) -> tuple[Json, float]:
        """Return the JSON of the reply and the milliseconds of the answered request; raise ModelFailure.

        Raise its subclass RequestRefused for 400 and 422.
        """
        started = time.perf_counter()
        try:
            with tallied() as tally:
                reply = await self._client.request("POST", self._url, json=body, before_retry=before_retry)
        except HttpFailure as failure:
            if failure.status in (400, 422):
                raise RequestRefused(failure) from None
            raise ModelFailure(failure.kind, f"{failure}{self._remedy(failure)}", status=failure.status) from None
        taken_ms = (time.perf_counter() - started) * 1000 - tally.retry_wait_ms
        return json_from_body(reply.body, self.where), taken_ms

    async def problem(self, probe_url: str) -> str | None:
        """Return why this server is unusable, in one line, or None: one free GET without retries.

        Any reply shows that the server is there; of the statuses, only a refused key (401, 403) is a problem.
        """
        if not probe_url:
            return None
        try:
            await body_of(probe_url, self._headers)
        except HttpFailure as failure:
            if failure.kind in ("connect", "timeout", "reset") or failure.status in (401, 403):
                return f"the server cannot be asked: {failure}{self._remedy(failure)}"
        return None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _remedy(self, failure: HttpFailure) -> str:
        if failure.status not in (401, 403) or not self._key_name:
            return ""
        return f"; its key is taken from the environment variable {self._key_name}"


async def body_of(url: str, headers: Mapping[str, str]) -> bytes:
    """Return the body of a GET, with a short timeout and no retry; raise HttpFailure."""
    # Needs its own client: it runs before the questions, perhaps in another event loop.
    client = SlottedClient(
        slots=1, timeout=PROBE_SECONDS, retries=0, headers=headers, max_bytes=2**20, limit="of this check"
    )
    try:
        return (await client.request("GET", url)).body
    finally:
        await client.aclose()


LARGEST_REPLY = 16 * 2**20


class Provider(Endpoint):
    """An endpoint with the limits of its host and a budget.

    tariff   the price of a request
    backoff  seconds before the first retry
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        key_name: str,
        tariff: Tariff,
        options: EndpointOptions,
        *,
        backoff: float = 0.5,
        connect: Connect = SlottedClient,
    ) -> None:
        self._tariff, self._budget = tariff, options.budget
        if self._budget is not None and not options.is_replay:
            self._budget.check_price(tariff)
        self._host = urlsplit(url).netloc.rpartition("@")[2].lower()
        self._limits = options.limits
        self._price, self._timeout = 1.0, options.timeout
        super().__init__(
            url,
            headers,
            key_name,
            slots=self._limits.concurrency,
            timeout=options.timeout,
            retries=options.retries,
            max_bytes=LARGEST_REPLY,
            backoff=backoff,
            is_repeatable=True,
            connect=connect,
        )

    def defer_to(self, client: BatchClient) -> BatchExchange:
        """Send requests to this client, without limits: their pace and price are those of batches."""
        self._client, self._price = client, PRICE
        self._budget, self._limits = None, Limits(concurrency=64)
        return BatchExchange(self._headers, self._timeout)

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[RequestSlot]:
        """Wait for permission to send a request of about `tokens` tokens; raise ModelFailure if the budget is spent."""
        self._check_budget()
        async with pace_of(self._host, self._limits).turn(tokens) as turn:
            self._check_budget()  # others may have spent the rest while this one waited
            yield turn

    def pay(
        self, turn: RequestSlot, tokens_in: int | None, tokens_out: int | None, tokens_cached: int | None = None
    ) -> float | None:
        """Charge a reply's tokens to the pace and its price to the budget; return the price if it is known.

        If the server reports no tokens, the estimate counts.
        """
        if tokens_in is not None and tokens_out is not None:
            turn.correct(tokens_in + tokens_out)
        cost = self._tariff.cost(tokens_in, tokens_out, tokens_cached)
        cost = None if cost is None else cost * self._price
        if self._budget is not None:
            self._budget.spend(cost if cost is not None else self._tariff.cost(turn.tokens, 0) or 0.0)
        return cost

    def _check_budget(self) -> None:
        if self._budget is not None:
            self._budget.check()
