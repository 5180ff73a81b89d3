"""What the templates of agents get: the list, an agent, its form, the differences of two versions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.metrics.registry import Metric
from pytest_rageval.web.first_question import FirstAnswer
from pytest_rageval.web.forms import FormState
from pytest_rageval.web.keys import KeyState
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.pages.agent_form import AgentForm
from pytest_rageval.web.run_rows import RunRow
from pytest_rageval.web.versions.agent import Agent, AgentVersion
from pytest_rageval.web.versions.value_changes import ValueChange


@dataclass(frozen=True, kw_only=True)
class AgentsPage(PageContext):
    """The list of agents."""

    template = "agents.html"
    versions: Sequence[AgentVersion]
    """The newest version of each agent that the search finds."""
    all: int
    """The number of agents, found or not."""
    problems: Sequence[str]
    """The files that cannot be read."""
    q: str
    """The words that are searched for."""
    folder: Path
    """The folder of the files of agents."""


@dataclass(frozen=True, kw_only=True)
class AgentPage(PageContext):
    """A version of an agent."""

    template = "agent.html"
    version: AgentVersion
    """The version that is shown."""
    agent: Agent
    """Its content."""
    versions: Sequence[AgentVersion]
    """All versions of the agent, the newest first."""
    problems: Sequence[str]
    """The versions that cannot be read."""
    held: Sequence[tuple[Metric, float, str]]
    """The metrics with a threshold: metric, threshold, gate."""
    others: Sequence[tuple[str, str]]
    """The metrics without a threshold, each with its own gate in words; '' if it has none."""
    titles: Mapping[str, str]
    """The names that people know some metrics by."""
    keys: Sequence[KeyState]
    """The keys without which a run of the agent fails."""
    warnings: Sequence[str]
    """What is risky about the agent, a sentence each."""
    newest: int
    """The number of the newest version."""
    rivals: Sequence[tuple[RunRow, RunRow]]
    """Runs of other agents on the same datasets, each with the run of this one."""
    place: Path
    """The file of the version."""


class MetricChoice(NamedTuple):
    """A metric of the form, with its definition in one line and its own gate in words."""

    metric: Metric
    definition: str
    gate: str


class WantedKey(NamedTuple):
    """The key that a server wants: the variable that holds it, and the header that sends it; "" for a provider's."""

    variable: str
    header: str


class AgentConflict(NamedTuple):
    """A version that another window saved while the form was filled in."""

    base: int
    """The number of the version that the form began with."""
    number: int
    """The number of the version that was saved meanwhile."""
    theirs: Sequence[ValueChange]
    """What that version changed."""
    mine: Sequence[ValueChange]
    """What the form would change in it."""
    note: str
    """The note of that version."""


@dataclass(frozen=True, kw_only=True)
class AgentFormPage(PageContext):
    """The form of an agent."""

    template = "agent_form.html"
    form: FormState[AgentForm]
    """The typed values and their errors."""
    original: AgentVersion | None
    """The version that the values come from; None for a new agent."""
    based_on: int
    """The number of the newest version when the form was opened; 0 for a new agent."""
    main: Sequence[MetricChoice]
    """The metrics that are shown first."""
    others: Sequence[MetricChoice]
    """All other metrics, which are folded."""
    titles: Mapping[str, str]
    """The names that people know some metrics by."""
    are_others_open: bool
    """The other metrics are unfolded: one is on, or has an error."""
    rubrics: Sequence[str]
    """The rubrics whose prompts can be edited."""
    main_rubric: str
    """The rubric whose prompt is edited most."""
    targets: Iterable[tuple[str, str]]
    """The kinds of systems, with their titles."""
    chat_providers: Sequence[tuple[str, str]]
    """The providers of models that can be asked, with their titles."""
    judges: Sequence[tuple[str, str]]
    """The kinds of judges, with their titles."""
    models: Mapping[str, Sequence[str]]
    """The suggested models by provider."""
    keys: Mapping[str, KeyState]
    """Whether the key of each provider is set."""
    on: Collection[str]
    """The metrics that are on."""
    are_prompts_open: bool
    """The prompts are unfolded: one was just reset, or has an error."""
    conflict: AgentConflict | None = None
    """The version that another window saved meanwhile; None if there is none."""
    told: FirstAnswer | None = None
    """The reply to the one question; None if it was not asked."""
    wanted_key: WantedKey | None = None
    """The key that the server asks for; None if it asks for none."""
    key_problem: str = ""
    """Why a typed key cannot be kept; '' if it was, or if none was typed."""
    judge_reason: str = ""
    """Why the preselected judge of a new agent was chosen."""
    has_hidden_key: bool = False
    """A file written by hand holds a key, which the form does not show."""


@dataclass(frozen=True, kw_only=True)
class AgentDiffPage(PageContext):
    """The differences of two versions of an agent."""

    template = "agent_diff.html"
    before: AgentVersion
    """The earlier version."""
    after: AgentVersion
    """The later version."""
    numbers: Sequence[int]
    """The numbers of all versions, the newest first."""
    slug: str
    """The agent's name in addresses."""
    changes: Sequence[ValueChange]
    """The values that differ."""
