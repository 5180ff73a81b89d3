"""Known failures that fail a new gate: their cause is that of the new gates, not of those that failed before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.compared_sides import Comparison
from pytest_rageval.runs.causes import Cause, causes_content, earliest, recorded_causes
from pytest_rageval.runs.row import Row

NewGates = Mapping[str, Sequence[str]]
"""Case key → the metrics of its new gates, without their cut-offs."""
Causes = Sequence[Mapping[str, Any]]
"""Causes with the keys of their cases, as in metrics.json."""


def with_comparison(metrics: Mapping[str, Any], comparison: Comparison | None, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the content of metrics.json with the comparison, its gates, and the causes of new gates."""
    if comparison is None:
        return {**metrics, "comparison": None}
    content = comparison.content
    new_causes = _new_causes_of_rows(content["new_gates"], rows)
    shown_causes = {key: cause._asdict() for key, cause in new_causes.items()}
    return {
        **metrics,
        "causes": with_new_causes(metrics["causes"], new_causes),
        "comparison": {**content, "new_causes": shown_causes},
        "gates": [*metrics["gates"], *comparison.gates],
    }


def _new_causes_of_rows(new_gates: NewGates, rows: Iterable[Row]) -> dict[str, Cause]:
    """Return the cause of each case of `new_gates`, from its row."""
    return _new_causes(new_gates, {row.key: row.causes_of_gates for row in rows if row.key in new_gates})


def new_causes_of_side(new_gates: NewGates, side: Side) -> dict[str, Cause]:
    """Return the cause of each case of `new_gates`, from its record; none of a baseline, which keeps no causes."""
    if side.run is None or not new_gates:
        return {}
    records = side.records({*new_gates})
    return _new_causes(new_gates, {key: recorded_causes(record) for key, record in records.items()})


def _new_causes(new_gates: NewGates, causes: Mapping[str, Mapping[str, Cause]]) -> dict[str, Cause]:
    found: dict[str, Cause] = {}
    for key, of_gates in causes.items():
        cause = earliest([of_gates[metric] for metric in new_gates[key] if metric in of_gates])
        if cause is not None:
            found[key] = cause
    return found


def with_new_causes(causes: Causes, new_causes: Mapping[str, Cause]) -> list[dict[str, Any]]:
    """Return the causes of metrics.json with other ones for some cases."""
    pairs: list[tuple[str, Cause]] = []
    for cause in causes:
        own = Cause(cause["kind"], cause["detail"])
        pairs += [(key, new_causes.get(key, own)) for key in cause["cases"]]
    return causes_content(pairs)
