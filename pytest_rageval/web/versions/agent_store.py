"""Agents on disk, `data/agents/NAME/v3.toml`: list, check, read and save versions, and write them for a run."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from pytest_rageval.config.options import HTTP, SPELLINGS, kind_of
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.config.toml_text import toml_document
from pytest_rageval.errors import Problems, SettingsError, UnknownMetric
from pytest_rageval.io.atomic import write_bytes, write_text
from pytest_rageval.io.masking import public_unknown
from pytest_rageval.io.messages import shown_value
from pytest_rageval.judges.lexical_judge import LexicalJudge
from pytest_rageval.llm.model_spec import model_and_url
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.providers import BY_NAME, FORMS
from pytest_rageval.run.plan import make_plan
from pytest_rageval.runs.judge_notes import kinship_notes
from pytest_rageval.web.site import check_listed
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


def new_agent(name: str = "", description: str = "", judge: str = "lexical") -> Agent:
    """Return the default new agent: the demo system with two judged metrics."""
    return Agent(
        name=name,
        description=description,
        target="demo",
        judge=judge,
        metrics=FIRST_METRICS,
        thresholds=dict.fromkeys(FIRST_METRICS, DEFAULT_THRESHOLD),
    )


Problem = tuple[str, str]
"""A field of the form, or "" for the whole form, and what is wrong with it."""


def agent_problems(agent: Agent, registry: Registry, root: Path) -> list[Problem]:
    """Return all problems, including those that a run in the project at `root` would report for the configuration.

    Those of the keys come first, then those of the values without the wrong keys.
    """
    problems = [*_target_problems(agent), *_judge_problems(agent), *_threshold_problems(agent, registry)]
    # Twice: the first round may find wrong keys, which hide what is wrong with the values.
    for _ in range(2):
        agent = _with_defaults(agent, {field for field, _ in problems})
        try:
            with configured(agent, registry) as (settings, folder):
                return [*problems, *_problems_of_run(settings, registry, folder, root)]
        except SettingsError as error:
            problems += map(_field_problem, error.problems)
    return problems


def _problems_of_run(settings: Settings, registry: Registry, folder: Path, root: Path) -> Iterator[Problem]:
    if any(settings.secrets({})):  # a version file may end up in a repository
        yield (
            "headers",
            "a header, a parameter or a URL holds a key, which would stand in a plain file; write env:NAME as the "
            "header's value and set NAME in the environment",
        )
    unmade = Problems()
    unmade.attempt(check_listed, settings, root)
    unmade.attempt(make_plan, settings, registry, folder)
    yield from map(_field_problem, unmade)


def agent_warnings(agent: Agent, registry: Registry, models: Sequence[str] = ()) -> list[str]:
    """Return warnings that do not prevent saving.

    models  names of models that wrote uploaded answers
    """
    return [*self_judging(agent, models), *_unread_prompts(agent), *_unscored_thresholds(agent, registry)]


def self_judging(agent: Agent, models: Sequence[str] = ()) -> list[str]:
    """Return warnings if the judge is the model that it judges, or of its family, under any known name."""
    if agent.judge in ("lexical", "none") or agent.judge.startswith(("stub:", "nli:", "embedding:")):
        return []
    names: list[str] = []
    if agent.target_kind == "chat" and agent.target:
        names.append(agent.target)
    if agent.llm:
        names.append(agent.llm)
    names += models
    notes: list[str] = []
    for name in dict.fromkeys(names):
        notes += kinship_notes(name, [agent.judge])
    return notes


def _unread_prompts(agent: Agent) -> Iterator[str]:
    """Warn of own prompts that the heuristic judge never reads: it compares words."""
    if agent.judge == "lexical" and agent.prompts:
        yield (
            f"the heuristic judge lexical reads no prompt, and so not that of {', '.join(agent.prompts)}: choose a "
            "model as the judge for it to count"
        )


def _unscored_thresholds(agent: Agent, registry: Registry) -> Iterator[str]:
    """Warn of thresholds on metrics that the heuristic judge never scores: their gates have nothing to check."""
    if agent.judge != "lexical":
        return
    for name in agent.thresholds:
        rubrics = registry[name].rubrics
        if rubrics and LexicalJudge.rubrics.isdisjoint(rubrics):
            yield (
                f"{name} is not scored by the heuristic judge, so that its threshold would look at nothing, which "
                "fails a run: choose a model as the judge, or leave the threshold out"
            )


def _target_problems(agent: Agent) -> Iterator[Problem]:
    if agent.target is None or agent.target == "demo":
        return
    shown = shown_value(public_unknown(agent.target))
    kind, colon, rest = agent.target.partition(":")
    if kind_of(agent.target).form == "chat":
        try:
            model_and_url(kind, rest)
        except SettingsError as error:
            yield ("target", str(error))
    elif kind_of(agent.target) is HTTP:
        if not re.fullmatch(r"https?://[^\s/?#]+[^\s#]*", agent.target):
            yield ("target", f"is {shown}, expected a URL, as in http://localhost:8080")
    elif not colon or not re.fullmatch(r"[^\s:][^\s]*", agent.target) or not rest:
        yield ("target", f"is {shown}; targets are spelt {SPELLINGS}")


def _judge_problems(agent: Agent) -> Iterator[Problem]:
    kind, colon, rest = agent.judge.partition(":")
    if kind in BY_NAME and colon:
        try:
            model_and_url(kind, rest)
        except SettingsError as error:
            yield ("judge", str(error))
    elif agent.judge not in ("lexical", "none") and not (colon and rest.strip()) and agent.judge_base_url is None:
        yield (
            "judge",
            f"is {shown_value(public_unknown(agent.judge))}; write lexical, {', '.join(FORMS)}, nli:FOLDER or "
            "package.module:object, or give the base URL of the server that serves this model",
        )


def _threshold_problems(agent: Agent, registry: Registry) -> Iterator[Problem]:
    for name, threshold in agent.thresholds.items():
        if name not in registry:
            yield ("metrics", f"{shown_value(name)} is not a metric")
        elif not 0 <= threshold <= 1:
            yield (f"threshold.{name}", f"is {threshold:g}, expected a number from 0 to 1")


def _with_defaults(agent: Agent, fields: Collection[str]) -> Agent:
    """Return the agent with the defaults in these fields, so that the remaining fields can be checked."""
    empty = Agent(name=agent.name, target="demo").model_dump()
    changed = {name: empty[name] for name in fields if name in empty}
    if "target" in fields or "mapping" in fields:
        changed |= {"target": empty["target"], "mapping": None}
    kept = {name: value for name, value in agent.thresholds.items() if f"threshold.{name}" not in fields}
    if "metrics" in fields:
        kept = {}
    return agent.model_copy(update={"thresholds": kept, **changed})


_FIELDS = {
    "target": "target",
    "params": "params",
    "headers": "headers",
    "k": "k",
    "metrics": "metrics",
    "gates": "gates",
    "gate": "gates",
    "judge": "judge",
    "judge_base_url": "judge_base_url",
    "judge_temperature": "judge_temperature",
    "versions": "llm",
}
_MAPPING = "target.mapping."
_PROMPT = re.compile(r"rubrics/(?P<name>\w+)\.(?:txt|toml)[:\d]*: (?:prompt: )?(?P<message>.*)", re.DOTALL)
_PLACE = re.compile(r"(?:rageval\.toml: )?(?P<key>[a-z_]+)\b")


def _field_problem(problem: str) -> Problem:
    """Return a run's error message with the field whose name it begins with."""
    bare = problem.removeprefix("rageval.toml: ")
    if isinstance(problem, UnknownMetric) and not bare.startswith("gates."):
        return "metrics", bare
    prompt = _PROMPT.fullmatch(problem)
    if prompt is not None:
        return f"prompt.{prompt['name']}", prompt["message"]
    if bare.startswith(_MAPPING):
        return "mapping", bare.removeprefix(_MAPPING)
    match = _PLACE.match(problem)
    field = "" if match is None else _FIELDS.get(match["key"], "")
    return field, bare
