"""Metrics of two runs with different cut-offs: which pair, and how they are named."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.gates.regression import RegressionGate


def paired_cut_offs(
    before: Collection[str], after: Collection[str], k_before: int | None, k_after: int | None
) -> dict[str, str]:
    """Map the names before to the names after of metrics with another cut-off: `recall_any@5` → `recall_any@10`.

    A name on both sides pairs with itself. If a metric has several cut-offs, the configured ones pair.
    """
    only_before = [name for name in before if name not in after]
    only_after = [name for name in after if name not in before]
    lost = _by_metric(only_before, k_before)
    gained = _by_metric(only_after, k_after)
    return {lost[metric]: gained[metric] for metric in sorted(lost.keys() & gained.keys())}


def _by_metric(names: Iterable[str], k: int | None) -> dict[str, str]:
    """Return the only cut-off of each metric, or its configured one."""
    names_by_metric: dict[str, list[str]] = {}
    for name in names:
        # From the right: turn_decay@recall_any@5 has the cut-off of the metric that it is about.
        metric, _, cut_off = name.rpartition("@")
        if cut_off.isdigit():
            names_by_metric.setdefault(metric, []).append(name)
    chosen: dict[str, str] = {}
    for metric, candidates in names_by_metric.items():
        configured = f"{metric}@{k}"
        if configured in candidates:
            chosen[metric] = configured
        elif len(candidates) == 1:
            chosen[metric] = candidates[0]
    return chosen


def cut_off_label(before: str, after: str) -> str:
    """Format a changed cut-off as `recall_any@5 → @10`."""
    return f"{before} → @{after.partition('@')[2]}"


def at_shared_cut_off(gate: RegressionGate, shared: Collection[str], k_before: int | None) -> RegressionGate:
    """Move a default gate to a cut-off that both sides measured, unless both measured its own.

    shared    names of the metrics that both sides have
    k_before  the configured cut-off before, which is preferred; else the smallest is used
    """
    metric = gate.measure.metric
    if not gate.is_default or gate.measure.k is None or gate.name in shared:
        return gate
    cut_offs = [int(name.partition("@")[2]) for name in shared if name.startswith(f"{metric.name}@")]
    if not cut_offs:
        return gate
    k = k_before if k_before in cut_offs else min(cut_offs)
    return replace(gate, measure=replace(gate.measure, k=k))


def renamed_metrics(before: Side, after: Side) -> dict[str, str]:
    """Map the names before to the names after of metrics with another cut-off: `recall_any@5` → `recall_any@2`."""
    return paired_cut_offs(before.metrics["metrics"], after.metrics["metrics"], before.k, after.k)
