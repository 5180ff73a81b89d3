"""The form of an agent: from its fields to an agent and back."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field
from starlette.datastructures import FormData

from pytest_rageval.config.toml_text import toml_document
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.providers import PROVIDERS
from pytest_rageval.text import excerpt, names_of
from pytest_rageval.web.forms import (
    FormState,
    Note,
    OneLine,
    Paragraphs,
    Prose,
    Title,
    read_form,
    split_tags,
)
from pytest_rageval.web.versions.agent import (
    ANSWERS_ONLY,
    DEFAULT_THRESHOLD,
    LONGEST_PROMPT,
    Agent,
    default_prompt,
    editable_rubrics,
    own_prompt,
)
from pytest_rageval.web.versions.agent_check import agent_problems
from pytest_rageval.web.versions.agent_store import new_agent

TARGET_KINDS = (
    ("demo", "the demo system"), ("http", "HTTP, at a URL"), ("chat", "a model behind a chat endpoint"),
    ("python", "a Python function or ASGI app"), (ANSWERS_ONLY, "uploaded answers only"),
)  # fmt: skip
_TARGET_FIELDS = {"http": "url", "chat": "chat_model", "python": "python"}
"""The form field of each kind of target."""
CHAT_APIS = (("openai", "OpenAI's kind"), ("ollama", "Ollama"))
JUDGES = ("lexical", *(row.example for row in PROVIDERS.values() if row.example), "nli:FOLDER", "none")
"""Suggestions for the judge field."""


class AgentForm(BaseModel):
    """The fields that every agent has; thresholds and prompts are read by their names."""

    name: Title
    description: Paragraphs = ""
    tags: OneLine = ""
    target_kind: Literal["demo", "http", "chat", "python", "answers"] = "demo"
    url: Paragraphs = ""
    mapping: Prose = ""
    chat_api: Literal["openai", "ollama"] = "openai"
    chat_model: OneLine = ""
    chat_url: Paragraphs = ""
    python: OneLine = ""
    llm: OneLine = ""
    params: Prose = ""
    headers: Prose = ""
    k: int = Field(5, ge=1, le=10_000)
    metrics: list[str] = Field(default_factory=list)
    other_metrics: Paragraphs = ""
    gates: Prose = ""
    judge: OneLine = "lexical"
    judge_base_url: Paragraphs = ""
    judge_temperature: float = Field(0.0, ge=0, le=2)
    note: Note = ""
    based_on: int = Field(0, ge=0)


def agent_of_form(
    form: FormData, registry: Registry, original: Agent | None, root: Path
) -> tuple[FormState[AgentForm], Agent | None]:
    """Return the submitted form and its agent, or None in its place if the form has errors.

    original  the version that is edited: its settings without a field stay; None for a new agent
    root      the project, whose configuration lists what the browser may name
    """
    state = _read(form, registry)
    sent = state.model or _readable_part(state)
    fields, problems = _agent_fields(sent, state.values, registry)
    if original is not None and not original.metrics and set(fields["metrics"]) == {*shown_metrics(original, registry)}:
        fields["metrics"] = ()
    agent = Agent(**fields, more={} if original is None else dict(original.more))
    state = _with_problems(state, problems, sent)
    # Report all problems at once: a wrong prompt must not appear only after a threshold is fixed.
    state = _with_problems(state, agent_problems(agent, registry, root), sent)
    return state, None if state.errors else agent


def _read(form: FormData, registry: Registry) -> FormState[AgentForm]:
    """Read the form as typed: its own fields, and those of the metrics and prompts."""
    state = read_form(AgentForm, form)
    named = [*(f"threshold.{metric.name}" for metric in registry), *(f"prompt.{name}" for name in editable_rubrics())]
    texts = {name: text.replace("\r\n", "\n") for name in named if isinstance(text := form.get(name), str)}
    return FormState({**state.values, **texts}, state.errors, state.model)


def _readable_part(state: FormState[AgentForm]) -> AgentForm:
    """Return the form without its unreadable fields, so that the other fields are checked too."""
    fields = {name: value for name, value in state.values.items() if name in AgentForm.model_fields}
    return AgentForm.model_validate(
        {name: value for name, value in fields.items() if name not in state.errors}
        | ({"name": "unread"} if "name" in state.errors else {})
    )


def _with_problems(
    state: FormState[AgentForm], problems: Iterable[tuple[str, str]], sent: AgentForm
) -> FormState[AgentForm]:
    """Add these problems to their fields. Skip fields that have problems already: they would repeat them."""
    refused = state
    for name, message in problems:
        field = _field_of(name, sent)
        if not field or field not in state.errors:
            refused = refused.with_problem(field, message)
    return refused


def with_default_prompt(form: FormData, registry: Registry, rubric: str) -> FormState[AgentForm]:
    """Return the form as typed, with the shipped prompt of a rubric in its field. Check nothing."""
    return FormState({**_read(form, registry).values, f"prompt.{rubric}": default_prompt(rubric)})


def agent_values(agent: Agent, registry: Registry) -> dict[str, str | Sequence[str]]:
    """Return the field values for an existing agent."""
    names = {metric.name for metric in registry}
    shown = shown_metrics(agent, registry)
    other = [name for name in shown if name not in names]
    values: dict[str, str | Sequence[str]] = {
        "name": agent.name,
        "description": agent.description,
        "tags": ", ".join(agent.tags),
        "target_kind": agent.target_kind,
        "llm": agent.llm or "",
        "params": _toml(agent.params),
        "headers": _toml(agent.headers),
        "k": str(agent.k),
        "metrics": list(shown),
        "other_metrics": ", ".join(other),
        "gates": "\n".join(agent.gates),
        "judge": agent.judge,
        "judge_base_url": agent.judge_base_url or "",
        "judge_temperature": f"{agent.judge_temperature:g}",
        "mapping": _toml(agent.mapping or {}),
    }
    values |= _target_values(agent)
    off = [metric.name for metric in registry if metric.rubrics and metric.layer == "L5" and metric.name not in shown]
    values |= {f"threshold.{name}": f"{DEFAULT_THRESHOLD:g}" for name in off}  # what they begin with, once they are on
    values |= {f"threshold.{name}": f"{threshold:g}" for name, threshold in agent.thresholds.items()}
    return values | {f"prompt.{name}": agent.prompts.get(name, default_prompt(name)) for name in editable_rubrics()}


def new_agent_values(registry: Registry) -> dict[str, str | Sequence[str]]:
    """Return the field values for a new agent: two judged metrics with the default threshold."""
    return agent_values(new_agent(registry), registry)


def shown_metrics(agent: Agent, registry: Registry) -> tuple[str, ...]:
    """Return the metrics that are on: the named ones (by default the default metrics) and any with a threshold."""
    named = agent.metrics or tuple(metric.name for metric in registry if metric.on_by_default)
    return tuple(dict.fromkeys([*named, *agent.thresholds]))


# ── fields ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _agent_fields(
    form: AgentForm, values: Mapping[str, str | Sequence[str]], registry: Registry
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the fields of an agent, and the problems of the form by field name."""
    problems: list[tuple[str, str]] = []
    problems += [(name, "is blank") for name in ("name", "judge") if not getattr(form, name).strip()]
    metrics = tuple(dict.fromkeys([*form.metrics, *names_of(form.other_metrics)]))
    if not metrics:
        problems.append(("metrics", "no metric is on; choose at least one"))
    tables = {name: _table(name, getattr(form, name), problems) for name in ("params", "headers", "mapping")}
    fields: dict[str, Any] = {
        "name": form.name.strip(),
        "description": form.description.strip(),
        "tags": split_tags(form.tags),
        "target": _target(form, problems),
        "llm": form.llm.strip() or None,
        "params": tables["params"],
        "k": form.k,
        "metrics": metrics,
        "gates": _lines(form.gates),
        "judge": form.judge.strip(),
        "judge_base_url": form.judge_base_url.strip() or None,
        "judge_temperature": form.judge_temperature,
        "thresholds": _thresholds(form.metrics, values, registry, problems),
        "prompts": _prompts(values, problems),
    }
    if form.target_kind == "http" and tables["mapping"]:
        fields["mapping"] = tables["mapping"]
    if all(isinstance(value, str) for value in tables["headers"].values()):
        fields["headers"] = tables["headers"]
    else:
        problems.append(("headers", 'holds a value that is no text; write NAME = "env:VARIABLE"'))
    return fields, problems


def _lines(written: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in written.split("\n") if line.strip())


def _table(name: str, written: str, problems: list[tuple[str, str]]) -> dict[str, Any]:
    try:
        return tomllib.loads(written)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits and very deep nesting
        problems.append((name, f"is not valid TOML: {excerpt(str(error))}"))
        return {}


def _target(form: AgentForm, problems: list[tuple[str, str]]) -> str | None:
    """Return the target in its configuration format, or None if answers are uploaded."""
    if form.target_kind == ANSWERS_ONLY:
        return None
    if form.target_kind == "demo":
        return "demo"
    name = _TARGET_FIELDS[form.target_kind]
    written = str(getattr(form, name)).strip()
    if not written:
        problems.append((name, "is missing"))
    if form.target_kind == "chat":
        url = form.chat_url.strip()
        return f"{form.chat_api}:{written}" + (f"@{url}" if url else "")
    return written


def _thresholds(
    metrics: Sequence[str], values: Mapping[str, Any], registry: Registry, problems: list[tuple[str, str]]
) -> dict[str, float]:
    """Return the thresholds of the metrics that are on. A metric with a blank threshold keeps its own gate."""
    thresholds: dict[str, float] = {}
    for metric in registry:
        written = str(values.get(f"threshold.{metric.name}", "")).strip()
        if metric.name not in metrics or not written:
            continue
        if re.fullmatch(r"\d{0,2}(?:[.,]\d{0,6})?", written) and written not in (".", ","):
            thresholds[metric.name] = float(written.replace(",", "."))
        else:
            problems.append((f"threshold.{metric.name}", "is no number from 0 to 1"))
    return thresholds


def _prompts(values: Mapping[str, Any], problems: list[tuple[str, str]]) -> dict[str, str]:
    prompts: dict[str, str] = {}
    for name in editable_rubrics():
        written = own_prompt(name, str(values.get(f"prompt.{name}", "")))
        if written is not None and len(written) > LONGEST_PROMPT:
            problems.append((f"prompt.{name}", f"has {len(written):,} characters, expected at most {LONGEST_PROMPT:,}"))
        elif written is not None:
            prompts[name] = written
    return prompts


def _target_values(agent: Agent) -> dict[str, str]:
    target = agent.target or ""
    if agent.target_kind == "chat":
        api, _, rest = target.partition(":")
        model, _, url = rest.partition("@http")
        return {"chat_api": api, "chat_model": model, "chat_url": f"http{url}" if url else ""}
    field = _TARGET_FIELDS.get(agent.target_kind)
    return {field: target} if field else {}


def _field_of(name: str, form: AgentForm) -> str:
    """Return the form field for a problem of an agent."""
    if name == "target":
        return _TARGET_FIELDS.get(form.target_kind, "target_kind")
    return "other_metrics" if name == "metrics" and form.other_metrics.strip() else name


def _toml(table: Mapping[str, Any]) -> str:
    return toml_document(table).strip("\n") if table else ""
