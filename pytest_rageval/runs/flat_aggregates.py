"""Aggregates by the flat names that other tools read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_rageval.metrics.index_coverage import coverage_by_doc_type, with_rates
from pytest_rageval.runs.row import legacy_names


def flat_aggregates(
    metrics: Mapping[str, Mapping[str, Any]], coverage: Mapping[str, Any] | None, k: int
) -> dict[str, Any]:
    """Return aliases of `metrics` by the flat names that other tools read; null if a metric has no value."""
    means = {name: metric["mean"] for name, metric in metrics.items()}
    by_aggregate = {metric["aggregate"]: metric["mean"] for metric in metrics.values()}
    rates = ("scope_miss_rate", "abstention_accuracy", "hallucination_rate_unanswerable")
    operational = {name: means.get(name) for name in ("error_rate", "timeout_rate", "empty_response_rate")}
    return {
        **flat_averages(means, k),
        **{name: by_aggregate.get(name) for name in rates},
        "attribution_hit_rate": means.get("attribution_hit"),
        "judge_reliability": None,
        "indexing_coverage": with_rates(coverage),
        "operational_metrics": {
            **operational,
            "coverage_by_doc_type": coverage_by_doc_type(coverage or {}),
        },
    }


def flat_averages(means: Mapping[str, float | None], k: int) -> dict[str, float | None]:
    """Return the means by the flat names that other tools read."""
    named = legacy_names(means, k) | {name: means.get(name) for name in ("groundedness", "correctness")}
    return {f"{name}_avg": value for name, value in named.items() if name != "scope_miss"}


def with_aliases(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of metrics.json with latency and cost repeated among the aggregates, where other tools look.

    They are not in metrics.json itself: equal inputs give equal bytes there, except under `volatile`.
    """
    latency = metrics["volatile"].get("latency") or {}
    cost = metrics["volatile"].get("cost") or {}
    aggregates = dict(metrics["aggregate_metrics"])
    aggregates["latency"] = {name: latency.get(name) for name in ("p50_ms", "p95_ms", "total_ms")}
    aggregates["cost"] = {name: cost.get(name) for name in ("judge_total_usd", "judge_total_tokens")}
    return {**metrics, "aggregate_metrics": aggregates}


def only_averages(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return the averages of a group, without its counts."""
    return {name: value for name, value in group.items() if name.endswith("_avg")}
