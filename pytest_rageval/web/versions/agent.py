"""An agent, which is what is tested: target, metrics with thresholds, judge and its prompts, in versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from pytest_rageval.config.options import kind_of
from pytest_rageval.web.versions.kept_version import KeptVersion

DEFAULT_THRESHOLD = 0.70
"""Of a judged metric, on the scale from 0 to 1, whatever the metric's own scale is."""
LONGEST_NOTE, LONGEST_PROMPT = 500, 100_000
"""Characters."""
ANSWERS_ONLY = "answers"
"""The kind of target of an agent that is never asked: its answers are uploaded."""


MEASURES = ("metrics", "thresholds", "gates", "judge", "judge_base_url", "judge_temperature", "prompts", "more")
"""Fields of an agent by which its answers are measured; the others say who is asked, and how."""


class Agent(BaseModel):
    """What one version of an agent holds, as a person typed it; the names are those of the configuration.

    target      as `target` in the configuration; None where only uploaded answers are scored
    mapping     for a URL: what is sent and where the answer stands
    llm         the model behind the system, as its owner states it: `versions.llm`
    thresholds  by metric, on the scale from 0 to 1; each is written as a gate
    gates       further gates, as they are written in the configuration
    prompts     by shipped rubric, where the judge's prompt is another one than the shipped
    more        settings that the form has no field for: kept as they are
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    target: str | None = None
    mapping: Mapping[str, Any] | None = None
    llm: str | None = None
    params: Mapping[str, Any] = Field(default_factory=dict)
    headers: Mapping[str, str] = Field(default_factory=dict)
    k: int = 5
    metrics: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = Field(default_factory=dict)
    gates: tuple[str, ...] = ()
    judge: str = "lexical"
    judge_base_url: str | None = None
    judge_temperature: float = 0.0
    prompts: Mapping[str, str] = Field(default_factory=dict)
    more: Mapping[str, Any] = Field(default_factory=dict)

    def measures_as(self, other: Agent) -> bool:
        """Are both held to the same thresholds by the same judge, so that their runs can be compared?"""
        return all(getattr(self, name) == getattr(other, name) for name in MEASURES)

    @property
    def target_kind(self) -> str:
        """demo, http, chat, python or answers."""
        if self.target is None:
            return ANSWERS_ONLY
        return kind_of(self.target).form

    @property
    def target_in_words(self) -> str:
        """The target as a page names it."""
        return self.target or "uploaded answers only"


class AgentVersion(KeptVersion):
    """A version of an agent as it is kept."""

    agent: Agent

    @property
    def name(self) -> str:
        return self.agent.name
