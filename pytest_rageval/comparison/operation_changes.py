"""What asking took in two runs: time, tokens and cost beside each other, and whether times may be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_rageval.metrics.calls import OPERATION_UNITS

Metrics = Mapping[str, Any]
"""The content of a metrics.json."""


def operation_changes(before: Metrics, after: Metrics) -> dict[str, dict[str, Any]]:
    """Return the operations that are known of both runs, each with its figures before and after.

    They are of all cases of each run, whether or not the metrics of operations were scored: nothing is tested.
    """
    was = _operations(before)
    now = _operations(after)
    changes: dict[str, dict[str, Any]] = {}
    for name, unit in OPERATION_UNITS.items():
        if name in was and name in now:
            changes[name] = {"unit": unit, "before": was[name], "after": now[name]}
    return changes


def _operations(metrics: Metrics) -> Mapping[str, Any]:
    operations: Mapping[str, Any] = (metrics.get("volatile") or {}).get("operations") or {}
    return operations


def timed_otherwise(before: Metrics, after: Metrics) -> str | None:
    """Return a remark if two runs had other numbers of calls in flight, which times depend on; None if they had not."""
    was = (before.get("volatile") or {}).get("concurrency")
    now = (after.get("volatile") or {}).get("concurrency")
    if was is None or now is None or was == now:
        return None
    return f"times were measured with up to {was} calls in flight before, and up to {now} now: they depend on that"


def are_times_scored(before: Metrics, after: Metrics) -> bool:
    """Return True if both runs scored a metric in milliseconds."""
    shared = before["metrics"].keys() & after["metrics"].keys()
    return any(after["metrics"][name].get("unit") == "ms" for name in shared)
