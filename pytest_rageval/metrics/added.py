"""The metrics that the cases of a run add to it: those of their fields, and those of conversations."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from pytest_rageval.metrics.case_metrics import is_of_cases, metrics_of_cases, with_case_metrics
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.metrics.turns import conversation_pass_rate
from pytest_rageval.model import EvalCase

OF_CONVERSATIONS = conversation_pass_rate.name
"""Stands for all metrics of conversations."""


def added_metrics(cases: Iterable[EvalCase]) -> list[str]:
    """Return the metrics that these cases add to a run."""
    cases = list(cases)
    names = metrics_of_cases(cases)
    if any(case.turn is not None for case in cases):
        names.append(OF_CONVERSATIONS)
    return names


def with_added_metrics(registry: Registry, names: Collection[str]) -> Registry:
    """Return the registry with these metrics, on by default; raise SettingsError if a name is taken."""
    of_fields = [name for name in names if name != OF_CONVERSATIONS]
    if of_fields:
        registry = with_case_metrics(registry, of_fields)
    if OF_CONVERSATIONS in names:
        metrics = {each.name: each for each in registry}
        metrics[OF_CONVERSATIONS] = replace(metrics[OF_CONVERSATIONS], on_by_default=True)
        registry = Registry(metrics.values())
    return registry


def added_to(registry: Registry) -> list[str]:
    """Return the metrics of a registry that cases have added."""
    names = [metric.name for metric in registry if is_of_cases(metric)]
    if has_conversations(registry):
        names.append(OF_CONVERSATIONS)
    return names


def has_conversations(registry: Registry) -> bool:
    """Return True if the cases of the run have conversations."""
    return OF_CONVERSATIONS in registry and registry[OF_CONVERSATIONS].on_by_default
