"""Metrics grouped under the titles of their layers, for readers."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_rageval.metrics.registry import LAYERS, Metric


def by_layer(metrics: Iterable[Metric]) -> dict[str, list[Metric]]:
    """Group metrics by the title of their layer, as `L2 retrieval`, in the order of the layers."""
    groups: dict[str, list[Metric]] = {layer: [] for layer in LAYERS}
    for metric in metrics:
        groups[metric.layer].append(metric)
    return {_title(layer): group for layer, group in groups.items() if group}


def _title(layer: str) -> str:
    """Return the title of a layer: `L2 retrieval`, but `Operations`."""
    title = LAYERS[layer]
    if layer != title:
        return f"{layer} {title}"
    return title[:1].upper() + title[1:]
