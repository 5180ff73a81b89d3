"""What a judge is asked, and the judgement that it gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pytest_rageval.model.case import Json


@dataclass(frozen=True, slots=True)
class Rubric:
    """One kind of question to a judge.

    version         written by the author, raised when the meaning changes
    prompt_version  version and the first 12 hex digits of the file's SHA-256: no edit escapes caches and comparisons
    scale           lowest and highest value of every score
    step            what scores are whole multiples of, counted from the lowest; None: any number of the scale is one
    scores          metric name → the field of the reply that holds it
    prompt          text with placeholders `{question}` …; any other brace stands for itself
    schema          JSON Schema of the reply
    """

    name: str
    version: str
    prompt_version: str
    scale: tuple[float, float]
    scores: Mapping[str, str]
    prompt: str
    schema: Mapping[str, Json]
    step: float | None = None

    @property
    def instructions(self) -> str:
        """The part of the prompt that is the same in every request: the lines before the first placeholder."""
        first = PLACEHOLDER.search(self.prompt)
        return self.prompt if first is None else self.prompt[: self.prompt.rfind("\n", 0, first.start()) + 1]

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the prompt reads: only these are sent, hashed and stored."""
        return _variables(self.prompt)


VARIABLES = frozenset(
    ("question", "answer", "contexts", "citations", "references", "reference", "key_facts", "answerable", "history",
     "claim", "claims")
)  # fmt: skip
"""What a rubric's prompt may ask for; `JudgeRequest.variables` holds those that it does."""

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@lru_cache(maxsize=64)
def _variables(prompt: str) -> frozenset[str]:
    # Asked for once a request: the prompts are few, and thousands of characters long.
    return frozenset(PLACEHOLDER.findall(prompt)) & VARIABLES


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One question to a judge: which rubric, in which version, over which variables.

    `wording` is the rubric itself, with its prompt, scale and reply schema; None stands for the shipped one.
    """

    rubric: str
    prompt_version: str
    variables: Mapping[str, Json]
    trial: int = 0
    wording: Rubric | None = field(default=None, repr=False, compare=False)


_LASTING_STATUS = (401, 403, 404)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why asking, judging or scoring failed: a kind that programs can count and a message that people can read.

    `raw` is the reply that could not be read, cut at a few thousand characters; None where none came. `status` is that
    of a server's refusal, known to the process that called it alone: it is not recorded.
    """

    kind: str
    message: str
    raw: str | None = None
    status: int | None = None

    @property
    def is_lasting(self) -> bool:
        """Will another call end the same way: no connection, no such place, no permission?"""
        return self.kind.removeprefix("judge_") == "connect" or self.status in _LASTING_STATUS


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge said. `scores` by metric name, each on its own `scale`. One that failed has an `error` instead."""

    rubric: str
    scores: Mapping[str, float]
    scale: tuple[float, float] = (0.0, 1.0)
    reasoning: str = ""
    supported_claims: tuple[str, ...] = ()
    unsupported_claims: tuple[str, ...] = ()
    model: str = ""
    prompt_version: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    cached: bool = False
    heuristic: bool = False
    """True where no model judged: shown as such, and no default gate rests on it."""
    flags: tuple[str, ...] = ()
    """What makes this judgement doubtful, e.g. a reply that quotes the marker of its request."""
    extra: Mapping[str, Json] = field(default_factory=dict)
    error: Problem | None = None
    """Why there is no judgement."""
    unscored: tuple[str, ...] = ()
    """The metrics that it would have scored, had it not failed."""


class FailedJudgement(Exception):
    """A metric asked for a judgement that failed: that is an error of the metric."""

    def __init__(self, judgement: Judgement, problem: Problem) -> None:
        super().__init__(f"{problem.kind}: {problem.message}")
        self.judgement, self.problem = judgement, problem
