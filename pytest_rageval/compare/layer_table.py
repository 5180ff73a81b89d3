"""Layers by category: scores and their changes as every face shows them, in one table.

A layer's score is the mean of its metrics' means as 0 to 1, higher better; its change is the mean of the changes of its
metrics as shares of their scales, over the cases that both runs have scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pytest_rageval.runs.aggregate import mean, normalised

Content = Mapping[str, Any]
ALL = "all"
"""The name of the row over all cases."""


class LayerCell(NamedTuple):
    """A layer in a group of cases; None where nothing was scored, or compared."""

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
    """All cases of a run. `comparison`: of metrics.json, or of a pair; None where nothing is compared."""
    changes = (comparison or {}).get("metrics", {})
    cells = {
        layer: LayerCell(summary["score"], layer_gain(summary["metrics"], changes, metrics["metrics"]))
        for layer, summary in metrics["by_layer"].items()
    }
    return LayerRow(ALL, metrics["total_tests"], metrics["outcomes"], cells)


def layer_rows(metrics: Content, comparison: Content | None, group: str = "category") -> list[LayerRow]:
    """The groups of one breakdown, those of most cases first. Changes are known by category, of a pair of runs."""
    changes = ((comparison or {}).get(f"by_{group}") or {}) if comparison else {}
    groups = sorted(metrics[f"by_{group}"].items(), key=lambda item: (-item[1]["tests"], item[0]))
    return [
        LayerRow(
            name,
            content["tests"],
            content["outcomes"],
            {
                layer: LayerCell(
                    _score(summary["metrics"], content["metrics"], metrics["metrics"]),
                    layer_gain(summary["metrics"], changes.get(name, {}).get("metrics", {}), metrics["metrics"]),
                )
                for layer, summary in metrics["by_layer"].items()
            },
        )
        for name, content in groups
    ]


def layer_gain(names: Iterable[str], changes: Content, described: Content) -> float | None:
    """The mean change of metrics as shares of their scales, positive for the better; None where none was compared."""
    gains = (gain(changes[name]["delta"], described[name]) for name in names if name in changes)
    return mean([each for each in gains if each is not None])


def gain(delta: float | None, described: Content) -> float | None:
    """A metric's change as a share of its scale, positive where it got better."""
    if delta is None:
        return None
    low, high = described["scale"]
    share: float = delta / (high - low)
    return share if described["better"] == "higher" else -share


def _score(names: Iterable[str], scored: Content, described: Content) -> float | None:
    return mean(
        [
            normalised(scored[name]["mean"], described[name]["scale"], described[name]["better"])
            for name in names
            if name in scored
        ]
    )
