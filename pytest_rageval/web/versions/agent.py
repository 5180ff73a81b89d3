"""The model of an agent (target, metrics, thresholds, judge, prompts) and the TOML of its versions."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_rageval.config.files import AGENT
from pytest_rageval.config.options import UPLOADED, kind_of
from pytest_rageval.config.toml_text import toml_document
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_text
from pytest_rageval.io.masking import public_params, public_target
from pytest_rageval.io.messages import shown_value
from pytest_rageval.judges.rubrics import load_rubric, rubric_names
from pytest_rageval.llm.json_exchange import MARKER
from pytest_rageval.metrics.registry import Metric, Registry
from pytest_rageval.text import excerpt
from pytest_rageval.web.versions.version_folder import StoredVersion

MAIN_RUBRIC = "reference_match"
"""The rubric that compares an answer with its reference; forms show its prompt first."""


def editable_rubrics() -> tuple[str, ...]:
    """Return the shipped rubrics whose prompts may be replaced, the main one first."""
    return (MAIN_RUBRIC, *(name for name in rubric_names() if name != MAIN_RUBRIC))


def default_prompt(rubric: str) -> str:
    """Return the shipped prompt."""
    return load_rubric(rubric).prompt.strip("\n") + "\n"


def own_prompt(rubric: str, written: str) -> str | None:
    """Return a prompt in its stored form, or None if it is blank or the shipped one."""
    # Browsers send the lines of a text area with CRLF (HTML): else each save would change the prompt.
    text = written.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if not text.strip() or text == default_prompt(rubric).strip("\n"):
        return None
    return f"{text}\n"


def write_prompts(prompts: Mapping[str, str], folder: Path) -> None:
    """Write each prompt as the rubric file that replaces the shipped one.

    A prompt with the marker separates the judged text itself, as the shipped ones do, and needs the whole rubric file.
    Any other prompt is plain text.
    """
    for rubric, prompt in prompts.items():
        if f"{{{MARKER}}}" in prompt:
            write_text(folder / f"{rubric}.toml", _whole_rubric(rubric, prompt))
        else:
            write_text(folder / f"{rubric}.txt", prompt)


def _whole_rubric(name: str, prompt: str) -> str:
    shipped = load_rubric(name)
    table: dict[str, Any] = {"version": shipped.version, "scale": list(shipped.scale)}
    if shipped.step is not None:
        table["step"] = shipped.step
    return toml_document({**table, "prompt": prompt, "scores": dict(shipped.scores), "schema": dict(shipped.schema)})


DEFAULT_THRESHOLD = 0.70
"""The default threshold of a judged metric, on a scale from 0 to 1 whatever the metric's own scale is."""
LONGEST_NOTE, LONGEST_PROMPT = 500, 100_000
"""Characters."""


class Agent(BaseModel):
    """The content of an agent version, with the names of the configuration.

    target      as in the configuration; None if only uploaded answers are scored
    mapping     for a URL: the request, and the place of the answer in the reply
    llm         the model behind the system, as its owner states it: `versions.llm`
    thresholds  by metric, on a scale from 0 to 1; each is written as a gate
    gates       further gates in the format of the configuration
    prompts     the judge's prompts that replace shipped ones, by rubric
    more        settings without a form field, kept unchanged
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

    @property
    def target_kind(self) -> str:
        """Return the kind: demo, http, chat, python or answers."""
        if self.target is None:
            return UPLOADED
        return kind_of(self.target).form

    @property
    def target_in_words(self) -> str:
        """Return the target for display."""
        return "uploaded answers only" if self.target is None else public_target(self.target)

    @property
    def public(self) -> Agent:
        """Return the agent for display: without the keys that a file written by hand may hold.

        Prompts and gates stay as they are: a URL in a prompt is part of its text.
        """
        mapping = self.mapping
        if mapping is not None and isinstance(mapping.get("request"), Mapping):
            mapping = {**mapping, "request": public_params(mapping["request"])}
        shown = {
            "target": None if self.target is None else public_target(self.target),
            "mapping": mapping,
            "params": public_params(self.params),
            "headers": _public_headers(self.headers),
            "judge": public_target(self.judge),
            "judge_base_url": None if self.judge_base_url is None else public_target(self.judge_base_url),
            "more": public_params(self.more),
        }
        return self.model_copy(update=shown)


def _public_headers(headers: Mapping[str, str]) -> dict[str, str]:
    # `env:NAME` names the key, and is none.
    of_environment = {name: value for name, value in headers.items() if value.startswith("env:")}
    return {**public_params(headers), **of_environment}


class AgentVersion(StoredVersion):
    """A stored version of an agent."""

    agent: Agent

    @property
    def name(self) -> str:
        return self.agent.name

    @property
    def texts(self) -> tuple[str, ...]:
        agent = self.agent.public
        return self.slug, agent.name, agent.description, agent.target_in_words, agent.judge, *agent.tags


RUBRICS = "rubrics"
"""The folder of an agent's prompts, relative to the configuration of a run."""
_PLAIN = ("params", "headers", "k", "judge", "judge_base_url", "judge_temperature")


def agent_table(agent: Agent, registry: Registry) -> dict[str, Any]:
    """Return the configuration of an agent as a table, without the keys that only the web app reads."""
    table: dict[str, Any] = deepcopy(dict(agent.more))
    defaults = Agent(name=agent.name)
    if agent.target is not None:
        table["target"] = agent.target
    if agent.mapping is not None:
        url = {} if agent.target is None else {"url": agent.target}
        table["target"] = {**url, "mapping": agent.mapping}
    for name in _PLAIN:
        value = getattr(agent, name)
        if name in ("k", "judge") or value != getattr(defaults, name):
            table[name] = value
    if agent.llm is not None:
        table["versions"] = {**table.get("versions", {}), "llm": agent.llm}
    if agent.metrics:
        table["metrics"] = {"enabled": list(agent.metrics), **table.get("metrics", {})}
    gates = [*threshold_gates(agent.thresholds, registry), *agent.gates]
    if gates:
        table["gates"] = {"case": gates}
    if agent.prompts:
        table[RUBRICS] = RUBRICS
    return table


def threshold_gates(thresholds: Mapping[str, float], registry: Registry) -> list[str]:
    """Return the gates of thresholds: a minimum share of the metric's scale, or a maximum if lower is better."""
    return [threshold_gate(registry[name], threshold) for name, threshold in thresholds.items()]


def threshold_gate(metric: Metric, threshold: float) -> str:
    """Return the gate of a threshold: 0.7 of `groundedness` → `groundedness >= 70%`, which is 3.5 of 5."""
    sign = ">=" if metric.better == "higher" else "<="
    share = round(threshold * 100, 10)  # 0.29 * 100 is 28.999999999999996
    return f"{metric.name} {sign} {share:g}%"


def agent_text(version: AgentVersion, registry: Registry) -> str:
    """Return the TOML of a version, without its seal."""
    agent = version.agent
    about: dict[str, Any] = {
        "name": agent.name,
        "version": version.number,
        "created": version.created,
        "note": version.note,
        "author": version.author,
        "description": agent.description,
        "tags": list(agent.tags),
        "thresholds": dict(agent.thresholds),
        "prompts": dict(agent.prompts),
    }
    table = agent_table(agent, registry)
    # TOML has no null, and an empty value says nothing.
    table[AGENT] = {key: value for key, value in about.items() if value}
    return toml_document(table)


def read_agent(content: bytes, slug: str, number: int, place: str, registry: Registry) -> AgentVersion:
    """Return the version in a file, or raise SettingsError if it is invalid."""
    try:
        table = tomllib.loads(content.decode("utf-8-sig").replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits and very deep nesting
        raise SettingsError(f"{place}: not valid TOML: {excerpt(str(error))}") from None
    about = table.pop(AGENT, {})
    if not isinstance(about, dict):
        raise SettingsError(f"{place}: agent is no table; write [agent]")
    _check_prompts(about.get("prompts", {}), place)
    try:
        agent = Agent.model_validate(_fields(table, about, registry) | {"name": about.get("name") or slug})
        remarks = {name: about.get(name, "") for name in ("note", "created", "author")}
        return AgentVersion(slug=slug, number=number, agent=agent, **remarks)
    except ValidationError as error:
        problems = []
        for flaw in error.errors():
            key = ".".join(map(str, flaw["loc"]))
            problems.append(f"{place}: {key}: {flaw['msg']}")
        raise SettingsError(*problems) from None


def _check_prompts(prompts: Any, place: str) -> None:
    """Raise SettingsError for unknown rubrics: each name becomes a file name."""
    for name in prompts if isinstance(prompts, dict) else ():
        if name not in editable_rubrics():
            known = ", ".join(editable_rubrics())
            raise SettingsError(f"{place}: agent.prompts.{shown_value(name)} is no shipped rubric; known: {known}")


def _fields(table: dict[str, Any], about: Mapping[str, Any], registry: Registry) -> dict[str, Any]:
    """Return the fields of an agent from the tables of its file; other keys stay in `more`."""
    fields: dict[str, Any] = {name: about[name] for name in ("description", "tags", "prompts") if name in about}
    fields |= {name: table.pop(name) for name in _PLAIN if name in table}
    target = table.pop("target", None)
    if isinstance(target, dict):
        fields |= {"target": target.get("url"), "mapping": target.get("mapping")}
    else:
        fields["target"] = target
    if fields.get("prompts") and table.get(RUBRICS) == RUBRICS:
        del table[RUBRICS]
    fields |= _move_key(table, "versions", "llm", "llm") | _move_key(table, "metrics", "enabled", "metrics")
    fields["thresholds"] = _known_thresholds(about.get("thresholds", {}), registry)
    fields["gates"] = _other_gates(table.pop("gates", {}), fields["thresholds"], registry)
    return fields | {"more": table}


def _move_key(table: dict[str, Any], name: str, key: str, field: str) -> dict[str, Any]:
    """Move one key of an inner table to a field. Remove the table if it is empty then."""
    inner = table.get(name)
    if not isinstance(inner, dict) or key not in inner:
        return {}
    taken = {field: inner.pop(key)}
    if not inner:
        del table[name]
    return taken


def _known_thresholds(thresholds: Any, registry: Registry) -> Any:
    """Return the thresholds of known metrics. Gates of other metrics stay in `gates`."""
    if not isinstance(thresholds, dict):
        return thresholds  # the model rejects it
    names = {metric.name for metric in registry}
    return {name: value for name, value in thresholds.items() if name in names}


def _other_gates(gates: Any, thresholds: Any, registry: Registry) -> Any:
    """Return the gates in a file that do not come from a threshold; gates of the run get the prefix `run`."""
    if not isinstance(gates, dict) or not isinstance(thresholds, dict):
        return None  # the model rejects it
    of_cases = gates.get("case", [])
    of_run = gates.get("run", [])
    for written in (of_cases, of_run):
        if not isinstance(written, list) or not all(isinstance(gate, str) for gate in written):
            return None
    if not all(isinstance(threshold, int | float) for threshold in thresholds.values()):
        return None
    # A threshold and its gate stand both in the file: read as two, the gate would survive its threshold.
    derived = set(threshold_gates(thresholds, registry))
    others = [gate for gate in of_cases if gate not in derived]
    others += [gate if gate.startswith("run ") else f"run {gate}" for gate in of_run]
    return tuple(others)
