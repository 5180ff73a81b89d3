"""A model that is asked each question once: its replies are stored in a file, so that asking can go on any time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.errors import ModelFailure
from pytest_rageval.io.bounded_map import at_once
from pytest_rageval.io.lines import json_rows, read_lines
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.messages import Report
from pytest_rageval.llm.chat_model import ChatModel
from pytest_rageval.llm.chat_protocol import Message
from pytest_rageval.model import Json

LONGEST_STORED = 2**24
"""Bytes of a stored reply; what is longer is asked again."""
TEXT: dict[str, Json] = {"type": "string"}
TEXTS: dict[str, Json] = {"type": "array", "items": TEXT}


def json_object(**members: Json) -> dict[str, Json]:
    """Return the JSON Schema of an object with exactly these members."""
    return {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}


@dataclass(slots=True)
class Spent:
    """The requests so far and their cost; dollars are None if a price is unknown."""

    requests: int = 0
    kept: int = 0
    dollars: float | None = 0.0
    unreadable: int = 0
    stopped: str | None = None
    """Why asking ended early."""
    is_interrupted: bool = False

    @property
    def has_stopped_early(self) -> bool:
        return self.is_interrupted or self.stopped is not None

    def add(self, dollars: float | None) -> None:
        """Count a request and its cost."""
        self.requests += 1
        if dollars is None or self.dollars is None:
            self.dollars = None
        else:
            self.dollars += dollars


class StoredReplies:
    """Replies by key in a file, one a line; incomplete lines, as a killed process leaves them, count as none.

    They are masked as everything that is written: a model or a system may repeat a key.
    """

    def __init__(self, path: Path, mask: Mask) -> None:
        self._path = path
        self._mask = mask
        self._replies: dict[str, str] = {}
        if not path.exists():
            return
        report = Report(path.name)
        for row in json_rows(read_lines(path, report, LONGEST_STORED), report):
            key = row.record.get("key")
            reply = row.record.get("reply")
            if isinstance(key, str) and isinstance(reply, str):
                self._replies[key] = reply

    def get(self, key: str) -> str | None:
        return self._replies.get(key)

    def put(self, key: str, reply: str) -> None:
        kept = self._mask.text(reply)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "reply": kept}) + "\n")
        self._replies[key] = kept


def key_of(*parts: str) -> str:
    """Return the key of what is asked: a hash of all that the reply depends on."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


class ModelQuestion(NamedTuple):
    """One question to a model. `key` stands for all that its reply depends on, but for the model."""

    key: str
    prompt: str
    schema: dict[str, Json]
    schema_name: str
    most_out: int
    """Tokens of the reply at most."""


class AskedOnce:
    """A model whose replies are stored, each under the key of its question.

    `make_model` is called for each round of questions, since a model belongs to one event loop.
    """

    def __init__(self, make_model: Callable[[], ChatModel], replies: StoredReplies, *, concurrency: int = 4) -> None:
        self.spent = Spent()
        self._make_model = make_model
        self._model = make_model()
        self.identity = str(self._model.identity)
        self._replies = replies
        self._concurrency = concurrency

    def reply(self, question: ModelQuestion) -> str | None:
        """Return the stored reply, if there is one."""
        return self._replies.get(self._key(question))

    def estimate(self, questions: Iterable[ModelQuestion], usual_out: int) -> tuple[int, float | None]:
        """Return how many of the questions are still to be asked, and their cost in US dollars if prices are known."""
        prompts = [question.prompt for question in questions if self.reply(question) is None]
        return len(prompts), self.dollars_for(prompts, usual_out)

    def dollars_for(self, prompts: Iterable[str], usual_out: int) -> float | None:
        """Return the estimated cost of these prompts in US dollars, if prices are known."""
        return self._model.tariff.estimate(prompts, tokens_out=usual_out)

    def ask_all(self, questions: Sequence[ModelQuestion]) -> None:
        """Ask what is not stored yet. A failure or Ctrl-C ends it, with the reason in `spent`."""
        replies = at_once(self.ask, questions, self._concurrency, close=self.aclose, watch=lambda _: None)
        try:
            list(replies)
        except ModelFailure as failure:
            self.spent.stopped = why_stopped(failure)
        except KeyboardInterrupt:
            self.spent.is_interrupted = True
        self._model = self._make_model()

    async def ask(
        self, question: ModelQuestion, *, is_readable: Callable[[str], bool] = lambda _: True, trial: int = 0
    ) -> str | None:
        """Return the reply, stored or new; None for one that is empty or cut off. Raise ModelFailure.

        What is not readable is not stored, so that it can be asked for again, in another `trial`.
        """
        stored = self.reply(question)
        if stored is not None:
            self.spent.kept += 1
            return stored
        reply = await self._model.say(
            [Message("user", question.prompt)],
            schema=question.schema,
            schema_name=question.schema_name,
            max_tokens=question.most_out,
            trial=trial,
        )
        self.spent.add(reply.cost_usd)
        if reply.flaw is not None or reply.text is None:
            self.spent.unreadable += 1
            return None
        if is_readable(reply.text):
            self._replies.put(self._key(question), reply.text)
        else:
            self.spent.unreadable += 1
        return reply.text

    async def aclose(self) -> None:
        await self._model.aclose()

    def _key(self, question: ModelQuestion) -> str:
        return key_of(self.identity, question.key)


def why_stopped(failure: ModelFailure) -> str:
    """Return why asking a model ended."""
    return "as much is spent as --max-cost allows" if failure.kind == "budget" else str(failure)
