"""What is asked of any chat endpoint, how servers differ in taking it, and the protocol of one kind of endpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

from pytest_rageval.errors import ModelFailure, SettingsError
from pytest_rageval.http.address import endpoint
from pytest_rageval.io.masking import public_url
from pytest_rageval.llm.chat_reply import ChatReply
from pytest_rageval.llm.server_error import ServerError, server_error
from pytest_rageval.model import Json
from pytest_rageval.text import printable

Form = Literal["schema", "object", "text"]
"""How a reply in JSON is asked for: by its schema, as any JSON object, or by the prompt alone."""


class Message(NamedTuple):
    """One message of a conversation: its role (`user`, `assistant` …) and its text."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: a conversation, and what is wanted of the reply. What is None is left to the server.

    parameters  further fields of the body, as the user set them, before ours; none replaces model, messages or stream
    """

    model: str
    messages: Sequence[Message]
    schema_name: str = "reply"
    schema: Mapping[str, Json] | None = None
    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    parameters: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a server wants to be asked; it begins with everything and loses what the server refuses."""

    form: Form = "schema"
    sends_temperature: bool = True
    sends_seed: bool = True
    has_system_role: bool = True
    limit_name: str = "max_tokens"

    @property
    def left_out(self) -> tuple[str, ...]:
        """What replies should depend on and cannot, in the words of the record."""
        sent = {"temperature": self.sends_temperature, "seed": self.sends_seed, "schema": self.form == "schema"}
        return tuple(name for name, is_sent in sent.items() if not is_sent)


EVERYTHING = Manner()


_SYSTEM_ROLE = "system (?:role|message|prompt|instruction)s?|developer instructions?|conversation roles"
_FORMS = "response_format|json_schema|json_object|(?:json )?schema|grammar|tools?|tool_choice|structured outputs?"


def after_refusal(manner: Manner, error: ServerError) -> Manner | None:
    """Return the manner without the parameter that a refusal (400 or 422) is about; None where nothing can be left out.

    A parameter that stands only in what is quoted of the request stays: the text of a case may hold any word.
    """
    if manner.limit_name == "max_tokens" and error.names("max_tokens") and "max_completion_tokens" in error.message:
        return replace(manner, limit_name="max_completion_tokens")
    if manner.sends_temperature and error.names("temperature"):
        return replace(manner, sends_temperature=False)
    if manner.sends_seed and error.names("seed"):
        return replace(manner, sends_seed=False)
    if manner.has_system_role and error.names(_SYSTEM_ROLE):
        return replace(manner, has_system_role=False)
    if manner.form != "text" and error.names(_FORMS):
        return replace(manner, form="object" if manner.form == "schema" else "text")
    return None


def sent_messages(question: Question, manner: Manner) -> list[dict[str, str]]:
    """The conversation; where the server knows no system role, what it was to hear so begins the next message."""
    messages: list[dict[str, str]] = []
    instructions = ""
    for role, text in question.messages:
        if role == "system" and not manner.has_system_role:
            instructions += f"{text}\n"
        else:
            messages.append({"role": role, "content": instructions + text})
            instructions = ""
    return messages


class Wire(Protocol):
    """One kind of endpoint: where it listens, what it takes, how it replies."""

    api: str
    """What it speaks: `openai`, `azure`, `anthropic`, `ollama`."""
    chat_url: str
    models_url: str
    key_name: str
    """The environment variable that holds the key for it."""
    text_path: str
    """Where in a reply its text stands."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    def body(self, question: Question, manner: Manner = EVERYTHING) -> dict[str, Json]: ...

    def read(self, data: Json) -> ChatReply:
        """A reply of the kind; raises ValueError with what is wrong with it."""
        ...


def reply_from(wire: Wire, data: Json, where: str) -> ChatReply:
    """The reply that a server's JSON holds; ModelFailure where it is an error, or none of the kind."""
    if (error := server_error(data)) is not None:
        raise ModelFailure("invalid_response", f"{where}: the reply is an error: {error.message[:200]}")
    try:
        return wire.read(data)
    except ValueError as wrong:
        raise ModelFailure("invalid_response", f"{where}: {wrong}") from None


def below(url: str, path: str) -> str:
    """The address of a path below `/v1` of a base URL; a version that the URL's own path names takes its place."""
    try:
        has_version = re.search(r"/v\d[^/]*(/|$)", urlsplit(url).path)
    except ValueError as error:
        raise SettingsError(f"{printable(public_url(url))!r} is not a URL: {error}") from None
    return endpoint(url, path if has_version else f"/v1{path}")


def addresses(base: str, chat: str) -> tuple[str, str]:
    """Where a server of this base is asked for a reply, and where for the names of its models."""
    return below(base, chat), below(base, "/models")
