"""Metrics that fields of the cases switch on: in other runs they and their gates do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pytest_rageval.metrics.assertions import assertion_metrics, is_of_assertions, with_assertion_metrics
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
from pytest_rageval.model import EvalCase

EXPECTED = (tools_as_expected, tool_call_f1, tool_name_f1)
ALWAYS = (tool_calls, tool_error_rate, search_recall, searches_to_gold, repeated_searches)
"""On where any case says anything about tools."""
GATES: Mapping[str, str] = {
    tools_as_expected.name: f"{tools_as_expected.name} >= 1 tag tool_missed",
    forbidden_tool_called.name: f"{forbidden_tool_called.name} <= 0 tag tool_forbidden",
    tool_calls_over_limit.name: f"{tool_calls_over_limit.name} <= 0 tag too_many_tool_calls",
}
OF_TOOLS = {each.name: each for each in (*EXPECTED, forbidden_tool_called, tool_calls_over_limit, *ALWAYS)}


def metrics_of_cases(cases: Iterable[EvalCase]) -> list[str]:
    """Return the metrics that fields of these cases add to a run."""
    known = list(cases)
    return [*assertion_metrics(known), *_tool_metrics(known)]


def _tool_metrics(cases: Iterable[EvalCase]) -> list[str]:
    names: dict[str, None] = {}
    for case in cases:
        if case.expected_tools is not None:
            names.update((each.name, None) for each in EXPECTED)
        if case.forbidden_tools:
            names[forbidden_tool_called.name] = None
        if case.max_tool_calls is not None:
            names[tool_calls_over_limit.name] = None
    if names:
        names.update((each.name, None) for each in ALWAYS)
    return [name for name in OF_TOOLS if name in names]


def with_case_metrics(registry: Registry, names: Iterable[str]) -> Registry:
    """Return the registry with these metrics on by default, and gated where they have a gate.

    A name of assertions that another metric has is a SettingsError.
    """
    wanted = dict.fromkeys(names)
    others = [name for name in wanted if name not in OF_TOOLS]
    if others:
        registry = with_assertion_metrics(registry, others)
    metrics: list[Metric] = []
    for each in registry:
        if each.name in OF_TOOLS and each.name in wanted:
            gates = (GATES[each.name],) if each.name in GATES else ()
            metrics.append(replace(each, on_by_default=True, gates=gates))
        else:
            metrics.append(each)
    return Registry(metrics)


def is_of_cases(registered: Metric) -> bool:
    """Check whether a field of the cases added or switched on this metric."""
    return is_of_assertions(registered) or (registered.name in OF_TOOLS and registered.on_by_default)
