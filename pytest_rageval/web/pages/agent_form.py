"""The form of an agent: what is asked, which judge, what counts; from its fields to an agent."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field
from starlette.datastructures import FormData

from pytest_rageval.config.options import TARGET_FORMS, UPLOADED
from pytest_rageval.config.toml_text import toml_document
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.model import Json
from pytest_rageval.providers import ASKED, JUDGING
from pytest_rageval.text import excerpt, names_of
from pytest_rageval.web.forms import FormState, Note, OneLine, Paragraphs, Prose, Title, read_form, split_tags
from pytest_rageval.web.versions.agent import (
    LONGEST_PROMPT,
    Agent,
    default_prompt,
    editable_rubrics,
    own_prompt,
)
from pytest_rageval.web.versions.agent_store import Problem, agent_problems

_SERVER = ("server", "another server of OpenAI's kind")
CHAT_PROVIDERS = (*((kind, row.title) for kind, row in ASKED.items() if row.title), _SERVER)
JUDGES = (
    ("lexical", "none: compare words (free, rough)"),
    *((kind, row.title) for kind, row in JUDGING.items() if row.title),
    _SERVER, ("none", "none: judge nothing"), ("other", "another judge"),
)  # fmt: skip
MAPPED = {"map_question": "question", "map_answer": "answer", "map_chunks": "each", "map_text": "text",
          "map_path": "rel_path", "map_heading": "heading_path", "map_id": "chunk_id",
          "map_score": "score_final"}  # fmt: skip
"""The fields of the form for a mapping, and what each one finds."""


class AgentForm(BaseModel):
    """The fields that every agent has; thresholds and prompts are read by their names.

    map_…    how a server's own JSON is asked and read; `mapping` is any other mapping as a configuration writes it
    param_…, header_…  the names and values of parameters and headers, in order
    """

    name: Title
    description: Paragraphs = ""
    tags: OneLine = ""
    target_kind: Annotated[str, Field(pattern="|".join(TARGET_FORMS))] = "demo"
    url: Paragraphs = ""
    map_question: OneLine = ""
    map_answer: OneLine = ""
    map_chunks: OneLine = ""
    map_text: OneLine = ""
    map_path: OneLine = ""
    map_heading: OneLine = ""
    map_id: OneLine = ""
    map_score: OneLine = ""
    mapping: Prose = ""
    chat_provider: str = Field("openai", pattern="|".join(f"^{kind}$" for kind in dict(CHAT_PROVIDERS)))
    chat_model: OneLine = ""
    chat_url: Paragraphs = ""
    python: OneLine = ""
    llm: OneLine = ""
    param_name: list[OneLine] = Field(default_factory=list)
    param_value: list[Paragraphs] = Field(default_factory=list)
    header_name: list[OneLine] = Field(default_factory=list)
    header_value: list[Paragraphs] = Field(default_factory=list)
    k: int = Field(5, ge=1, le=10_000)
    metrics: list[str] = Field(default_factory=list)
    other_metrics: Paragraphs = ""
    gates: Prose = ""
    judge_kind: str = Field("lexical", pattern="|".join(f"^{kind}$" for kind in dict(JUDGES)))
    judge_model: OneLine = ""
    judge_url: Paragraphs = ""
    judge_spec: OneLine = ""
    judge_temperature: float = Field(0.0, ge=0, le=2)
    note: Note = ""
    author: Title = ""
    based_on: int = Field(0, ge=0)
    question: Paragraphs = ""


def agent_of_form(
    form: FormData, registry: Registry, original: Agent | None, root: Path
) -> tuple[FormState[AgentForm], Agent | None]:
    """Return the submitted form and its agent, None if it has errors: all at once, each beside its field.

    original  the version that is edited: its settings without a field stay; None for a new agent
    root      the project, whose configuration lists what the browser may name
    """
    state = read_agent_form(form, registry)
    sent = state.model or _readable_part(state)
    problems: list[Problem] = []
    fields = _agent_fields(sent, state.values, registry, problems)
    if original is not None:
        fields |= {"more": dict(original.more), "judge_base_url": original.judge_base_url}
        # An agent that names no metrics follows the defaults of later versions; the form ticks them one by one.
        if not original.metrics and set(fields["metrics"]) == {*shown_metrics(original, registry)}:
            fields["metrics"] = ()
    agent = Agent(**fields)
    for found in (problems, agent_problems(agent, registry, root)):
        state = _with_problems(state, found, sent)
    return state, None if state.errors else agent


def read_agent_form(form: FormData, registry: Registry) -> FormState[AgentForm]:
    """Read the form as typed: its own fields, and those of the metrics and prompts."""
    state = read_form(AgentForm, form)
    named = [*(f"threshold.{metric.name}" for metric in registry), *(f"prompt.{name}" for name in editable_rubrics())]
    texts = {name: text.replace("\r\n", "\n") for name in named if isinstance(text := form.get(name), str)}
    pairs: dict[str, list[str]] = {}
    for kind in ("param", "header"):
        names = state.values.get(f"{kind}_name", ())
        values = state.values.get(f"{kind}_value", ())
        # The form has a blank row for one more.
        rows = [row for row in zip_longest(names, values, fillvalue="") if any(map(str.strip, row))]
        pairs[f"{kind}_name"] = [name for name, _ in rows]
        pairs[f"{kind}_value"] = [value for _, value in rows]
    model = None if state.model is None else state.model.model_copy(update=pairs)
    return FormState({**state.values, **pairs, **texts}, state.errors, model)


def _readable_part(state: FormState[AgentForm]) -> AgentForm:
    """Return the form without its unreadable fields, so that the other fields are checked too."""
    sound = {name: value for name, value in state.values.items() if name not in state.errors}
    return AgentForm.model_validate({"name": "unread"} | sound)


def _with_problems(state: FormState[AgentForm], problems: Iterable[Problem], sent: AgentForm) -> FormState[AgentForm]:
    """Add these problems to their fields. Skip fields that have problems already: they would repeat them."""
    refused = state
    for name, message in problems:
        field = _field_of(name, sent)
        if not field or field not in state.errors:
            refused = refused.with_problem(field, message)
    return refused


def with_default_prompt(form: FormData, registry: Registry, rubric: str) -> FormState[AgentForm]:
    """Return the form as typed, with the shipped prompt of a rubric in its field. Check nothing."""
    return FormState({**read_agent_form(form, registry).values, f"prompt.{rubric}": default_prompt(rubric)})


def shown_metrics(agent: Agent, registry: Registry) -> tuple[str, ...]:
    """Return the metrics that are on: the named ones (by default the default metrics) and any with a threshold."""
    named = agent.metrics or tuple(metric.name for metric in registry if metric.on_by_default)
    return tuple(dict.fromkeys([*named, *agent.thresholds]))


# ── from fields to an agent ───────────────────────────────────────────────────────────────────────────────────


def _agent_fields(
    form: AgentForm, values: Mapping[str, str | Sequence[str]], registry: Registry, problems: list[Problem]
) -> dict[str, Any]:
    """Return the fields of an agent; add the problems of the form by field name."""
    if not form.name.strip():
        problems.append(("name", "is blank"))
    metrics = tuple(dict.fromkeys([*form.metrics, *names_of(form.other_metrics)]))
    if not metrics:
        problems.append(("metrics", "no metric is on; choose at least one"))
    gates = [line.strip() for line in form.gates.split("\n")]
    # Each of these adds its problems, in the order of the form.
    return {
        "name": form.name.strip(),
        "description": form.description.strip(),
        "tags": split_tags(form.tags),
        "target": _target(form, problems),
        "mapping": _mapping(form, problems) if form.target_kind == "http" else None,
        "llm": form.llm.strip() or None,
        "params": _params(form, problems),
        "headers": _pairs("header", form, problems),
        "k": form.k,
        "metrics": metrics,
        "gates": tuple(gate for gate in gates if gate),
        "judge": _judge(form, problems),
        "judge_temperature": form.judge_temperature,
        "thresholds": _thresholds(form.metrics, values, registry, problems),
        "prompts": _prompts(values, problems),
    }


def _needed(form: AgentForm, name: str, problems: list[Problem]) -> str:
    written = str(getattr(form, name)).strip()
    if not written:
        problems.append((name, "is missing"))
    return written


def _target(form: AgentForm, problems: list[Problem]) -> str | None:
    """Return the target in its configuration format, or None if answers are uploaded."""
    if form.target_kind == "chat":
        return _model_spec(form, "chat", form.chat_provider, problems)
    if form.target_kind in ("http", "python"):
        return _needed(form, "url" if form.target_kind == "http" else "python", problems)
    return None if form.target_kind == UPLOADED else "demo"


def _judge(form: AgentForm, problems: list[Problem]) -> str:
    if form.judge_kind in ("lexical", "none"):
        return form.judge_kind
    if form.judge_kind == "other":
        return _needed(form, "judge_spec", problems)
    return _model_spec(form, "judge", form.judge_kind, problems)


def _model_spec(form: AgentForm, prefix: str, kind: str, problems: list[Problem]) -> str:
    """Return a model as configurations name it: `openai:MODEL@URL` for a server that speaks as OpenAI's does."""
    model = _needed(form, f"{prefix}_model", problems)
    if kind == "server":
        url = _needed(form, f"{prefix}_url", problems)
        kind = "openai"
    elif kind == "openai" or prefix == "judge":
        url = ""  # the form hides the field then, which may hold what was typed before
    else:
        url = str(getattr(form, f"{prefix}_url")).strip()
    return f"{kind}:{model}@{url}" if url else f"{kind}:{model}"


def _mapping(form: AgentForm, problems: list[Problem]) -> dict[str, Any] | None:
    if form.mapping.strip():
        try:
            return tomllib.loads(form.mapping)
        except (ValueError, RecursionError) as error:  # also numbers of thousands of digits and very deep nesting
            problems.append(("mapping", f"is not valid TOML: {excerpt(str(error))}"))
            return None
    typed = {name: str(getattr(form, name)).strip() for name in MAPPED}
    if not any(typed.values()):
        return None
    request = {typed["map_question"] or "question": "{question}"}
    response: dict[str, Any] = {"answer": _needed(form, "map_answer", problems)}
    chunks: dict[str, str] = {}
    for name, path in typed.items():
        if path and name not in ("map_question", "map_answer"):
            chunks[MAPPED[name]] = path
    if "each" in chunks:
        response["retrieved_chunks"] = chunks
    elif chunks:
        problems.append(("map_chunks", "is missing: where is the list of passages?"))
    return {"request": request, "response": response}


def _pairs(kind: str, form: AgentForm, problems: list[Problem]) -> dict[str, str]:
    names = getattr(form, f"{kind}_name")
    values = getattr(form, f"{kind}_value")
    written = [(name.strip(), value.strip()) for name, value in zip_longest(names, values, fillvalue="")]
    named = [(name, value) for name, value in written if name]
    pairs = dict(named)
    if any(value and not name for name, value in written):
        problems.append((f"{kind}_name", "a value has no name beside it"))
    if len(pairs) < len(named):
        problems.append((f"{kind}_name", "two of them have one name"))
    return pairs


def _params(form: AgentForm, problems: list[Problem]) -> dict[str, Json]:
    params: dict[str, Json] = {}
    for name, text in _pairs("param", form, problems).items():
        value = parameter_value(text)
        try:
            toml_document({name: value})
        except ValueError as error:
            problems.append(("param_name", f"{name} cannot be kept: {error}"))
        else:
            params[name] = value
    return params


def parameter_value(text: str) -> Json:
    """Return a parameter as JSON where it is such, else as text."""
    try:
        return parse(text)
    except StrictJsonError:
        return text


def _thresholds(
    metrics: Sequence[str], values: Mapping[str, Any], registry: Registry, problems: list[Problem]
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


def _prompts(values: Mapping[str, Any], problems: list[Problem]) -> dict[str, str]:
    prompts: dict[str, str] = {}
    for name in editable_rubrics():
        written = own_prompt(name, str(values.get(f"prompt.{name}", "")))
        if written is not None and len(written) > LONGEST_PROMPT:
            problems.append((f"prompt.{name}", f"has {len(written):,} characters, expected at most {LONGEST_PROMPT:,}"))
        elif written is not None:
            prompts[name] = written
    return prompts


def _field_of(name: str, form: AgentForm) -> str:
    """Return the form field for a problem of an agent."""
    by_judge = {"other": "judge_spec", "lexical": "judge_kind", "none": "judge_kind"}
    fields = {
        "target": {"http": "url", "chat": "chat_model", "python": "python"}.get(form.target_kind, "target_kind"),
        "judge": by_judge.get(form.judge_kind, "judge_model"),
        "metrics": "other_metrics" if form.other_metrics.strip() else "metrics",
        "mapping": "mapping" if form.mapping.strip() else "map_answer",
        "headers": "header_name",
        "params": "param_name",
    }
    return fields.get(name, name)
