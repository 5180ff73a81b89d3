"""The registry of metrics: those of this package, of entry points of installed packages, and of the user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.importing import plugged_in
from pytest_rageval.metrics import (
    abstention,
    answer,
    assertions,
    calls,
    citations,
    gold_answer,
    graph,
    judged,
    operations,
    query,
    repeats,
    retrieval,
    rewrites,
    searches,
    tools,
    turns,
    whole_conversation,
)
from pytest_rageval.metrics.ontology import rates
from pytest_rageval.metrics.registry import Metric, Registry

GROUP = "rageval.metrics"
"""Entry points of this group load to a metric or to a list of them."""
_LAYERS = (
    query,
    retrieval,
    citations,
    graph,
    rates,
    answer,
    gold_answer,
    assertions,
    judged,
    whole_conversation,
    abstention,
    tools,
    searches,
    calls,
    operations,
    repeats,
    turns,
    rewrites,
)


def builtin_metrics() -> tuple[Metric, ...]:
    """Return the metrics of this package, layer by layer, in the order of their modules."""
    metrics: list[Metric] = []
    for layer in _LAYERS:
        members = [member for member in vars(layer).values() if isinstance(member, Metric)]
        # A module may import a metric of another one.
        metrics += [metric for metric in members if metric.function.__module__ == layer.__name__]
    return tuple(metrics)


def load_registry(extra: Iterable[Metric] = ()) -> Registry:
    """Return all known metrics: built in, from entry points, and `extra`.

    What cannot be loaded, is no metric, or takes the name of another is a SettingsError; all such problems together.
    """
    registry = Registry(builtin_metrics())
    problems: list[str] = []
    # Sorted: entry points come in the order in which packages lie on the disk.
    for point in sorted(plugged_in(GROUP), key=lambda point: (point.name, point.value)):
        loaded = _load(point, problems)
        problems += _add(registry, loaded, f"entry point {point.name} = {point.value}: ")
    problems += _add(registry, extra, "")
    if problems:
        raise SettingsError(*problems)
    return registry


def _add(registry: Registry, metrics: Iterable[Metric], place: str) -> Iterator[str]:
    for metric in metrics:
        try:
            registry.add(metric)
        except SettingsError as error:
            yield from (place + problem for problem in error.problems)


def _load(point: EntryPoint, problems: list[str]) -> list[Metric]:
    try:
        loaded = point.load()
    except Exception as error:  # noqa: BLE001  another package's module may raise anything; its name is what helps
        problems.append(
            f"entry point {point.name} = {point.value}: {type(error).__name__}: {error}; uninstall or mend it"
        )
        return []
    return list(loaded) if isinstance(loaded, list | tuple) else [loaded]
