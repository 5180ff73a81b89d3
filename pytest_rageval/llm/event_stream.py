"""Replies of chat endpoints that arrive as a stream of events: when their first token came, and what they amount to.

Source: OpenAI's API reference, *The chat completion chunk object*; the HTML standard, *Server-sent events*.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_rageval.errors import ModelFailure
from pytest_rageval.llm.chat_protocol import json_from_body
from pytest_rageval.model import Json
from pytest_rageval.text import excerpt

_END = b"[DONE]"
LONGEST_BEGUN = 200
"""Bytes that a token can have begun with: the name of its member and the white space behind it."""
_TOKEN = re.compile(rb'"(?:content|reasoning_content|reasoning)"\s*:\s*"[^"]')
"""A piece of a text that is not empty, in the JSON of an event."""


class FirstToken:
    """The time from sending a request until the first token of its streamed reply; thoughts count as tokens."""

    def __init__(self) -> None:
        self.ms: float | None = None
        self._sent_at = time.perf_counter()
        self._unread = b""

    def restart(self) -> None:
        """Note that the request is sent now, for the first time or once more."""
        self.ms = None
        self._unread = b""
        self._sent_at = time.perf_counter()

    def read(self, piece: bytes) -> None:
        """Look for the first token in the next piece of the body."""
        if self.ms is not None:
            return
        self._unread += piece
        if _TOKEN.search(self._unread):
            self.ms = round((time.perf_counter() - self._sent_at) * 1000, 3)
        # What was searched holds no token: only a begun one is kept, so that no part is searched again and again.
        self._unread = self._unread.rpartition(b"\n")[2][-LONGEST_BEGUN:]


def completion_of(body: bytes, where: str) -> Json:
    """Return the chat completion that a stream of chunks amounts to; raise ModelFailure if it is none.

    A server that does not stream has sent the completion itself.
    """
    if body.lstrip()[:1] == b"{":
        return json_from_body(body, where)
    completion: dict[str, Json] = {}
    joined = _JoinedChoice()
    for event in _events(body):
        if event.strip() == _END:
            joined.is_ended = True
            break
        chunk = json_from_body(event, where)
        if not isinstance(chunk, Mapping):
            raise ModelFailure("invalid_response", f"{where}: an event of the stream is no object")
        if chunk.get("error"):
            raise ModelFailure("invalid_response", f"{where}: the stream ends with {excerpt(str(chunk['error']), 160)}")
        joined.add(chunk.get("choices"))
        completion |= {name: value for name, value in chunk.items() if name != "choices" and value is not None}
    if not joined.is_ended:
        raise ModelFailure("invalid_response", f"{where}: the stream ended before the answer did")
    completion.pop("object", None)
    return {**completion, "choices": [joined.choice()]}


def _events(body: bytes) -> Iterator[bytes]:
    """Yield the data of each event; lines of one event are joined."""
    lines: list[bytes] = []
    for line in re.split(rb"\r\n|\n|\r", body):
        name, _, value = line.partition(b":")
        if name == b"data":
            lines.append(value.removeprefix(b" "))
        elif not line and lines:
            yield b"\n".join(lines)
            lines = []
    if lines:
        yield b"\n".join(lines)


class _JoinedChoice:
    """The first choice of a stream: the texts of its deltas joined, all else as it came last."""

    def __init__(self) -> None:
        self.is_ended = False
        self._message: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._members: dict[str, Json] = {}

    def add(self, choices: Json) -> None:
        """Add the delta of the first choice; the last chunk, which holds the usage, has none."""
        if not isinstance(choices, list):
            return
        for choice in choices:
            if not isinstance(choice, Mapping) or choice.get("index", 0) != 0:
                continue
            members = {name: value for name, value in choice.items() if name != "delta" and value is not None}
            self._members |= members
            if members.get("finish_reason"):
                self.is_ended = True
            delta = choice.get("delta")
            if isinstance(delta, Mapping):
                self._add_delta(delta)

    def _add_delta(self, delta: Mapping[str, Json]) -> None:
        for name, value in delta.items():
            if isinstance(value, str) and name != "role":
                self._texts.setdefault(name, []).append(value)
            elif value is not None:
                self._message[name] = value

    def choice(self) -> dict[str, Json]:
        """Return the choice as a reply that is not streamed has it."""
        texts = {name: "".join(parts) for name, parts in self._texts.items()}
        return {**self._members, "message": {**self._message, **texts}}
