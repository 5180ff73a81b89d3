"""The gates of a run on its aggregates: on the mean of a metric, or on another statistic of its cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_rageval.gates.gate import Gate
from pytest_rageval.runs.latency_and_cost import statistics_of


def run_gate_result(gate: Gate, metric: Mapping[str, Any], values: Sequence[float]) -> dict[str, Any]:
    """Return the result of a gate on an aggregate; it fails if the aggregate has no value.

    metric  as metrics.json has it
    values  of the cases
    """
    value = metric["mean"]
    statistic = {}
    if gate.statistic != "mean":
        value = statistics_of(values)[gate.statistic]
        statistic = {"statistic": gate.statistic, "label": gate.subject}
    return {
        "metric": gate.name,
        "op": gate.op,
        "limit": gate.threshold,
        "value": value,
        "when": None,
        "tag": gate.tag,
        # No value is no pass: a gate that looks at nothing would be green for ever.
        "passed": value is not None and gate.holds(value),
        "n_scored": metric["n_scored"],
        "n_expected": metric["n_expected"],
        **statistic,
    }
