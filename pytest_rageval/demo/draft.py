"""What a language model is shown and gives back in the demo, without the client that asks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

PROMPT = "cited-1"
"""Version of the prompts for writing and ranking."""


class LlmError(Exception):
    """The model gave nothing that can be used; the message says why, in one line without credentials."""


class PromptPassage(NamedTuple):
    """A passage as the model is shown it: where it stands (path, headings, date), and its text."""

    place: str
    text: str


class ModelDraft(NamedTuple):
    """What the model wrote; `[2]` is the second passage that it was shown. None: they do not hold the answer."""

    text: str | None
    is_cut: bool = False


class LanguageModel(Protocol):
    """What the demo asks of a model; `demo.llm.Llm` is one at a server."""

    name: str

    async def relevance(
        self, question: str, history: Sequence[tuple[str, str]], passages: Sequence[PromptPassage]
    ) -> list[float]: ...

    async def write(
        self, question: str, history: Sequence[tuple[str, str]], passages: Sequence[PromptPassage]
    ) -> ModelDraft: ...
