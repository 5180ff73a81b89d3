"""A provider of models, asked within its limits and the budget, again where that may help."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from pytest_rageval.http.client import SlottedClient
from pytest_rageval.llm.endpoint import Connect, Endpoint
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.prices import Tariff
from pytest_rageval.llm.rate_limit import Limits, RequestSlot, pace_of
from pytest_rageval.model import Json

LARGEST_REPLY = 16 * 2**20


class Provider:
    """One address that is asked from one event loop.

    headers   sent with every request, the key among them
    key_name  the environment variable of that key, for messages
    tariff    what a request costs there
    backoff   seconds before the first retry
    connect   makes what sends the requests
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
        limits = Limits(
            options.concurrency, options.requests_per_minute, options.tokens_per_minute, options.is_adaptive
        )
        self._limits = limits.shared(options.share)
        self._endpoint = Endpoint(
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
        self.where = self._endpoint.where

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[RequestSlot]:
        """Permission for one request of about so many tokens; a ModelFailure of kind budget where nothing is left."""
        self._check_budget()
        async with pace_of(self._host, self._limits).turn(tokens) as turn:
            self._check_budget()  # others may have spent the rest while this one waited
            yield turn

    async def ask(self, body: Mapping[str, Json], turn: RequestSlot) -> tuple[Json, float]:
        """The JSON of the reply, and its milliseconds; failures are those of `Endpoint.ask`."""
        return await self._endpoint.ask(body, turn.again)

    def pay(self, turn: RequestSlot, tokens_in: int | None, tokens_out: int | None) -> float | None:
        """Account for a reply: tokens to the pace, dollars to the budget; its cost where that is known.

        A server that does not tell its tokens is taken to have used what was estimated.
        """
        if tokens_in is not None and tokens_out is not None:
            turn.settle(tokens_in + tokens_out)
        cost = self._tariff.cost(tokens_in, tokens_out)
        if self._budget is not None:
            self._budget.spend(cost if cost is not None else self._tariff.cost(turn.tokens, 0) or 0.0)
        return cost

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def problem(self, probe_url: str) -> str | None:
        """Why this server cannot be asked, in one line, or None; costs nothing."""
        return await self._endpoint.problem(probe_url)

    def _check_budget(self) -> None:
        if self._budget is not None:
            self._budget.check()
