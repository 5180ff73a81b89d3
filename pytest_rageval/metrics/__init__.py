"""Metrics: pure functions from an observation to a score, and the registry that knows them by name."""

from __future__ import annotations

from pytest_rageval.metrics.builtin import builtin_metrics, load_registry

__all__ = ["builtin_metrics", "load_registry"]
