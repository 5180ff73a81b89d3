"""Systems that give the chunks of a dataset's cases: versions of agents, the project's target, the demo."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.config.project import Project
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import Problems, SettingsError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.label.opening import AskedSystem, asked_system
from pytest_rageval.model import EvalCase
from pytest_rageval.web.forms.new_run import VersionChoice, version_choice
from pytest_rageval.web.security.code_border import check_listed
from pytest_rageval.web.site import Site
from pytest_rageval.web.versions.agent import AgentVersion
from pytest_rageval.web.versions.agent_store import AgentStore

PROJECT, DEMO = "project", "demo"
"""How the project's target and the demo are named where systems are chosen; an agent's version is `shop-bot/3`."""


class SystemOption(NamedTuple):
    """A system that can be chosen: `value` in forms, `title` for people."""

    value: str
    title: str


def offered_systems(site: Site, versions: Iterable[AgentVersion]) -> list[SystemOption]:
    """What can be chosen, of the agent versions the one that was saved last first; the project's target, if its
    configuration names one and can be read."""
    try:
        target = site.project().settings.target
    except SettingsError:
        target = None
    asked = [version for version in versions if version.agent.target is not None]
    asked.sort(key=lambda version: version.created, reverse=True)
    options = [SystemOption(str(VersionChoice(version.slug, version.number)), version.title) for version in asked]
    if target is not None:
        options.append(SystemOption(PROJECT, f"the project's target: {target}"))
    return [*options, SystemOption(DEMO, "the demo")]


def chosen_systems(
    chosen: Sequence[str],
    project: Project,
    agents: AgentStore,
    cases: Sequence[EvalCase],
    environment: Mapping[str, str],
) -> list[AskedSystem]:
    """The systems that are named; SettingsError with all that cannot be asked. `environment`: holds their keys."""
    problems = Problems()
    systems = [problems.attempt(_system, name, project, agents, cases, environment) for name in chosen]
    problems.raise_all()
    return [system for system in systems if system is not None]


def _system(
    name: str, project: Project, agents: AgentStore, cases: Sequence[EvalCase], environment: Mapping[str, str]
) -> AskedSystem:
    if name == DEMO:
        return asked_system(project, DEMO, cases, environment)
    if name == PROJECT:
        if project.settings.target is None:
            raise SettingsError("the project has no target any more; choose another system for the chunks")
        return asked_system(project, project.settings.target, cases, environment)
    if (choice := version_choice(name)) is None:
        raise SettingsError(f"{shown_value(name)} names no system; choose one of the list")
    title = agents.read(*choice).title
    settings = _agent_project(choice, project, agents)
    if settings.settings.target is None:
        raise SettingsError(f"{title} names no system to ask; choose another for the chunks")
    try:
        return asked_system(settings, settings.settings.target, cases, environment, title)
    except SettingsError as error:
        raise SettingsError(*(f"{title}: {problem}" for problem in error.problems)) from None


def _agent_project(choice: VersionChoice, project: Project, agents: AgentStore) -> Project:
    """The project's folder with the configuration of an agent's version: asked as a run of it would ask."""
    with tempfile.TemporaryDirectory(prefix="rageval-label-") as folder:
        agents.write_configuration(choice.slug, choice.number, Path(folder))
        settings = load_settings(Path(folder), {"reports": str(project.reports)}, environment={})
    check_listed(settings, project.root)
    return Project(project.root, settings)
