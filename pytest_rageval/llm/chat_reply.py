"""Replies of chat endpoints in one form, and the readers of the parts that all kinds of endpoints share."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_rageval.errors import ModelFailure
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Json
from pytest_rageval.text import excerpt, printable

Ending = Literal["length", "refusal", "content_filter", "tool_calls"]
"""Why a reply is not a whole answer: cut at the limit, declined, held back by a filter, a call of a tool instead."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One reply.

    text           what the model says, without its thoughts (those stand in `beside`); None where no text was sent
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

    @property
    def flaw(self) -> str | None:
        """Why nothing is to be read from this reply, in the words of a message; None where it is a whole one."""
        if self.ending is not None:
            return _FLAWS[self.ending] + (f": {_quoted(self.text)}" if self.ending == "refusal" else "")
        if not (self.text or "").strip() and any(part in self.beside.get("message", ()) for part in _THOUGHTS):
            return "it holds thoughts and no reply"
        return None


_FLAWS: Mapping[Ending, str] = {
    "length": "it was cut off before its end",
    "refusal": "the model refuses",
    "content_filter": "the provider's content filter ended it",
    "tool_calls": "it calls a tool instead",
}
_THOUGHTS = ("thoughts", "reasoning_content", "reasoning", "thinking")
"""Fields of a message, ours and those of servers, that hold what the model thought."""


def _quoted(text: str | None) -> str:
    return repr(excerpt(text or "", 120))


def json_from_body(body: bytes, where: str) -> Json:
    """The strict JSON of a body, in UTF-8 whatever its headers claim; ModelFailure where it is none."""
    if not body or body.isspace():
        raise ModelFailure("empty", f"{where}: the response has no body")
    try:
        return parse(body)
    except StrictJsonError as error:
        problem = str(error)
    raise ModelFailure("invalid_json", f"{where}: the response is not JSON: {excerpt(problem, 160)}")


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────


def misfit(path: str, value: Json, expected: str) -> ValueError:
    """A value is not what was expected at its path."""
    shown = "missing" if value is None else excerpt(reprlib.repr(value), 80)
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


def thoughts_and_text(content: str | None) -> tuple[str, str | None]:
    """Return what a model thought at the very beginning of its reply, and what it says.

    Thoughts stand in a pair of tags. Servers that put the opening tag into the prompt send the closing one alone: what
    stands before it are thoughts, unless it holds an object of JSON, which may be the reply itself, or a tag of its
    own. Cut off within its thoughts, a model says nothing.
    """
    if content is None:
        return "", None
    if opening := _OPENING_TAG.match(content):
        thoughts, is_closed, text = content[opening.end() :].partition(f"</{opening[1]}>")
        return thoughts.strip(), text if is_closed else ""
    closing = _CLOSING_TAG.search(content)
    if closing is None or _NO_THOUGHT.search(content, 0, closing.start()):
        return "", content
    return content[: closing.start()].strip(), content[closing.end() :]


_TAGS = "(think|thinking|thought|thoughts|reasoning)"
_OPENING_TAG = re.compile(rf"[\s\ufeff]*<{_TAGS}>")
_CLOSING_TAG = re.compile(rf"</{_TAGS}>")
_NO_THOUGHT = re.compile(rf"\{{\s*[\"}}]|<{_TAGS}>")


def unread_fields(part: Mapping[str, Json], read: Collection[str]) -> dict[str, Json]:
    """What a part of a reply holds beside what is read, its role and its position."""
    return {name: value for name, value in part.items() if value and name not in read and name not in ("role", "index")}
