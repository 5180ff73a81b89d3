"""Rubrics and the requests to a judge that put them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pytest_rageval.model.case import Json


@dataclass(frozen=True, slots=True)
class Rubric:
    """A question to a judge.

    version         set by the author, raised when the meaning changes
    prompt_version  version and the first 12 hex digits of a SHA-256 over file and prompt: caches and comparisons see
                    every edit
    scale           lowest and highest value of every score
    step            scores are whole multiples of it, counted from the lowest; None allows any number of the scale
    scores          metric name → the field of the reply that holds it
    prompt          text with placeholders `{question}` …; any other brace stands for itself
    schema          JSON Schema of the reply
    task, reply, material
                    the parts that the prompt was made of: what to judge and how, the fields of the reply, and the
                    variables; empty for a prompt that brings its own fences
    """

    name: str
    version: str
    prompt_version: str
    scale: tuple[float, float]
    scores: Mapping[str, str]
    prompt: str
    schema: Mapping[str, Json]
    step: float | None = None
    task: str = ""
    reply: str = ""
    material: tuple[str, ...] = ()

    @property
    def instructions(self) -> str:
        """Return the constant part of the prompt: the lines before the first placeholder."""
        first = PLACEHOLDER.search(self.prompt)
        return self.prompt if first is None else self.prompt[: self.prompt.rfind("\n", 0, first.start()) + 1]

    @property
    def variables(self) -> frozenset[str]:
        """Return the variables in the prompt: only these are sent, hashed and stored."""
        return _variables(self.prompt)


VARIABLES = frozenset(
    (
        "question",
        "answer",
        "contexts",
        "citations",
        "references",
        "reference",
        "key_facts",
        "answerable",
        "history",
        "expected_outcome",
        "claim",
        "claims",
        "criterion",
        "first_answer",
        "second_answer",
    )
)
"""The variables that prompts can contain; `JudgeRequest.variables` holds those of one prompt."""

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@lru_cache(maxsize=64)
def _variables(prompt: str) -> frozenset[str]:
    # Cached, since each request needs it: prompts are few, and thousands of characters long.
    return frozenset(PLACEHOLDER.findall(prompt)) & VARIABLES


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One question to a judge: the rubric, its version, and its variables.

    `wording` is the rubric itself, with its prompt, scale and reply schema; None stands for the shipped one.
    """

    rubric: str
    prompt_version: str
    variables: Mapping[str, Json]
    trial: int = 0
    wording: Rubric | None = field(default=None, repr=False, compare=False)
