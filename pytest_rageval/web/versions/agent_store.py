"""Agents on disk, `data/agents/NAME/v3.toml`: list, read and save versions, and write them for a run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.config.toml_text import toml_document
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_bytes, write_text
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.web.versions.agent import (
    DEFAULT_THRESHOLD,
    MAIN_RUBRIC,
    RUBRICS,
    Agent,
    AgentVersion,
    agent_table,
    agent_text,
    read_agent,
    write_prompts,
)
from pytest_rageval.web.versions.version_folder import VersionStore, saved_now, seal_problem, sealed_text

CONFIGURATION = "rageval.toml"
FIRST_METRICS = (MAIN_RUBRIC, "faithfulness")
"""Metrics that are on in a new agent, each with the default threshold."""


class AgentStore(VersionStore[AgentVersion]):
    """The agents of a data folder."""

    def __init__(self, data: Path, registry: Registry | None = None) -> None:
        super().__init__(data / "agents", ".toml")
        self.registry = load_registry([]) if registry is None else registry

    def read(self, slug: str, number: int) -> AgentVersion:
        content = self.content(slug, number)
        place = str(self.path(slug, number))
        version = _read_agent(content, slug, number, place, self.registry)
        flaw = seal_problem(content)
        return version if flaw is None else version.model_copy(update={"problem": f"{place} {flaw}"})

    def save(self, slug: str, agent: Agent, note: str, based_on: int, author: str = "") -> AgentVersion:
        """Write the next version, or raise NewerVersion if `based_on` (0: none) is not the newest any more."""
        created = saved_now()

        def version(number: int) -> AgentVersion:
            return AgentVersion(slug=slug, number=number, agent=agent, note=note, created=created, author=author)

        number = self.write_next(
            slug,
            based_on,
            lambda number: {".toml": sealed_text(agent_text(version(number), self.registry)).encode()},
        )
        return version(number)

    def write_configuration(self, slug: str, number: int, folder: Path) -> AgentVersion:
        """Write a version as the configuration of a run: the unchanged file and its rubrics.

        Raise SettingsError if the file was changed after it was saved.
        """
        version = self.read(slug, number)
        version.check_sound()
        write_bytes(folder / CONFIGURATION, self.content(slug, number))
        write_prompts(version.agent.prompts, folder / RUBRICS)
        return version


@lru_cache(maxsize=2_000)
def _read_agent(content: bytes, slug: str, number: int, place: str, registry: Registry) -> AgentVersion:
    """Return the version in a file, cached because lists name every version on every page."""
    return read_agent(content, slug, number, place, registry)


@contextmanager
def configured(agent: Agent, registry: Registry, reports: Path | None = None) -> Iterator[tuple[Settings, Path]]:
    """Yield the settings of a run of an agent, which may not be saved yet, and the folder that they stand in.

    Raise SettingsError with every problem of its configuration.
    """
    with tempfile.TemporaryDirectory(prefix="rageval-agent-") as name:
        folder = Path(name)
        try:
            write_text(folder / CONFIGURATION, toml_document(agent_table(agent, registry)))
        except ValueError as error:
            raise SettingsError(str(error)) from None
        write_prompts(agent.prompts, folder / RUBRICS)
        options = {} if reports is None else {"reports": str(reports)}
        yield load_settings(folder, options, environment={}), folder


def new_agent(name: str = "", description: str = "") -> Agent:
    """Return the default new agent: the demo system with two judged metrics."""
    return Agent(
        name=name,
        description=description,
        target="demo",
        metrics=FIRST_METRICS,
        thresholds=dict.fromkeys(FIRST_METRICS, DEFAULT_THRESHOLD),
    )
