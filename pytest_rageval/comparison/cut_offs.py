"""Metrics at different cut-offs, paired: another k is a difference to show, never a way out of a comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from pytest_rageval.comparison.side import Side
from pytest_rageval.gates.regression import RegressionGate


def paired_cut_offs(
    before: Collection[str], after: Collection[str], k_before: int | None, k_after: int | None
) -> dict[str, str]:
    """Names before → names after of metrics that differ in their cut-off only: `recall_any@5` → `recall_any@10`.

    What has the same name on both sides pairs with itself. Of several cut-offs of one metric the configured ones pair.
    """
    lost = _by_metric((name for name in before if name not in after), k_before)
    gained = _by_metric((name for name in after if name not in before), k_after)
    return {lost[metric]: gained[metric] for metric in sorted(lost.keys() & gained.keys())}


def _by_metric(names: Iterable[str], k: int | None) -> dict[str, str]:
    """By metric its only cut-off, or that which is the configured one."""
    names_by_metric: dict[str, list[str]] = {}
    for name in names:
        metric, at, _ = name.partition("@")
        if at:
            names_by_metric.setdefault(metric, []).append(name)
    chosen = {
        metric: ([f"{metric}@{k}"] if f"{metric}@{k}" in names else names) for metric, names in names_by_metric.items()
    }
    return {metric: names[0] for metric, names in chosen.items() if len(names) == 1}


def cut_off_label(before: str, after: str) -> str:
    """`recall_any@5 → @10`."""
    return f"{before} → @{after.partition('@')[2]}"


def at_shared_cut_off(gate: RegressionGate, shared: Collection[str], k_before: int | None) -> RegressionGate:
    """A default gate at a cut-off that both sides measured, where they did not both measure its own.

    shared    names of the metrics that both sides have, as each side calls them
    k_before  the configured cut-off before, which is taken first; else the smallest
    """
    metric = gate.measure.metric
    if not gate.is_default or gate.measure.k is None or gate.name in shared:
        return gate
    cuts = sorted(int(name.partition("@")[2]) for name in shared if name.startswith(f"{metric.name}@"))
    if not cuts:
        return gate
    return replace(gate, measure=replace(gate.measure, k=k_before if k_before in cuts else cuts[0]))


def renamed_metrics(before: Side, after: Side) -> dict[str, str]:
    """Names before → names after of metrics that differ in their cut-off only: `recall_any@5` → `recall_any@2`."""
    k_before, k_after = (side.config.get("k") if side.config else None for side in (before, after))
    return paired_cut_offs(before.metrics["metrics"].keys(), after.metrics["metrics"].keys(), k_before, k_after)
