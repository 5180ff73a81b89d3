"""An agent version as TOML: a configuration of rageval, with a table `[agent]` for what only the web app reads."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from pytest_rageval.config.files import AGENT
from pytest_rageval.config.toml_text import toml_document
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.metrics.registry import Metric, Registry
from pytest_rageval.text import excerpt
from pytest_rageval.web.versions.agent import Agent, AgentVersion
from pytest_rageval.web.versions.judge_prompts import editable_rubrics

RUBRICS = "rubrics"
"""The folder in which a run finds the prompts of its agent, relative to its configuration."""
_PLAIN = ("params", "headers", "k", "judge", "judge_base_url", "judge_temperature")


def agent_table(agent: Agent, registry: Registry) -> dict[str, Any]:
    """The configuration of an agent as a table, without what only the web app reads."""
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
    if gates := [*threshold_gates(agent.thresholds, registry), *agent.gates]:
        table["gates"] = {"case": gates}
    if agent.prompts:
        table[RUBRICS] = RUBRICS
    return table


def threshold_gates(thresholds: Mapping[str, float], registry: Registry) -> list[str]:
    """The gates of thresholds: a share of the metric's scale, at least, or at most where lower is better."""
    return [threshold_gate(registry[name], threshold) for name, threshold in thresholds.items()]


def threshold_gate(metric: Metric, threshold: float) -> str:
    """`groundedness` with 0.7 → `groundedness >= 70%`, which is 3.5 of 5."""
    return f"{metric.name} {'>=' if metric.better == 'higher' else '<='} {round(threshold * 100, 10):g}%"


def agent_text(version: AgentVersion, registry: Registry) -> str:
    """The TOML of a version, without its seal."""
    agent = version.agent
    about: dict[str, Any] = {
        "name": agent.name, "version": version.number, "created": version.created, "note": version.note,
        "description": agent.description, "tags": list(agent.tags), "thresholds": dict(agent.thresholds),
        "prompts": dict(agent.prompts),
    }  # fmt: skip
    return toml_document({**agent_table(agent, registry), AGENT: {key: value for key, value in about.items() if value}})


def read_agent(content: bytes, slug: str, number: int, place: str, registry: Registry) -> AgentVersion:
    """The version that a file holds; SettingsError where it holds none."""
    try:
        table = tomllib.loads(content.decode("utf-8-sig").replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits and endless nesting, too
        raise SettingsError(f"{place}: not valid TOML: {excerpt(str(error))}") from None
    about = table.pop(AGENT, {})
    if not isinstance(about, dict):
        raise SettingsError(f"{place}: agent is no table; write [agent]")
    _check_prompts(about.get("prompts", {}), place)
    try:
        agent = Agent.model_validate(_fields(table, about, registry) | {"name": about.get("name") or slug})
        return AgentVersion(
            slug=slug, number=number, agent=agent, note=about.get("note", ""), created=about.get("created", "")
        )
    except ValidationError as error:
        flaws = (f"{'.'.join(map(str, flaw['loc']))}: {flaw['msg']}" for flaw in error.errors())
        raise SettingsError(*(f"{place}: {flaw}" for flaw in flaws)) from None


def _check_prompts(prompts: Any, place: str) -> None:
    """Each becomes a file of its rubric's name, so that no other name may stand there."""
    for name in prompts if isinstance(prompts, dict) else ():
        if name not in editable_rubrics():
            known = ", ".join(editable_rubrics())
            raise SettingsError(f"{place}: agent.prompts.{shown_value(name)} is no shipped rubric; known: {known}")


def _fields(table: dict[str, Any], about: Mapping[str, Any], registry: Registry) -> dict[str, Any]:
    """Fields of an agent from the tables of its file; what no field takes stays in `more`."""
    fields: dict[str, Any] = {name: about[name] for name in ("description", "tags", "prompts") if name in about}
    fields |= {name: table.pop(name) for name in _PLAIN if name in table}
    target = table.pop("target", None)
    if isinstance(target, dict):
        fields |= {"target": target.get("url"), "mapping": target.get("mapping")}
    else:
        fields["target"] = target
    if fields.get("prompts") and table.get(RUBRICS) == RUBRICS:
        del table[RUBRICS]
    fields |= _taken(table, "versions", "llm", "llm") | _taken(table, "metrics", "enabled", "metrics")
    fields["thresholds"] = _known_thresholds(about.get("thresholds", {}), registry)
    fields["gates"] = _other_gates(table.pop("gates", {}), fields["thresholds"], registry)
    return fields | {"more": table}


def _taken(table: dict[str, Any], name: str, key: str, field: str) -> dict[str, Any]:
    """One key of an inner table as a field; the others stay, and an empty table goes."""
    inner = table.get(name)
    if not isinstance(inner, dict) or key not in inner:
        return {}
    taken = {field: inner.pop(key)}
    if not inner:
        del table[name]
    return taken


def _known_thresholds(thresholds: Any, registry: Registry) -> Any:
    """Thresholds of metrics by their own names; what a person wrote for others stands among the gates all the same."""
    if not isinstance(thresholds, dict):
        return thresholds  # which the model refuses
    names = {metric.name for metric in registry}
    return {name: value for name, value in thresholds.items() if name in names}


def _other_gates(gates: Any, thresholds: Any, registry: Registry) -> Any:
    """The gates of a file that no threshold stands for; those of the run with the word before them."""
    if not isinstance(gates, dict) or not isinstance(thresholds, dict):
        return None  # which the model refuses
    of_cases, of_run = gates.get("case", []), gates.get("run", [])
    if not all(
        isinstance(gates, list) and all(isinstance(gate, str) for gate in gates) for gates in (of_cases, of_run)
    ):
        return None
    if not all(isinstance(threshold, int | float) for threshold in thresholds.values()):
        return None
    derived = set(threshold_gates(thresholds, registry))
    others = [gate for gate in of_cases if gate not in derived]
    return (*others, *(gate if gate.startswith("run ") else f"run {gate}" for gate in of_run))
