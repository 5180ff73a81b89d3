"""Layer scores by category and their changes, in the one table that every report shows.

A layer's score is the mean of its metrics' means as 0 to 1, where higher is better. Its change is the mean of its
metrics' changes as shares of their scales, over the cases scored in both runs. It has no change if the runs scored
different metrics of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pytest_rageval.comparison.changes import gain
from pytest_rageval.runs.aggregate import mean, normalised

Content = Mapping[str, Any]
ALL = "all"
"""The name of the row over all cases."""


class LayerCell(NamedTuple):
    """A layer in a group of cases; None if nothing was scored or compared."""

    score: float | None
    change: float | None


class LayerRow(NamedTuple):
    """A group of cases, with a cell for each layer."""

    name: str
    cases: int
    outcomes: Mapping[str, int]
    cells: Mapping[str, LayerCell]

    @property
    def passed(self) -> int:
        return self.outcomes["passed"]


def total_row(metrics: Content, comparison: Content | None) -> LayerRow:
    """Return the row over all cases. `comparison`: of metrics.json or of a pair; None if nothing is compared."""
    changes = (comparison or {}).get("layers", {})
    cells: dict[str, LayerCell] = {}
    for layer, summary in metrics["by_layer"].items():
        change = changes.get(layer, {}).get("delta")
        cells[layer] = LayerCell(summary["score"], change)
    return LayerRow(ALL, metrics["total_tests"], metrics["outcomes"], cells)


def layer_rows(metrics: Content, comparison: Content | None, group: str = "category") -> list[LayerRow]:
    """Return the groups of one breakdown, largest first; in a comparison of two runs they have changes."""
    changes = (comparison or {}).get(f"by_{group}") or {}
    largest_first = sorted(metrics[f"by_{group}"].items(), key=lambda item: (-item[1]["tests"], item[0]))
    rows: list[LayerRow] = []
    for name, content in largest_first:
        cells: dict[str, LayerCell] = {}
        for layer, summary in metrics["by_layer"].items():
            score = _score(summary["metrics"], content["metrics"], metrics["metrics"])
            change = None
            if comparison and name in changes:
                change = layer_gain(layer, changes[name]["metrics"], comparison)
            cells[layer] = LayerCell(score, change)
        rows.append(LayerRow(name, content["tests"], content["outcomes"], cells))
    return rows


def layer_gain(layer: str, changes: Content, comparison: Content) -> float | None:
    """Return the mean change of a layer's metrics in a group of cases; None if the layer as a whole has none.

    `changes`: of the group, by metric. A change is a share of the metric's scale, positive if it got better.
    """
    if comparison["layers"].get(layer, {}).get("delta") is None:
        return None
    described = comparison["metrics"]
    gains: list[float] = []
    for name, change in changes.items():
        metric = described[name]
        if metric["layer"] != layer or "unit" in metric:
            continue
        share = gain(change["delta"], metric)
        if share is not None:
            gains.append(share)
    return mean(gains)


def layer_notes(comparison: Content | None) -> list[str]:
    """Return why each layer without a change has none."""
    layers = (comparison or {}).get("layers", {})
    reasons = {layer: compared["why"] for layer, compared in layers.items() if compared["why"]}
    return [f"{layer}: not compared, {reason_in_words(why)}" for layer, why in reasons.items()]


def reason_in_words(why: str) -> str:
    """Return a recorded reason, as `not of the same cases: mrr`, as the end of a sentence."""
    reason, _, names = why.partition(": ")
    words = _REASONS.get(reason)
    if words is None or not names:
        return why
    return words.format(names)


_REASONS = {
    "judged otherwise": "since {} was judged by another judge or prompt",
    "not of the same metrics": "since only one of the runs has a value of {}",
    "not of the same cases": "since the runs have {} in different cases",
}
"""Recorded reasons, with the place of the metrics."""


def _score(names: Iterable[str], scored: Content, described: Content) -> float | None:
    """Return the mean of these metrics' means in a group as 0 to 1; None if none was scored."""
    shares: list[float] = []
    for name in names:
        if name in scored and "unit" not in described[name]:
            metric = described[name]
            shares.append(normalised(scored[name]["mean"], metric["scale"], metric["better"]))
    return mean(shares)
