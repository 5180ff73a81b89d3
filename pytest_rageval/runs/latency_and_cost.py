"""What a run took: latencies and phases, tokens and dollars of judging, and the usage that the system reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_rageval.gates.gate import FEWEST_FOR_P95
from pytest_rageval.metrics.calls import OPERATIONS
from pytest_rageval.metrics.operations import percentile
from pytest_rageval.runs.records.line_form import PHASES
from pytest_rageval.runs.row import Row


def latency_of(trials: Iterable[Row]) -> dict[str, Any]:
    """Return latencies in milliseconds over all trials, with the phases that the system reports.

    `retry_wait_ms` sums the waits before repeated requests; they are not part of the system's latency.
    """
    measured: dict[str, list[float]] = {}
    for row in trials:
        for name, number in row.latency.items():
            measured.setdefault(name, []).append(number)
    totals = measured.get("total_ms", ())
    phases = {}
    for phase in (*PHASES, "judge_ms", "queue_ms"):
        values = measured.get(phase)
        if values:
            phases[phase] = {"p50": percentile(values, 0.5), "p95": percentile(values, 0.95)}
    requests = None
    if "requests" in measured:
        requests = int(sum(measured["requests"]))
    return {
        "p50_ms": percentile(totals, 0.5),
        "p95_ms": percentile(totals, 0.95),
        "p99_ms": percentile(totals, 0.99),
        "total_ms": _total(totals),
        "phases": phases,
        "requests": requests,
        "retry_wait_ms": _total(measured.get("retry_wait_ms", ())),
    }


def operations_of(trials: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Return what each operation came to over all trials, by its name: its mean, sum and percentiles.

    Operations without a value are left out. A percentile needs as many values as a gate on it.
    """
    measured: dict[str, list[float]] = {}
    for row in trials:
        for name, number in row.operations.items():
            measured.setdefault(name, []).append(number)
    described: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        values = measured.get(operation.name)
        if values:
            total = math.fsum(values)
            described[operation.name] = {
                "unit": operation.unit,
                "n": len(values),
                "mean": total / len(values),
                "total": total,
                **statistics_of(values),
            }
    return described


def statistics_of(values: Sequence[float]) -> dict[str, float | None]:
    """Return the median, the 95th percentile and the largest of the values; None where there are too few."""
    # Of fewer values the 95th percentile is the largest one, which a single slow call decides.
    is_enough = len(values) >= FEWEST_FOR_P95
    return {
        "p50": percentile(values, 0.5),
        "p95": percentile(values, 0.95) if is_enough else None,
        "max": max(values, default=None),
    }


def cost_of(costs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the tokens and dollars that judging used and that the cache saved, over all trials."""
    tokens = _known(costs, "judge_tokens")
    dollars = _known(costs, "judge_cost_usd")
    saved = _known(costs, "judge_saved_usd")
    # A share of a joint request may come to less than one: a model was asked all the same.
    counts = {}
    for name in _COUNTED_IF_ANY:
        total = math.fsum(cost.get(name, 0) for cost in costs)
        if total:
            counts[name] = round(total)
    usages = [cost["target_usage"] for cost in costs if cost["target_usage"]]
    return {
        **counts,
        "judge_saved_usd": _total(saved),
        "judge_total_tokens": sum(tokens) if tokens else None,
        "judge_total_usd": _total(dollars),
        "judgements": sum(cost["judgements"] for cost in costs),
        "judgements_cached": sum(cost["judgements_cached"] for cost in costs),
        "target_usage": _sums(usages),
    }


_COUNTED_IF_ANY = ("judge_requests", "judge_tokens_cached")
"""Written only where they are not 0: a heuristic judge has neither."""


def _known(costs: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    return [cost[name] for cost in costs if cost.get(name) is not None]


def _sums(usages: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """Return the sums of the tokens and costs that the system reports, by its own names; None if it reports none."""
    values_by_name: dict[str, list[float]] = {}
    for usage in usages:
        for name, value in usage.items():
            # Not `isinstance`: True is no amount.
            if type(value) in (int, float):
                values_by_name.setdefault(name, []).append(value)
    totals = {}
    for name, values in sorted(values_by_name.items()):
        total = _total(values)
        if total is not None:
            totals[name] = total
    return totals or None


def _total(values: Sequence[float]) -> float | None:
    """Return the sum; None without values, or if systems report amounts that no number can hold together."""
    try:
        return math.fsum(values) if values else None
    except OverflowError:
        return None
