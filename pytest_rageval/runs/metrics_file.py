"""The content of metrics.json, of any age, in today's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_rageval.metrics import load_registry


def in_present_form(content: Mapping[str, Any], config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The content with `run_level` at each metric: files written before that key was do not hold it.

    It is then what the metric's declaration says, of a metric of the project's own that in the run's `config`; where
    nobody knows the metric any more, operations are taken for metrics of the run.
    """
    metrics = content.get("metrics")
    if not isinstance(metrics, Mapping):
        return dict(content)
    own = (config or {}).get("own_metrics", {})
    return dict(content) | {"metrics": {name: _completed(name, metric, own) for name, metric in metrics.items()}}


def _completed(name: str, metric: Any, own: Mapping[str, Any]) -> Any:
    if not isinstance(metric, Mapping) or "run_level" in metric:
        return metric
    bare, registry = name.partition("@")[0], load_registry()
    if bare in registry:
        is_run_level = registry[bare].run_level
    else:
        is_run_level = bool(own.get(bare, {}).get("run_level", metric.get("layer") == "operations"))
    return {**metric, "run_level": is_run_level}


def run_level_names(metrics: Mapping[str, Any]) -> list[str]:
    """The metrics of a metrics.json that are scored once a run, by name."""
    return sorted(name for name, metric in metrics["metrics"].items() if metric["run_level"])
