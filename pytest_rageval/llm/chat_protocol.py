"""How do chat endpoints differ? What a judge asks of any of them, and what each says, in one form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.http.address import endpoint
from pytest_rageval.io.masking import public_url
from pytest_rageval.model import Json
from pytest_rageval.text import printable

Form = Literal["schema", "object", "text"]
"""How a reply in JSON is asked for: by its schema, as any JSON object, or by the prompt alone."""


class Message(NamedTuple):
    """One message of the conversation with a judge."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: a conversation, and what is wanted of the reply."""

    model: str
    messages: Sequence[Message]
    schema_name: str
    schema: Mapping[str, Json] | None
    temperature: float
    seed: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Manner:
    """How a server wants to be asked; it begins with everything and loses what the server refuses."""

    form: Form = "schema"
    sends_temperature: bool = True
    sends_seed: bool = True
    limit_name: str = "max_tokens"

    @property
    def left_out(self) -> tuple[str, ...]:
        """What replies should depend on and cannot, in the words of the record."""
        sent = {"temperature": self.sends_temperature, "seed": self.sends_seed, "schema": self.form == "schema"}
        return tuple(name for name, is_sent in sent.items() if not is_sent)


def after_refusal(manner: Manner, said: str) -> Manner | None:
    """The manner without what a refusal (400 or 422) names; None where it names nothing that could be left out."""
    said = said.lower()
    if manner.limit_name == "max_tokens" and "max_completion_tokens" in said:
        return replace(manner, limit_name="max_completion_tokens")
    if manner.sends_temperature and "temperature" in said:
        return replace(manner, sends_temperature=False)
    if manner.sends_seed and re.search(r"\bseed\b", said):
        return replace(manner, sends_seed=False)
    if manner.form != "text" and re.search("response_format|json_schema|json_object|schema|grammar|tool", said):
        return replace(manner, form="object" if manner.form == "schema" else "text")
    return None


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply: its text, whether it was cut at the limit, what it cost in tokens (None: not told), and who spoke."""

    text: str
    is_truncated: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None
    model: str | None = None
    build: str | None = None


class Wire(Protocol):
    """One kind of endpoint: where it listens, what it takes, how it replies."""

    chat_url: str
    models_url: str
    key_name: str
    """The environment variable that holds the key for it."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    def body(self, question: Question, manner: Manner) -> dict[str, Json]: ...

    def read(self, data: Json) -> ChatReply:
        """A reply of the kind; raises ValueError with what is wrong with it."""
        ...


def below(url: str, path: str) -> str:
    """The address of a path below `/v1` of a base URL; a version that the URL's own path names takes its place."""
    try:
        has_version = re.search(r"/v\d[^/]*(/|$)", urlsplit(url).path)
    except ValueError as error:
        raise SettingsError(f"{printable(public_url(url))!r} is not a URL: {error}") from None
    return endpoint(url, path if has_version else f"/v1{path}")


# ── reading what came ─────────────────────────────────────────────────────────────────────────────────────────


def data_of(body: bytes, where: str) -> Json:
    """The JSON of a body; JudgeError where it is none."""
    from pydantic_core import from_json

    if not body.strip():
        raise JudgeError("empty", f"{where}: the response has no body")
    try:
        return from_json(body.removeprefix(b"\xef\xbb\xbf"), allow_inf_nan=False)
    except ValueError as error:
        raise JudgeError("invalid_json", f"{where}: the response is not JSON: {printable(str(error))[:120]}") from None


def told_error(data: Json) -> str | None:
    """The error that a body of status 200 tells, as some gateways do."""
    error = data.get("error") if isinstance(data, Mapping) else None
    if not error:
        return None
    said = error.get("message", error) if isinstance(error, Mapping) else error
    return printable(" ".join(str(said)[:800].split()))[:200]


def count(usage: Json, *names: str) -> int | None:
    """The sum of these counts of tokens; None where the first is not told as a number that can be one."""
    found = [usage.get(name) for name in names] if isinstance(usage, Mapping) else []
    counts = [n for n in found if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 10**9]
    return sum(counts) if found and counts and counts[0] is found[0] else None


def server_name(value: Json) -> str | None:
    """A name that a server gives, if it is one."""
    return printable(value)[:200] if isinstance(value, str) and value.strip() else None


def text_of(content: Json) -> str:
    """The text of a message's content: a string, or a list of parts of which those of type text count."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, Mapping) for part in content):
        texts = [part.get("text") for part in content if part.get("type") in (None, "text", "output_text")]
        if all(isinstance(text, str) for text in texts):
            return "".join(map(str, texts))
    raise ValueError("the content of its message is neither text nor a list of parts")


def without_thoughts(text: str) -> str:
    """The text behind a leading `<think>…</think>`; what is thought is no reply. Cut off within, nothing is left."""
    begun = text.lstrip()
    if not begun.startswith("<think>"):
        return text
    return begun.partition("</think>")[2]
