"""The problems of an agent by field, which prevent saving, and its warnings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from pytest_rageval.config.options import HTTP, SPELLINGS, kind_of
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import Problems, SettingsError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.judges.lexical_judge import LexicalJudge
from pytest_rageval.llm.model_spec import model_and_url
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.plan import make_plan
from pytest_rageval.providers import BY_NAME, FORMS
from pytest_rageval.runs.judge_notes import kinship_notes
from pytest_rageval.web.security.code_border import check_listed
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import configured

Problem = tuple[str, str]
"""A field of the form, or "" for the whole form, and what is wrong with it."""


def agent_problems(agent: Agent, registry: Registry, root: Path) -> list[Problem]:
    """Return all problems, including those that a run in the project at `root` would report for the configuration.

    Those of the keys come first, then those of the values without the wrong keys.
    """
    problems = [*_target_problems(agent), *_judge_problems(agent), *_threshold_problems(agent, registry)]
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
    tested = [agent.target] if agent.target_kind == "chat" and agent.target else []
    names = dict.fromkeys([*tested, *([agent.llm] if agent.llm else []), *models])
    return [note for name in names for note in kinship_notes(name, [agent.judge])]


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
    kind, colon, rest = agent.target.partition(":")
    if kind_of(agent.target).form == "chat":
        try:
            model_and_url(kind, rest)
        except SettingsError as error:
            yield ("target", str(error))
    elif kind_of(agent.target) is HTTP:
        if not re.fullmatch(r"https?://[^\s/?#]+[^\s#]*", agent.target):
            yield ("target", f"is {shown_value(agent.target)}, expected a URL, as in http://localhost:8080")
    elif not colon or not re.fullmatch(r"[^\s:][^\s]*", agent.target) or not rest:
        yield ("target", f"is {shown_value(agent.target)}; targets are spelt {SPELLINGS}")


_JUDGES = ("lexical", "none")


def _judge_problems(agent: Agent) -> Iterator[Problem]:
    kind, colon, rest = agent.judge.partition(":")
    if kind in BY_NAME and colon:
        try:
            model_and_url(kind, rest)
        except SettingsError as error:
            yield ("judge", str(error))
    elif agent.judge not in _JUDGES and not (colon and rest.strip()) and agent.judge_base_url is None:
        yield (
            "judge",
            f"is {shown_value(agent.judge)}; write lexical, {', '.join(FORMS)}, nli:FOLDER or "
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
    "target": "target", "params": "params", "headers": "headers", "k": "k", "metrics": "metrics", "gates": "gates",
    "gate": "gates", "judge": "judge", "judge_base_url": "judge_base_url", "judge_temperature": "judge_temperature",
    "versions": "llm",
}  # fmt: skip
_MAPPING = "target.mapping."
_PROMPT = re.compile(r"rubrics/(?P<name>\w+)\.(?:txt|toml)[:\d]*: (?:prompt: )?(?P<message>.*)", re.DOTALL)
_PLACE = re.compile(r"(?:rageval\.toml: )?(?P<key>[a-z_]+)\b")


def _field_problem(problem: str) -> Problem:
    """Return a run's error message with the field whose name it begins with."""
    if problem.startswith("unknown metric "):
        return "metrics", problem
    if (prompt := _PROMPT.fullmatch(problem)) is not None:
        return f"prompt.{prompt['name']}", prompt["message"]
    bare = problem.removeprefix("rageval.toml: ")
    if bare.startswith(_MAPPING):
        return "mapping", bare.removeprefix(_MAPPING)
    match = _PLACE.match(problem)
    return _FIELDS.get(match["key"], "") if match else "", bare
