"""How is a judge's server asked? Within its limits and the budget, again where that may help, errors by kind."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.http.client import SlottedClient
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.io.masking import public_url
from pytest_rageval.llm.chat_protocol import data_of
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.prices import Tariff
from pytest_rageval.llm.rate_limit import Limits, RequestSlot, pace_of
from pytest_rageval.model import Json
from pytest_rageval.text import printable

LARGEST_REPLY = 16 * 2**20
PROBE_SECONDS = 5.0


class RequestRefused(Exception):
    """The server does not take a request as it is (400 or 422); `said` is the beginning of its reason."""

    def __init__(self, failure: HttpFailure) -> None:
        super().__init__(str(failure))
        self.said = str(failure).partition(f"status {failure.status}")[2]
        self.error = JudgeError(failure.kind, str(failure))


class Provider:
    """One address that judges of one event loop ask.

    headers   sent with every request, the key among them
    key_name  the environment variable of that key, for messages
    tariff    what a request costs there
    backoff   seconds before the first retry
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
    ) -> None:
        self._url = url
        self.where = f"POST {public_url(url)}"
        self._headers, self._key_name = headers, key_name
        self._tariff, self._budget = tariff, options.budget
        if self._budget is not None and not options.is_replay:
            self._budget.check_price(tariff)
        self._host = urlsplit(url).netloc.rpartition("@")[2].lower()
        limits = Limits(options.concurrency, options.requests_per_minute, options.tokens_per_minute)
        self._limits = limits.shared(options.share)
        self._client = SlottedClient(
            slots=self._limits.concurrency,
            timeout=options.timeout,
            retries=options.retries,
            max_bytes=LARGEST_REPLY,
            headers=headers,
            backoff=backoff,
            is_repeatable=True,
        )

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[RequestSlot]:
        """Permission for one request of about so many tokens; a JudgeError of kind budget where nothing is left."""
        self._check_budget()
        async with pace_of(self._host, self._limits).turn(tokens) as turn:
            self._check_budget()  # others may have spent the rest while this one waited
            yield turn

    async def ask(self, body: Mapping[str, Json], turn: RequestSlot) -> tuple[Json, float]:
        """The JSON of the reply, and its milliseconds; JudgeError where none comes, Refused for 400 and 422."""
        started = time.perf_counter()
        try:
            reply = await self._client.request("POST", self._url, json=body, before_retry=turn.again)
        except HttpFailure as failure:
            if failure.status in (400, 422):
                raise RequestRefused(failure) from None
            raise JudgeError(failure.kind, f"{failure}{self._remedy(failure)}") from None
        return data_of(reply.body, self.where), (time.perf_counter() - started) * 1000

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
        await self._client.aclose()

    async def problem(self, probe_url: str) -> str | None:
        """Why this server cannot be asked, in one line, or None: one GET that costs nothing, tried once.

        A server that replies at all is there, whatever it says of that address; only a key that it refuses is told.
        """
        try:
            await _get(probe_url, self._headers)
        except HttpFailure as failure:
            if failure.kind in ("connect", "timeout", "reset") or failure.status in (401, 403):
                return f"the judge's server cannot be asked: {failure}{self._remedy(failure)}"
        return None

    def _check_budget(self) -> None:
        if self._budget is not None:
            self._budget.check()

    def _remedy(self, failure: HttpFailure) -> str:
        if failure.status not in (401, 403):
            return ""
        return f"; its key is taken from the environment variable {self._key_name}"


async def only_model(models_url: str, headers: Mapping[str, str]) -> str:
    """The one model that a server has; a SettingsError that lists them where it has several, or says why none came."""
    where = f"GET {public_url(models_url)}"
    try:
        data = data_of(await _get(models_url, headers), where)
    except (HttpFailure, JudgeError) as failure:
        raise SettingsError(f"the judge's model cannot be asked for: {failure}; is the server running?") from None
    listed = data.get("data") if isinstance(data, Mapping) else None
    entries = listed if isinstance(listed, list) else []
    ids = [entry.get("id") for entry in entries if isinstance(entry, Mapping)]
    names = [name for name in ids if isinstance(name, str)]
    if len(names) == 1:
        return names[0]
    shown = ", ".join(printable(name[:80]) for name in names[:20]) + (", …" if len(names) > 20 else "")
    raise SettingsError(f"{where}: {len(names)} models{': ' * bool(names)}{shown}; write openai:MODEL@URL")


async def _get(url: str, headers: Mapping[str, str]) -> bytes:
    # A client of its own: it is asked before anything runs, perhaps in another event loop than the judge's.
    client = SlottedClient(slots=1, timeout=PROBE_SECONDS, retries=0, headers=headers, max_bytes=2**20)
    try:
        return (await client.request("GET", url)).body
    finally:
        await client.aclose()
