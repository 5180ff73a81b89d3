"""The values of the form for an agent that is there: each setting in its field."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_rageval.config.toml_text import toml_document
from pytest_rageval.http.address import endpoint
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.model import Json
from pytest_rageval.web.pages.agent_form import JUDGES, MAPPED, parameter_value, shown_metrics
from pytest_rageval.web.versions.agent import (
    DEFAULT_THRESHOLD,
    Agent,
    default_prompt,
    editable_rubrics,
)


def agent_values(agent: Agent, registry: Registry) -> dict[str, str | Sequence[str]]:
    """Return the field values for an existing agent."""
    names = {metric.name for metric in registry}
    shown = shown_metrics(agent, registry)
    values: dict[str, str | Sequence[str]] = {
        "name": agent.name,
        "description": agent.description,
        "tags": ", ".join(agent.tags),
        "target_kind": agent.target_kind,
        "llm": agent.llm or "",
        "param_name": [*agent.params],
        "param_value": [_written(value) for value in agent.params.values()],
        "header_name": [*agent.headers],
        "header_value": [*agent.headers.values()],
        "k": str(agent.k),
        "metrics": list(shown),
        "other_metrics": ", ".join(name for name in shown if name not in names),
        "gates": "\n".join(agent.gates),
        "judge_temperature": f"{agent.judge_temperature:g}",
        **_target_values(agent),
        **_mapping_values(agent.mapping),
        **_judge_values(agent),
    }
    for metric in registry:
        if metric.rubrics and metric.layer == "L5" and metric.name not in shown:
            values[f"threshold.{metric.name}"] = f"{DEFAULT_THRESHOLD:g}"  # what it begins with, once it is on
    for name, threshold in agent.thresholds.items():
        values[f"threshold.{name}"] = f"{threshold:g}"
    for name in editable_rubrics():
        values[f"prompt.{name}"] = agent.prompts.get(name, default_prompt(name))
    return values


def _target_values(agent: Agent) -> dict[str, str]:
    target = agent.target or ""
    if agent.target_kind == "chat":
        return _model_values(target, "chat", "chat_provider")
    field = {"http": "url", "python": "python"}.get(agent.target_kind)
    return {field: target} if field else {}


def _judge_values(agent: Agent) -> dict[str, str]:
    if agent.judge in ("lexical", "none"):
        return {"judge_kind": agent.judge}
    values = _model_values(agent.judge, "judge", "judge_kind")
    kind = values["judge_kind"]
    is_of_form = kind == "server" or (kind in dict(JUDGES) and not values["judge_url"])
    if is_of_form and not agent.judge_base_url:
        return values
    return {"judge_kind": "other", "judge_spec": agent.judge}


def _model_values(spec: str, prefix: str, kind_field: str) -> dict[str, str]:
    """Return the values of the fields for a model."""
    kind, _, rest = spec.partition(":")
    model, _, url = rest.partition("@http")
    url = f"http{url}" if url else ""
    provider = "server" if kind == "openai" and url else kind
    return {kind_field: provider, f"{prefix}_model": model, f"{prefix}_url": url}


def _written(value: Json) -> str:
    # A text such as `5` is quoted, or the form would read it back as a number.
    is_plain = isinstance(value, str) and parameter_value(value) == value
    return str(value) if is_plain else json.dumps(value, ensure_ascii=False)


def _mapping_values(mapping: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the values of the fields of a mapping, or the whole mapping as text if the fields cannot hold it."""
    if not mapping:
        return {}
    found = _mapped_parts(mapping)
    is_plain = {*found} <= {*MAPPED.values()} and all(isinstance(path, str) for path in found.values())
    if not found or not is_plain:
        return {"mapping": toml_document(mapping).strip("\n")}
    return {name: found.get(what, "") for name, what in MAPPED.items()}


def _mapped_parts(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the paths of a mapping by what they find; none if it says more than the fields of the form."""
    request = mapping.get("request")
    response = mapping.get("response")
    if {*mapping} != {"request", "response"}:
        return {}
    if not isinstance(request, Mapping) or list(request.values()) != ["{question}"]:
        return {}
    if not isinstance(response, Mapping) or not {*response} <= {"answer", "retrieved_chunks"}:
        return {}
    parts: dict[str, Any] = {"question": next(iter(request))}
    chunks = response.get("retrieved_chunks", {})
    if not isinstance(chunks, Mapping):
        return {}  # one expression for the whole list, for which the form has no field
    parts |= chunks
    parts["answer"] = response.get("answer", "")
    return parts


def found_values(mapping: Mapping[str, Any], url: str) -> dict[str, str]:
    """Return the values of the fields for a mapping that was found below a URL."""
    parts = dict(mapping)
    path = parts.pop("path", None)
    values = _mapping_values(parts)
    if path:
        values["url"] = endpoint(url, path)
    return values
