"""The systems that a labelling page offers for chunks, and the one that is selected until a person chooses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from pytest_rageval.io.masking import public_target
from pytest_rageval.web.run_list import Rows
from pytest_rageval.web.versions.agent import AgentVersion
from pytest_rageval.web.versions.version_folder import VersionChoice

PROJECT, DEMO = "project", "demo"
"""The form values of the project's target and the demo; an agent version is `shop-bot/3`."""


class SystemOption(NamedTuple):
    """A selectable system: `value` for forms, `title` for display, and whether it has answered before."""

    value: str
    title: str
    has_answered: bool


def offered_systems(target: str | None, versions: Iterable[AgentVersion], runs: Rows) -> list[SystemOption]:
    """Return the agent versions, the last saved first, then the project's target and the demo.

    runs  all runs, of which those with an answer show which system works
    """
    answered = _answered(runs)
    asked = [version for version in versions if version.agent.target is not None]
    asked.sort(key=lambda version: version.created, reverse=True)
    options = []
    for version in asked:
        value = str(VersionChoice(version.slug, version.number))
        options.append(SystemOption(value, version.title, value in answered))
    if target is not None:
        shown = public_target(target)  # as runs name it, too
        options.append(SystemOption(PROJECT, f"the project's target: {shown}", shown in answered))
    return [*options, SystemOption(DEMO, "the demo", has_answered=True)]


def preselected_systems(options: Sequence[SystemOption]) -> list[str]:
    """Return the first system that has answered before: a new one may not be there, and then no page opens."""
    return [option.value for option in options if option.has_answered][:1]


def _answered(runs: Rows) -> Set[str]:
    """Return the agent versions and the targets of pytest that answered a case of a run."""
    answered = set()
    for run in runs:
        # A run of errors alone shows that the system did not answer.
        if run.past is None or run.past.outcomes.get("error", 0) >= run.past.total:
            continue
        if run.agent is not None and run.agent_version is not None:
            answered.add(str(VersionChoice(run.agent, run.agent_version)))
        elif run.target is not None:
            answered.add(run.target)
    return answered
