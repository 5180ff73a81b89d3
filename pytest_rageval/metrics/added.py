"""The metrics that the cases of a run add to it: in other runs they and their gates do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pytest_rageval.cases.discovery import case_files_of
from pytest_rageval.cases.project_cases import load_files
from pytest_rageval.config.project import Project
from pytest_rageval.metrics.assertions import (
    assertion_metrics,
    checked_metric_names,
    is_of_assertions,
    with_assertion_metrics,
)
from pytest_rageval.metrics.builtin import load_registry
from pytest_rageval.metrics.registry import Metric, Registry
from pytest_rageval.metrics.searches import repeated_searches, search_recall, searches_to_gold
from pytest_rageval.metrics.tools import (
    forbidden_tool_called,
    tool_call_f1,
    tool_calls,
    tool_calls_over_limit,
    tool_error_rate,
    tool_name_f1,
    tools_as_expected,
)
from pytest_rageval.metrics.turns import conversation_pass_rate
from pytest_rageval.model import EvalCase

EXPECTED = (tools_as_expected, tool_call_f1, tool_name_f1)
ALWAYS = (tool_calls, tool_error_rate, search_recall, searches_to_gold, repeated_searches)
"""On where any case says anything about tools."""
GATES: Mapping[str, str] = {
    tools_as_expected.name: f"{tools_as_expected.name} >= 1 tag tool_missed",
    forbidden_tool_called.name: f"{forbidden_tool_called.name} <= 0 tag tool_forbidden",
    tool_calls_over_limit.name: f"{tool_calls_over_limit.name} <= 0 tag too_many_tool_calls",
}
OF_TOOLS = (*EXPECTED, forbidden_tool_called, tool_calls_over_limit, *ALWAYS)
OF_CONVERSATIONS = conversation_pass_rate.name
"""Stands for all metrics of conversations."""
SWITCHED_ON = frozenset({*(each.name for each in OF_TOOLS), OF_CONVERSATIONS})
"""The names of metrics that are always there and that cases switch on; those of assertions are made for the run."""


def added_metrics(cases: Iterable[EvalCase]) -> list[str]:
    """Return the metrics that these cases add to a run."""
    # Gone through more than once, and callers may give an iterator.
    known = list(cases)
    names = [*assertion_metrics(known), *_tool_metrics(known)]
    if any(case.turn is not None for case in known):
        names.append(OF_CONVERSATIONS)
    return names


def _tool_metrics(cases: Iterable[EvalCase]) -> list[str]:
    names: dict[str, None] = {}
    for case in cases:
        # An empty list expects that no tool is called.
        if case.expected_tools is not None:
            names.update((each.name, None) for each in EXPECTED)
        if case.forbidden_tools:
            names[forbidden_tool_called.name] = None
        # 0 is a limit, too.
        if case.max_tool_calls is not None:
            names[tool_calls_over_limit.name] = None
    if names:
        names.update((each.name, None) for each in ALWAYS)
    return [each.name for each in OF_TOOLS if each.name in names]


def with_added_metrics(registry: Registry, names: Iterable[str]) -> Registry:
    """Return the registry with these metrics on by default, and gated where they have a gate.

    A name of assertions that another metric has is a SettingsError.
    """
    wanted = dict.fromkeys(names)
    of_assertions = [name for name in wanted if name not in SWITCHED_ON]
    if of_assertions:
        registry = with_assertion_metrics(registry, of_assertions)
    metrics: list[Metric] = []
    for each in registry:
        if each.name in SWITCHED_ON and each.name in wanted:
            gates = (GATES[each.name],) if each.name in GATES else ()
            metrics.append(replace(each, on_by_default=True, gates=gates))
        else:
            metrics.append(each)
    return Registry(metrics)


def project_registry(project: Project) -> Registry:
    """Return all known metrics, with those that the readable cases of a project add."""
    registry = load_registry()
    paths = case_files_of(project.root, project.settings.cases, project.reports)
    files = [checked_metric_names(file, registry) for file in load_files(project, paths)]
    return with_added_metrics(registry, added_metrics(case for file in files for case in file.cases))


def added_to(registry: Registry) -> list[str]:
    """Return the metrics of a registry that cases have added."""
    return [metric.name for metric in registry if _is_added(metric)]


def _is_added(registered: Metric) -> bool:
    return is_of_assertions(registered) or (registered.name in SWITCHED_ON and registered.on_by_default)


def has_conversations(registry: Registry) -> bool:
    """Return True if the cases of the run have conversations."""
    return OF_CONVERSATIONS in registry and registry[OF_CONVERSATIONS].on_by_default
