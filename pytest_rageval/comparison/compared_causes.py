"""Causes that only a comparison shows: of the new gates of known failures, and of golds under another name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any

from pytest_rageval.comparison.baseline import Side, with_stored_run
from pytest_rageval.comparison.case_diff import records_of
from pytest_rageval.comparison.compared_sides import Comparison
from pytest_rageval.comparison.moved_golds import Records, causes_of_moved_golds
from pytest_rageval.comparison.slower_answers import slower_answers
from pytest_rageval.runs.causes import Cause, causes_content, earliest, recorded_causes
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.records.line_form import RESULTS
from pytest_rageval.runs.row import Row

NewGates = Mapping[str, Sequence[str]]
"""Case key → the metrics of its new gates, without their cut-offs."""
Causes = Sequence[Mapping[str, Any]]
"""Causes with the keys of their cases, as in metrics.json."""


def with_comparison(
    metrics: Mapping[str, Any],
    comparison: Comparison | None,
    rows: Sequence[Row],
    baseline: Side | None,
    folder: RunFolder,
) -> dict[str, Any]:
    """Return the content of metrics.json with the comparison, its gates, and the causes that it shows.

    folder  of this run
    """
    if comparison is None or baseline is None:
        return {**metrics, "comparison": None}
    content = comparison.content
    now = partial(records_of, folder.path / RESULTS)
    before = with_stored_run(baseline, folder.reports)
    moved = causes_of_moved_golds(metrics["causes"], newly_failing(content), before.readable_records, now)
    new_causes = moved | _new_causes_of_rows(content["new_gates"], rows)
    shown_causes = {key: cause._asdict() for key, cause in new_causes.items()}
    volatile = metrics["volatile"]
    if content["compared"]:
        shared = before.cases.keys() & {row.key for row in rows}
        volatile = _with_slower_answers(metrics, before, shared, now)
    return {
        **metrics,
        "volatile": volatile,
        "causes": with_new_causes(metrics["causes"], new_causes),
        "comparison": {**content, "new_causes": shown_causes},
        "gates": [*metrics["gates"], *comparison.gates],
    }


def _with_slower_answers(
    metrics: Mapping[str, Any], before: Side, shared: Set[str], records_now: Records
) -> Mapping[str, Any]:
    """Return the volatile part of metrics.json, with how much longer answers take if they do.

    Times differ between runs with equal results, and stand with all that is of one run alone.
    """
    volatile: Mapping[str, Any] = metrics["volatile"]
    slower = slower_answers(before.metrics, metrics, shared, before.readable_records, records_now)
    if slower is None:
        return volatile
    return {**volatile, "slower_answers": slower}


def newly_failing(content: Mapping[str, Any]) -> frozenset[str]:
    """Return the cases that passed before, or fail a new gate; none if nothing is compared."""
    if not content["compared"]:
        return frozenset()
    return frozenset([*content["flipped_to_fail"], *content["fails_new_gate"]])


def _new_causes_of_rows(new_gates: NewGates, rows: Iterable[Row]) -> dict[str, Cause]:
    """Return the cause of each case of `new_gates`, from its row."""
    return _new_causes(new_gates, {row.key: row.causes_of_gates for row in rows if row.key in new_gates})


def new_causes_of_sides(content: Mapping[str, Any], before: Side, after: Side) -> dict[str, Cause]:
    """Return the causes that the comparison of two sides shows, by case; none of a baseline, which keeps no causes."""
    if after.run is None:
        return {}
    moved = causes_of_moved_golds(
        after.metrics.get("causes", ()), newly_failing(content), before.readable_records, after.readable_records
    )
    new_gates: NewGates = content["new_gates"]
    if not new_gates:
        return moved
    records = after.readable_records({*new_gates})
    return moved | _new_causes(new_gates, {key: recorded_causes(record) for key, record in records.items()})


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
