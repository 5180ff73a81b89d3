"""Model servers: one address with its pace and budget, and the chat models there."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlsplit

from pytest_rageval.errors import ModelFailure, SettingsError
from pytest_rageval.http.call_limit import IMPATIENT, JUDGE, CallLimit, shared_limit
from pytest_rageval.http.call_tally import note_first_token, tallied
from pytest_rageval.http.client import HttpReply, SlottedClient
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.io.masking import public_url
from pytest_rageval.llm.batch import PRICE, BatchClient, BatchExchange
from pytest_rageval.llm.chat_protocol import (
    ChatReply,
    Manner,
    Message,
    Question,
    after_refusal,
    json_from_body,
    read_by,
)
from pytest_rageval.llm.credentials import KeySource
from pytest_rageval.llm.endpoint_options import EndpointOptions, Tariff, estimated_tokens
from pytest_rageval.llm.event_stream import FirstToken, completion_of
from pytest_rageval.llm.model_spec import model_and_url, model_identity
from pytest_rageval.llm.server_error import refusal_in, status_in
from pytest_rageval.llm.wire import Wire
from pytest_rageval.model import Json
from pytest_rageval.providers import JUDGING, ProviderRow
from pytest_rageval.text import printable

PROBE_SECONDS = 5.0
LARGEST_REPLY = 16 * 2**20
"""Bytes, far beyond what any judge has to say: a server that never ends must not fill the memory."""
SEED = 1
"""Sent where a seed is allowed, so that equal requests get equal replies as far as possible; each further trial of a
request adds 1."""


class Client(Protocol):
    """What sends the requests: HTTP's client, that of a provider's package, or one that keeps them for a batch."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        json: Any,
        tokens: int = 0,
        before_send: Callable[[], None] | None = None,
    ) -> HttpReply: ...

    async def aclose(self) -> None: ...


class Endpoint:
    """One address of a model server; belongs to one event loop.

    headers     sent with every request, including the key
    key_name    the environment variable of that key, for messages; empty for other sources
    client      sends the requests; by default one with these headers and the arguments of `SlottedClient`
    models_url  the list of its models, to see that it is there; empty if it has none
    """

    models_url = ""

    def __init__(
        self, url: str, headers: Mapping[str, str], key_name: str, client: Client | None = None, **connection: Any
    ) -> None:
        self._url = url
        self.where = f"POST {public_url(url)}"
        self._headers = headers
        self._key_name = key_name
        self._client = client or SlottedClient(headers=headers, status_in=status_in, **connection)

    async def ask(
        self, body: Mapping[str, Json], tokens: int = 0, before_send: Callable[[], None] | None = None
    ) -> tuple[Json, float]:
        """Return the JSON of the reply and the milliseconds of the answered request; raise ModelFailure.

        `tokens` and `before_send` are as for `SlottedClient.request`.
        """
        started = time.perf_counter()
        with tallied() as tally:
            reply = await self._reply_to(body, tokens=tokens, before_send=before_send)
        elapsed_ms = (time.perf_counter() - started) * 1000
        # What the server took: waits for a turn and between attempts are ours.
        answered_ms = elapsed_ms - tally.queued_ms - tally.retry_wait_ms
        return json_from_body(reply.body, self.where), answered_ms

    async def ask_for_stream(self, body: Mapping[str, Json]) -> Json:
        """Return the completion that a streamed reply amounts to; note when its first token arrived."""
        first_token = FirstToken()
        reply = await self._reply_to(body, before_send=first_token.restart, watch=first_token.read)
        completion = completion_of(reply.body, self.where)
        if first_token.ms is not None:
            note_first_token(first_token.ms)
        return completion

    async def _reply_to(self, body: Mapping[str, Json], **how: Any) -> HttpReply:
        try:
            return await self._client.request("POST", self._url, json=body, **how)
        except HttpFailure as failure:
            raise ModelFailure(failure.kind, f"{failure}{self._remedy(failure)}", status=failure.status) from failure

    async def check(self) -> str | None:
        """Return why this server is unusable, in one line, or None: one free GET without retries.

        Any reply shows that the server is there; of the statuses, only a refused key (401, 403) is a problem.
        """
        if not self.models_url:
            return None
        try:
            await body_of(self.models_url, self._headers)
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
    impatient = CallLimit(IMPATIENT)
    client = SlottedClient(
        timeout=PROBE_SECONDS,
        retries=0,
        headers=headers,
        max_bytes=2**20,
        named="of this check",
        limit_of=lambda _: impatient,
    )
    try:
        return (await client.request("GET", url)).body
    finally:
        await client.aclose()


class PaidEndpoint(Endpoint):
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
        client: Client | None = None,
    ) -> None:
        self._tariff = tariff
        self._budget = options.budget
        if self._budget is not None and not options.is_replay:
            self._budget.check_price(tariff)
        self._price = 1.0
        self._timeout = options.timeout
        self._host = urlsplit(url).netloc.rpartition("@")[2].lower()
        self._limit_of = judge_limit(options)
        super().__init__(
            url,
            headers,
            key_name,
            client,
            limit_of=lambda _: self._limit_of(self._host),
            timeout=options.timeout,
            retries=options.retries,
            max_bytes=LARGEST_REPLY,
            backoff=backoff,
            is_repeatable=True,
        )

    def defer_to(self, client: BatchClient) -> BatchExchange:
        """Send requests to this client, without limits: their pace and price are those of batches."""
        self._client = client
        self._price = PRICE
        self._budget = None
        return BatchExchange(self._headers, self._timeout)

    def check_budget(self) -> None:
        """Raise ModelFailure if the budget is spent."""
        if self._budget is not None:
            self._budget.check()

    async def ask(
        self, body: Mapping[str, Json], tokens: int = 0, before_send: Callable[[], None] | None = None
    ) -> tuple[Json, float]:
        """Ask as `Endpoint.ask` does, while the budget lasts."""
        self.check_budget()
        # Again in its turn: others may have spent the rest while it waited.
        return await super().ask(body, tokens, before_send or self.check_budget)

    def pay(
        self, estimate: int, tokens_in: int | None, tokens_out: int | None, tokens_cached: int | None = None
    ) -> float | None:
        """Charge a reply's tokens to the limit and its price to the budget; return the price if it is known.

        `estimate` is what it was asked with; it counts if the server reports no tokens.
        """
        tokens = estimate
        if tokens_in is not None and tokens_out is not None:
            tokens = tokens_in + tokens_out
            # The limit on tokens was charged with an estimate: the rest is given back, or charged now.
            self._limit_of(self._host).correct(estimate - tokens)
        cost = self._tariff.cost(tokens_in, tokens_out, tokens_cached)
        if cost is not None:
            cost *= self._price
        if self._budget is not None:
            spent = cost if cost is not None else self._tariff.cost(tokens, 0)
            self._budget.spend(spent or 0.0)
        return cost


def judge_limit(options: EndpointOptions) -> Callable[[Hashable], CallLimit]:
    """Return a function for the limit of a judge's server, which all judges there share."""
    return shared_limit(JUDGE, options.limits)


# ── chat ──────────────────────────────────────────────────────────────────────────────────────────────────────


def chat_model(spec: str, options: EndpointOptions) -> ChatModel:
    """Return the judging model of a spec, `KIND:REST` as its provider reads it; raise SettingsError for any other.

    The URL of a spec overrides that of the options. A spec without a kind is a model at the options' URL.
    """
    kind, colon, rest = spec.partition(":")
    if not colon or kind not in JUDGING:
        if options.base_url is None:
            raise SettingsError("no server; write it as openai:MODEL or openai:MODEL@URL")
        kind = "openai"
        rest = spec
    provider = JUDGING[kind]
    if not provider.factory:
        return model_at(provider, rest, options)
    model: ChatModel = _named(provider.factory)(kind, rest, options)
    return model


def model_at(provider: ProviderRow, rest: str, options: EndpointOptions) -> ChatModel:
    """Return the model of `MODEL` or `MODEL@URL`, by default at the options' URL or at the provider's own server."""
    model, url = model_and_url(provider.kind, rest)
    wire = wire_of(provider, url or options.base_url, options.key_of)
    return ChatModel(wire, model, options)


def wire_of(provider: ProviderRow, url: str | None, key_of: KeySource) -> Wire:
    """Return the provider's wire to this server, or to its own."""
    wire: Wire = _named(provider.wire)(url, provider, key_of=key_of)
    return wire


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"pytest_rageval.llm.{module}"), name)


class ChatModel(PaidEndpoint):
    """One model at one server.

    `identity` names both; `notes` lists the parameters that the server refused, one line each.
    """

    def __init__(
        self,
        wire: Wire,
        model: str,
        options: EndpointOptions,
        *,
        tariff: Tariff | None = None,
        backoff: float = 0.5,
        client: Client | None = None,
    ) -> None:
        self.model = model
        self.wire = wire
        self.url = wire.chat_url
        self.models_url = wire.models_url
        self.identity = model_identity(wire.api, model, wire.chat_url, options.server_name)
        self.temperature = options.temperature
        self.max_tokens = options.max_tokens
        self.notes: list[str] = []
        self._parameters = options.parameters
        self._omit = tuple(sorted(set(options.omit)))
        refused = set(self._omit)
        if "schema" in refused:
            refused.add("object")  # a server without schemas is not asked for any JSON object either
        self._manner = Manner(frozenset(refused))
        self.tariff = tariff or Tariff(model, wire.chat_url)
        own_headers = {name.lower(): value for name, value in options.headers.items()}
        headers = {**wire.headers, **own_headers}
        super().__init__(wire.chat_url, headers, wire.key_name, self.tariff, options, backoff=backoff, client=client)

    @property
    def options(self) -> dict[str, Json]:
        """Return the user's settings for the provider that replies depend on."""
        options: dict[str, Json] = {}
        if self.max_tokens is not None:
            options["max_tokens"] = self.max_tokens
        options |= self._parameters
        if self._omit:
            options["omit"] = list(self._omit)
        return options

    def sampling(self, max_tokens: int) -> dict[str, Json]:
        """Return everything but model and messages that replies depend on, for the cache key."""
        sampling = {"temperature": self.temperature, "seed": SEED, "max_tokens": max_tokens, **self._parameters}
        if self._omit:
            sampling["omit"] = list(self._omit)
        return sampling

    async def say(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Json] | None = None,
        schema_name: str = "reply",
        max_tokens: int = 2048,
        trial: int = 0,
    ) -> ChatReply:
        """Send a conversation and return the reply, whose cost counts even if it is useless. Raise ModelFailure.

        schema      JSON Schema of the reply, for servers that can enforce one
        max_tokens  limit of the reply, which is truncated there
        trial       number of the trial; each has its own seed
        """
        question = Question(
            model=self.model,
            messages=messages,
            schema_name=re.sub(r"[^A-Za-z0-9_-]", "_", schema_name)[:64],  # OpenAI takes no other names
            schema=schema,
            temperature=self.temperature,
            seed=SEED + trial,
            max_tokens=max_tokens,
            parameters=self._parameters,
        )
        estimate = estimated_tokens("".join(message.text for message in messages), max_tokens)
        data, latency_ms, manner = await self._ask(question, estimate)
        reply = read_by(self.wire.read, data, self.where)
        cost = self.pay(estimate, reply.tokens_in, reply.tokens_out, reply.tokens_cached)
        return replace(reply, cost_usd=cost, latency_ms=round(latency_ms, 3), left_out=manner.left_out)

    async def _ask(self, question: Question, estimate: int) -> tuple[Json, float, Manner]:
        """Return the reply's JSON; drop the parameters that the server refuses, now and in later requests."""
        manner = self._manner
        while True:
            try:
                data, latency_ms = await self.ask(self.wire.body(question, manner), estimate)
                break
            except ModelFailure as failure:
                refusal = failure.__cause__
                # 400 or 422: providers refuse a parameter that they do not know with either.
                if failure.status not in (400, 422) or not isinstance(refusal, HttpFailure):
                    raise
                without_refused = after_refusal(manner, refusal_in(refusal.body))
                if without_refused is None:
                    raise
                manner = without_refused
        self._learn(manner)
        return data, latency_ms, manner

    def _learn(self, manner: Manner) -> None:
        """Leave out the refused parameters in later requests too, and note those that are new."""
        noted = self._manner.notes
        # Merged, since concurrent requests may have learned of others.
        self._manner = Manner(manner.refused | self._manner.refused)
        for name in self._manner.notes:
            if name not in noted:
                self.notes.append(f"model {printable(self.model)}: the server does not take a {name}; asked without")
