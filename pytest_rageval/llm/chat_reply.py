"""Replies of chat endpoints in one form, and the readers of the parts that all kinds of endpoints share."""

from __future__ import annotations

import reprlib
from codecs import BOM_UTF8
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_rageval.io.strict_json import Positions, RefusedJson, parse
from pytest_rageval.llm.failure import ModelFailure
from pytest_rageval.model import Json
from pytest_rageval.text import printable

Ending = Literal["length", "refusal", "content_filter", "tool_calls"]
"""Why a reply is not a whole answer: cut at the limit, declined, held back by a filter, a call of a tool instead."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One reply.

    text           what the model says, without its thoughts; None where the server sent no text at all
    ending         why this is not a whole answer; None where the model came to its end
    finish_reason  the same in the server's own word
    tokens_in, tokens_out   None: not told
    model, build   who spoke, in the server's words
    usage          all that the server counts
    latency        milliseconds by phase, where the server tells them
    beside         what else the parts of the reply hold, by part: `reply`, `choice`, `message`
    """

    text: str | None
    ending: Ending | None = None
    finish_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    model: str | None = None
    build: str | None = None
    usage: Json = None
    latency: Mapping[str, float] = field(default_factory=dict)
    beside: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)

    @property
    def is_truncated(self) -> bool:
        return self.ending == "length"


def json_from_body(body: bytes, where: str) -> Json:
    """The strict JSON of a body, in UTF-8 whatever its headers claim; ModelFailure where it is none."""
    if not body or body.isspace():
        raise ModelFailure("empty", f"{where}: the response has no body")
    text = ""
    try:
        text = body.removeprefix(BOM_UTF8).decode()
        return parse(text)
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 at byte {error.start}"
    except RefusedJson:
        problem = Positions(text).oddities[0].message
    except RecursionError:
        problem = "it is nested too deep"
    except ValueError as error:
        problem = str(error)
    raise ModelFailure("invalid_json", f"{where}: the response is not JSON: {printable(problem)[:160]}")


def reported_error(data: Json) -> str | None:
    """The error that a body of status 200 reports, as some gateways do."""
    error = data.get("error") if isinstance(data, Mapping) else None
    if not error:
        return None
    message = error.get("message", error) if isinstance(error, Mapping) else error
    return printable(" ".join(str(message)[:800].split()))[:200]


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────


def misfit(path: str, value: Json, expected: str) -> ValueError:
    """A value is not what was expected at its path."""
    shown = "missing" if value is None else printable(reprlib.repr(value))[:80]
    return ValueError(f"{path or 'the response'} is {shown}, expected {expected}")


def object_at(value: Json, path: str) -> Mapping[str, Json]:
    """A JSON object."""
    if isinstance(value, Mapping):
        return value
    raise misfit(path, value, "an object")


def string_at(value: Json, path: str) -> str | None:
    """A string, or None where there is none."""
    if value is None or isinstance(value, str):
        return value
    raise misfit(path, value, "a string")


def text_at(content: Json, path: str) -> str | None:
    """The text of a message's content: a string, or a list of parts of which those of type text count."""
    if isinstance(content, list) and all(isinstance(part, Mapping) for part in content):
        texts = [part.get("text") for part in content if part.get("type") in (None, "text", "output_text")]
        if all(isinstance(text, str) for text in texts):
            return "".join(map(str, texts))
        raise misfit(path, content, "a string, or a list of parts with text")
    return string_at(content, path)


def token_count(usage: Json, *names: str) -> int | None:
    """The sum of these counts of tokens; None where the first is not told as a number that can be one."""
    values = [usage.get(name) for name in names] if isinstance(usage, Mapping) else []
    counts = [n for n in values if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 10**9]
    return sum(counts) if values and counts and counts[0] is values[0] else None


def server_name(value: Json) -> str | None:
    """A name that a server gives, if it is one."""
    return printable(value)[:200] if isinstance(value, str) and value.strip() else None


def without_thoughts(text: str) -> str:
    """The text behind a leading `<think>…</think>`; what is thought is no reply. Cut off within, nothing is left."""
    begun = text.lstrip()
    if not begun.startswith("<think>"):
        return text
    return begun.partition("</think>")[2]


def unread_fields(part: Mapping[str, Json], read: Collection[str]) -> dict[str, Json]:
    """What a part of a reply holds beside what is read, its role and its position."""
    return {name: value for name, value in part.items() if value and name not in read and name not in ("role", "index")}
