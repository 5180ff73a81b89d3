"""A chat model: one conversation in, one reply out, with its cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.http.client import SlottedClient
from pytest_rageval.llm.batch import BatchWire
from pytest_rageval.llm.chat_protocol import ChatReply, Manner, Message, Question, Wire, after_refusal, read_by
from pytest_rageval.llm.credentials import KeySource
from pytest_rageval.llm.endpoint import Connect, Provider, RequestRefused
from pytest_rageval.llm.endpoint_options import EndpointOptions, RequestSlot, Tariff, estimated_tokens
from pytest_rageval.llm.model_spec import model_and_url, model_identity
from pytest_rageval.model import Json
from pytest_rageval.providers import JUDGING, ProviderRow
from pytest_rageval.text import printable

SEED = 1
"""Sent where a seed is allowed, so that equal requests get equal replies as far as possible; each further trial of a
request adds 1."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A reply with its cost and time, and the parameters not sent (see `Manner.left_out`)."""

    reply: ChatReply
    cost_usd: float | None
    latency_ms: float
    left_out: tuple[str, ...] = ()

    @property
    def tokens_in(self) -> int | None:
        return self.reply.tokens_in

    @property
    def tokens_out(self) -> int | None:
        return self.reply.tokens_out


def chat_model(spec: str, options: EndpointOptions) -> ChatModel:
    """Return the judging model of a spec, `KIND:REST` as its provider reads it; raise SettingsError for any other.

    The URL of a spec overrides that of the options. A spec without a kind is a model at the options' URL.
    """
    kind, colon, rest = spec.partition(":")
    if not colon or kind not in JUDGING:
        if options.base_url is None:
            raise SettingsError("no server; write it as openai:MODEL or openai:MODEL@URL")
        kind, rest = "openai", spec
    if not (factory := JUDGING[kind].factory):
        return model_at(JUDGING[kind], rest, options)
    model: ChatModel = _named(factory)(kind, rest, options)
    return model


def model_at(provider: ProviderRow, rest: str, options: EndpointOptions) -> ChatModel:
    """Return the model of `MODEL` or `MODEL@URL`, by default at the options' URL or at the provider's own server."""
    model, url = model_and_url(provider.kind, rest)
    return ChatModel(wire_of(provider, url or options.base_url, options.key_of), model, options)


def wire_of(provider: ProviderRow, url: str | None, key_of: KeySource) -> Wire:
    """Return the provider's wire to this server, or to its own."""
    wire: Wire = _named(provider.wire)(url, provider, key_of=key_of)
    return wire


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"pytest_rageval.llm.{module}"), name)


class ChatModel(Provider):
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
        connect: Connect = SlottedClient,
    ) -> None:
        self.model = model
        self.url = wire.chat_url
        self.identity = model_identity(wire.api, model, wire.chat_url, options.server_name)
        self.temperature = options.temperature
        self.notes: list[str] = []
        self._parameters = options.parameters
        self.max_tokens = options.max_tokens
        self._wire = wire
        self._omit = tuple(sorted(set(options.omit)))
        self._manner = Manner(frozenset(self._omit) | ({"object"} if "schema" in self._omit else set()))
        self.tariff = tariff or Tariff(model, wire.chat_url)
        headers = {**wire.headers, **{name.lower(): value for name, value in options.headers.items()}}
        super().__init__(wire.chat_url, headers, wire.key_name, self.tariff, options, backoff=backoff, connect=connect)

    @property
    def options(self) -> dict[str, Json]:
        """Return the user's settings for the provider that replies depend on."""
        limit = {} if self.max_tokens is None else {"max_tokens": self.max_tokens}
        omit: dict[str, Json] = {"omit": list(self._omit)} if self._omit else {}
        return limit | self._parameters | omit

    def sampling(self, max_tokens: int) -> dict[str, Json]:
        """Return everything but model and messages that replies depend on, for the cache key."""
        sent = {"temperature": self.temperature, "seed": SEED, "max_tokens": max_tokens, **self._parameters}
        return sent | ({"omit": list(self._omit)} if self._omit else {})

    async def say(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Json] | None = None,
        schema_name: str = "reply",
        max_tokens: int = 2048,
        trial: int = 0,
    ) -> Exchange:
        """Send a conversation and return the reply, whose cost counts even if it is useless. Raise ModelFailure.

        schema      JSON Schema of the reply, for servers that can enforce one
        max_tokens  limit of the reply, which is truncated there
        trial       number of the trial; each has its own seed
        """
        name = re.sub(r"[^A-Za-z0-9_-]", "_", schema_name)[:64]
        question = Question(
            self.model, messages, name, schema, self.temperature, SEED + trial, max_tokens, self._parameters
        )
        estimate = estimated_tokens("".join(message.text for message in messages), max_tokens)
        async with self.turn(estimate) as turn:
            data, latency_ms, manner = await self._ask(question, turn)
            reply = read_by(self._wire.read, data, self.where)
            cost = self.pay(turn, reply.tokens_in, reply.tokens_out, reply.tokens_cached)
        return Exchange(reply, cost, round(latency_ms, 3), manner.left_out)

    @property
    def batch_wire(self) -> BatchWire | None:
        """Return the endpoint's interface for batches; None if it has none."""
        return self._wire if isinstance(self._wire, BatchWire) and self._wire.takes_batches else None

    async def check(self) -> str | None:
        """Return why the server is unusable, in one line, or None; costs nothing."""
        return await self.problem(self._wire.models_url)

    async def _ask(self, question: Question, turn: RequestSlot) -> tuple[Json, float, Manner]:
        """Return the reply's JSON; drop the parameters that the server refuses, now and in later requests."""
        manner = self._manner
        while True:
            try:
                data, latency_ms = await self.ask(self._wire.body(question, manner), turn.renew)
                break
            except RequestRefused as refusal:
                if (without := after_refusal(manner, refusal.error)) is None:
                    raise
                manner = without
            await turn.renew()
        self._adopt(manner)
        return data, latency_ms, manner

    def _adopt(self, manner: Manner) -> None:
        """Use this manner from now on, merged with what concurrent requests have learned."""
        noted = self._manner.notes
        self._manner = Manner(manner.refused | self._manner.refused)
        self.notes += [
            f"model {printable(self.model)}: the server does not take a {name}; asked without"
            for name in self._manner.notes
            if name not in noted
        ]
