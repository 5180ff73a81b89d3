"""A language model to talk to: one conversation in, one reply out, with what it cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from pytest_rageval.errors import SettingsError
from pytest_rageval.http.client import SlottedClient
from pytest_rageval.llm.chat_protocol import ChatReply, Manner, Message, Question, Wire, after_refusal, read_by
from pytest_rageval.llm.endpoint import Connect, Provider, RequestRefused
from pytest_rageval.llm.endpoint_options import EndpointOptions, RequestSlot, Tariff, estimated_tokens
from pytest_rageval.llm.model_spec import PROVIDERS, model_identity
from pytest_rageval.model import Json
from pytest_rageval.text import printable

SEED = 1
"""Sent with every request that may hold a seed, so that equal requests get equal replies as far as a server can; each
further trial of a request has the next one."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A reply, what it took, and what could not be asked for (see `Manner.left_out`)."""

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
    """The model that a spec names, `KIND:REST` as the kind's provider reads it. SettingsError where it names none.

    The URL in a spec comes before that of the options. A spec without a kind is a model at their URL.
    """
    kind, colon, rest = spec.partition(":")
    if not colon or kind not in PROVIDERS:
        if options.base_url is None:
            raise SettingsError("no server; write it as openai:MODEL or openai:MODEL@URL")
        kind, rest = "openai", spec
    module, _, function = PROVIDERS[kind].factory.partition(":")
    model: ChatModel = getattr(import_module(f"pytest_rageval.llm.{module}"), function)(kind, rest, options)
    return model


class ChatModel:
    """One model at one server.

    `identity` names both; `notes` says what the server refused to be told, one line each.
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
        self._provider = Provider(
            wire.chat_url, headers, wire.key_name, self.tariff, options, backoff=backoff, connect=connect
        )

    @property
    def options(self) -> dict[str, Json]:
        """What the user has the provider told, as far as replies depend on it."""
        limit = {} if self.max_tokens is None else {"max_tokens": self.max_tokens}
        omit: dict[str, Json] = {"omit": list(self._omit)} if self._omit else {}
        return limit | self._parameters | omit

    def sampling(self, max_tokens: int) -> dict[str, Json]:
        """What replies depend on beside model and messages, as a cache's key holds it."""
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
        """Send a conversation; a reply that comes is paid for, whatever it is worth. Raises ModelFailure.

        schema      JSON Schema of the reply, where the server can keep to one
        max_tokens  of the reply; where they do not suffice, it comes truncated
        trial       of the same request; each has a seed of its own
        """
        name = re.sub(r"[^A-Za-z0-9_-]", "_", schema_name)[:64]
        question = Question(
            self.model, messages, name, schema, self.temperature, SEED + trial, max_tokens, self._parameters
        )
        estimate = estimated_tokens("".join(message.text for message in messages), max_tokens)
        async with self._provider.turn(estimate) as turn:
            data, latency_ms, manner = await self._asked(question, turn)
            reply = read_by(self._wire.read, data, self._provider.where)
            cost = self._provider.pay(turn, reply.tokens_in, reply.tokens_out)
        return Exchange(reply, cost, round(latency_ms, 3), manner.left_out)

    async def check(self) -> str | None:
        """Why the server cannot be asked, in one line, or None; costs nothing."""
        return await self._provider.problem(self._wire.models_url)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._provider.aclose()

    async def _asked(self, question: Question, turn: RequestSlot) -> tuple[Json, float, Manner]:
        """The reply's JSON; what the server refuses to be told is left out, now and in all later requests."""
        manner = self._manner
        while True:
            try:
                data, latency_ms = await self._provider.ask(self._wire.body(question, manner), turn.again)
                break
            except RequestRefused as refusal:
                if (without := after_refusal(manner, refusal.error)) is None:
                    raise
                manner = without
            await turn.again()
        self._keep(manner)
        return data, latency_ms, manner

    def _keep(self, manner: Manner) -> None:
        """From now on in this manner; others may have found out something else at the same time, so both count."""
        noted = self._manner.left_out
        self._manner = Manner(manner.refused | self._manner.refused)
        self.notes += [
            f"model {printable(self.model)}: the server does not take a {name}; asked without"
            for name in self._manner.left_out
            if name not in noted
        ]
