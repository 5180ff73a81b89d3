"""Metrics of which only the description is known: of a project's own, as a stored run recorded them."""

from __future__ import annotations

from pytest_rageval.metrics.registry import Metric
from pytest_rageval.model import NotApplicable


def is_described(metric: Metric) -> bool:
    """Is this a metric of which only the description is known?"""
    return metric.function is without_code or isinstance(metric.function, Described)


def without_code(obs: object, k: int | None = None) -> NotApplicable:  # noqa: ARG001 because metrics are called so
    return NotApplicable("the metric is the project's own: only pytest can compute it")


class Described:
    """Stands for the function of a metric of which only the docstring is known."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __call__(self, obs: object, k: int | None = None) -> NotApplicable:
        return without_code(obs, k)
