"""Retrieval that the earlier run measured and the later one did not: chunks vanished from the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pytest_rageval.comparison.changes import Pairs
from pytest_rageval.comparison.gates_now import Both, gates_of_case
from pytest_rageval.runs.columns import values_at
from pytest_rageval.runs.reservations import is_of_retrieval

LOST_RETRIEVAL = "lost_retrieval"
"""The key of these cases in a comparison; a comparison without any is without it."""


class LostRetrieval(NamedTuple):
    """The keys of the shared cases whose retrieval is no longer measured, and their number by metric."""

    cases: list[str]
    by_metric: Mapping[str, int]


def lost_retrieval(both: Both, pairs: Mapping[str, Pairs], metrics: Mapping[str, Mapping[str, Any]]) -> LostRetrieval:
    """Return the cases in which a gate on retrieval, or all of retrieval, was measured before and is not now.

    Leave out metrics that the later run did not measure at all, since they were switched off, and cases that end in an
    error.

    metrics  of the metrics.json of the later run
    """
    of_retrieval = [name for name in pairs if name in metrics and is_of_retrieval(name)]
    lost: dict[int, list[str]] = {}
    for name in of_retrieval:
        if pairs[name].lost:
            for at in _lost_places(name, both):
                lost.setdefault(at, []).append(name)
    cases: list[str] = []
    by_metric: Counter[str] = Counter()
    for at, names in sorted(lost.items()):
        key = both.shared.keys[at]
        # Built for these few cases alone.
        is_all_lost = both.now[key].scores.keys().isdisjoint(of_retrieval)
        if is_all_lost or _is_gate_lost(key, names, both):
            cases.append(key)
            by_metric.update(names)
    return LostRetrieval(cases, dict(by_metric))


def _lost_places(name: str, both: Both) -> Iterator[int]:
    """Yield the places of the shared cases without an error that lost their score."""
    nowhere = [None] * len(both.now)
    was = values_at(both.was.scores[name], both.shared.before)
    now = values_at(both.now.scores.get(name, nowhere), both.shared.after)
    outcomes = values_at(both.now.outcomes, both.shared.after)
    for at, (old, new) in enumerate(zip(was, now, strict=True)):
        if old is not None and new is None and outcomes[at] != "error":
            yield at


def _is_gate_lost(key: str, names: list[str], both: Both) -> bool:
    gates = gates_of_case(key, both)
    if gates is None:
        return False
    lost_gates = gates.was.keys() - gates.now.keys()
    return not lost_gates.isdisjoint(name.partition("@")[0] for name in names)
