"""Requests to chat endpoints, the differences between servers, and replies in one format."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

from pytest_rageval.errors import ModelFailure, SettingsError
from pytest_rageval.http.address import endpoint
from pytest_rageval.io.masking import public_url
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.llm.server_error import FORMS, ServerError, server_error
from pytest_rageval.model import Json
from pytest_rageval.text import excerpt, printable

Form = Literal["schema", "object", "text"]
"""How to request a reply in JSON: by its schema, as any JSON object, or by the prompt alone."""


class Message(NamedTuple):
    """One message of a conversation: its role (`user`, `assistant` …) and its text."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A conversation with the parameters of the reply; the server chooses those that are None.

    parameters  the user's additional fields of the body; none replaces model or messages
    is_streamed the reply is to come as a stream, from a wire that reads one
    """

    model: str
    messages: Sequence[Message]
    schema_name: str = "reply"
    schema: Mapping[str, Json] | None = None
    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    parameters: Mapping[str, Json] = field(default_factory=dict)
    is_streamed: bool = False


_PARAMETERS = {
    "cache": "cache_control|prompt_cache_key",
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "seed": "seed",
    "system": "system (?:role|message|prompt|instruction)s?|developer instructions?|conversation roles",
    "schema": FORMS,
    "object": FORMS,
}
"""Parameters that a server may refuse, with patterns of their names in its errors."""


@dataclass(frozen=True, slots=True)
class Manner:
    """The way to query a server: without the refused parameters, by the names of `_PARAMETERS`."""

    refused: frozenset[str] = frozenset()

    @property
    def form(self) -> Form:
        forms: tuple[Form, ...] = ("schema", "object")
        return next((form for form in forms if form not in self.refused), "text")

    @property
    def limit_name(self) -> str:
        return "max_completion_tokens" if "max_tokens" in self.refused else "max_tokens"

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the names of the parameters that matter to replies but cannot be sent, as records name them."""
        return tuple(name for name in ("temperature", "seed", "schema") if name in self.refused)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the names of the refused parameters that a person should know about."""
        return (*self.left_out, "prompt cache") if "cache" in self.refused else self.left_out


EVERYTHING = Manner()


def after_refusal(manner: Manner, error: ServerError) -> Manner | None:
    """Return the manner without the parameter that a refusal (400 or 422) names, or None if it names none to drop.

    A parameter that occurs only in text quoted from the request stays: the text of a case may hold any word.
    """
    for name, words in _PARAMETERS.items():
        if name in manner.refused:
            continue
        if name == "max_tokens" and "max_completion_tokens" not in error.message:
            continue  # its value is refused, not its name
        if error.names(words):
            return Manner(manner.refused | {name})
    return None


def sent_messages(question: Question, manner: Manner) -> list[dict[str, str]]:
    """Return the conversation; without a system role, its instructions are put in front of the next message."""
    messages: list[dict[str, str]] = []
    instructions = ""
    for role, text in question.messages:
        if role == "system" and "system" in manner.refused:
            instructions += f"{text}\n"
        else:
            messages.append({"role": role, "content": instructions + text})
            instructions = ""
    return messages


def instructions(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the text of a conversation's system messages, which all requests of one kind share."""
    return "\n".join(message["content"] for message in messages if message["role"] == "system")


def sampling(question: Question, manner: Manner, limit_name: str) -> dict[str, Json]:
    """Return temperature, seed and token limit, as far as they are sent."""
    sent: dict[str, Json] = {}
    if question.max_tokens is not None:
        sent[limit_name] = question.max_tokens
    if question.temperature is not None and "temperature" not in manner.refused:
        sent["temperature"] = question.temperature
    if question.seed is not None and "seed" not in manner.refused:
        sent["seed"] = question.seed
    return sent


T = TypeVar("T")


def read_by(read: Callable[[Json], T], data: Json, where: str) -> T:
    """Read a server's JSON with `read`; raise ModelFailure if it is an error, or if `read` raises ValueError."""
    if (error := server_error(data)) is not None:
        raise ModelFailure("invalid_response", f"{where}: the reply is an error: {error.message[:200]}")
    try:
        return read(data)
    except ValueError as wrong:
        raise ModelFailure("invalid_response", f"{where}: {wrong}") from None


def below(url: str, path: str) -> str:
    """Return the address of a path below `/v1` of a base URL, or below the version that the URL itself names."""
    try:
        has_version = re.search(r"/v\d[^/]*(/|$)", urlsplit(url).path)
    except ValueError as error:
        raise SettingsError(f"{printable(public_url(url))!r} is not a URL: {error}") from None
    return endpoint(url, path if has_version else f"/v1{path}")


StopReason = Literal["length", "refusal", "content_filter", "tool_calls"]
"""Why a reply is incomplete: cut at the limit, declined, blocked by a filter, or a tool call instead of text."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One reply.

    text           the model's text, without its thoughts (which are in `unread`); None without text
    ending         why the reply is incomplete; None if the model finished
    finish_reason  the same in the server's own word
    tokens_in, tokens_out   None: not reported
    tokens_cached  of `tokens_in`, those that the provider took from its cache
    model, build   model and build as the server names them
    usage          all counts that the server reports
    latency        milliseconds by phase, if the server reports them
    unread         the unread fields by part of the reply: `reply`, `choice`, `message`
    cost_usd, latency_ms   price and time of the request, where they are counted
    left_out       parameters not sent, see `Manner.left_out`
    """

    text: str | None
    ending: StopReason | None = None
    finish_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    model: str | None = None
    build: str | None = None
    usage: Json = None
    latency: Mapping[str, float] = field(default_factory=dict)
    unread: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    cost_usd: float | None = None
    latency_ms: float = 0.0
    left_out: tuple[str, ...] = ()

    @property
    def is_truncated(self) -> bool:
        return self.ending == "length"

    @property
    def flaw(self) -> str | None:
        """Return why this reply is unusable, as messages say it, or None if it is complete."""
        if self.ending == "refusal":
            return f"{_FLAWS['refusal']}: {excerpt(self.text or '', 120)!r}"
        if self.ending is not None:
            return _FLAWS[self.ending]
        if not (self.text or "").strip() and self.holds_thoughts:
            return "it holds thoughts and no reply"
        return None

    @property
    def holds_thoughts(self) -> bool:
        """Return True if the server sent the model's thoughts, in tags or in a field of their own."""
        return any(part in self.unread.get("message", ()) for part in _THOUGHTS)


_FLAWS: Mapping[StopReason, str] = {
    "length": "it was cut off before its end",
    "refusal": "the model refuses",
    "content_filter": "the provider's content filter ended it",
    "tool_calls": "it calls a tool instead",
}
_THOUGHTS = ("thoughts", "reasoning_content", "reasoning", "thinking")
"""Fields of a message, ours and those of servers, that hold the model's thoughts."""


def json_from_body(body: bytes, where: str) -> Json:
    """Parse a body as strict JSON in UTF-8, whatever its headers claim; raise ModelFailure if it is not."""
    if not body or body.isspace():
        raise ModelFailure("empty", f"{where}: the response has no body")
    try:
        return parse(body)
    except StrictJsonError as error:
        problem = f"{where}: the response is not JSON: {excerpt(str(error), 160)}"
        raise ModelFailure("invalid_json", problem) from None


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────


def misfit(path: str, value: Json, expected: str) -> ValueError:
    """Build the error for a value that is not what is expected at its path."""
    shown = "missing" if value is None else excerpt(reprlib.repr(value), 80)
    return ValueError(f"{path or 'the response'} is {shown}, expected {expected}")


def object_at(value: Json, path: str) -> Mapping[str, Json]:
    """Return the value if it is a JSON object; raise ValueError otherwise."""
    if isinstance(value, Mapping):
        return value
    raise misfit(path, value, "an object")


def string_at(value: Json, path: str) -> str | None:
    """Return the value if it is a string or None; raise ValueError otherwise."""
    if value is None or isinstance(value, str):
        return value
    raise misfit(path, value, "a string")


def text_at(content: Json, path: str) -> str | None:
    """Return the text of a message's content: a string, or a list of parts, whose text parts are joined."""
    if not isinstance(content, list) or not all(isinstance(part, Mapping) for part in content):
        return string_at(content, path)
    texts = [part.get("text") for part in content if part.get("type") in (None, "text", "output_text")]
    if not all(isinstance(text, str) for text in texts):
        raise misfit(path, content, "a string, or a list of parts with text")
    return "".join(texts)


def token_count(usage: Json, *names: str) -> int | None:
    """Return the sum of these token counts, or None if the first is missing or no plausible count."""
    if not isinstance(usage, Mapping):
        return None
    first, *others = (_plausible_count(usage.get(name)) for name in names)
    if first is None:
        return None
    return first + sum(count for count in others if count is not None)


def _plausible_count(value: Json) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9:
        return value
    return None


def server_name(value: Json) -> str | None:
    """Return a name from a server as printable text, or None if it is blank or no string."""
    return printable(value)[:200] if isinstance(value, str) and value.strip() else None


def unread_fields(part: Mapping[str, Json], read: Collection[str]) -> dict[str, Json]:
    """Return the fields of a part of a reply except those already read, its role and its index."""
    known = (*read, "role", "index")
    return {name: value for name, value in part.items() if value and name not in known}
