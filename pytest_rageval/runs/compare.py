"""This run against the baseline: metric by metric over shared cases, and the gates on what got worse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rageval.gates import RegressionGate
from pytest_rageval.plan import Plan
from pytest_rageval.runs.aggregate import mean
from pytest_rageval.runs.baseline import Baseline
from pytest_rageval.runs.rows import Row, in_order

UNGATED_TOLERANCE = 0.05
"""Share of a metric's scale within which a metric without a gate of its own counts as unchanged."""
ROUNDING = 1e-12
"""A change of exactly the tolerance is within it, whatever binary fractions make of it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What stands in metrics.json, and the outcome of each regression gate.

    `problems`: why the two cannot be compared as they are (cases or judge changed).
    """

    content: Mapping[str, Any]
    gates: tuple[Mapping[str, Any], ...]
    problems: tuple[str, ...]


def compare(metrics: Mapping[str, Any], rows: Iterable[Row], baseline: Baseline, plan: Plan) -> Comparison:
    """Compare a run's metrics.json content and rows with the baseline, paired by case key."""
    now = {row.key: row for row in in_order(rows)}
    shared = sorted(now.keys() & baseline.cases.keys())
    gates = {gate.name: gate for gate in plan.regressions}
    compared = {
        name: _metric(name, metrics, now, shared, baseline, gates.get(name))
        for name in sorted(metrics["metrics"].keys() | baseline.metrics["metrics"].keys())
    }
    was_bad = {key for key in shared if baseline.cases[key].is_bad}
    is_bad = {key for key in shared if now[key].is_bad}
    is_good = {key for key in shared if now[key].outcome == "passed"}
    content = {
        "baseline_run_id": baseline.run_id,
        "metrics": compared,
        "flipped_to_fail": sorted(is_bad - was_bad),
        "flipped_to_pass": sorted(was_bad & is_good),
        "only_before": sorted(baseline.cases.keys() - now.keys()),
        "only_after": sorted(now.keys() - baseline.cases.keys()),
    }
    return Comparison(
        content=content,
        gates=tuple(
            _gate(gate, compared.get(gate.name))
            for gate in plan.regressions
            if _is_listed(gate, compared, is_heuristic=bool(metrics["judge"] and metrics["judge"]["heuristic"]))
        ),
        problems=tuple(_incomparable(metrics, now, shared, baseline)),
    )


def _metric(
    name: str,
    metrics: Mapping[str, Any],
    now: Mapping[str, Row],
    shared: Sequence[str],
    baseline: Baseline,
    gate: RegressionGate | None,
) -> dict[str, Any]:
    """One metric before and after: over the cases scored on both sides, or as a whole where it is one of the run."""
    after_all, before_all = metrics["metrics"].get(name), baseline.metrics["metrics"].get(name)
    described = after_all or before_all
    pairs = [
        (baseline.cases[key].scores[name], now[key].scores[name])
        for key in shared
        if name in baseline.cases[key].scores and name in now[key].scores
    ]
    before, after = mean([b for b, _ in pairs]), mean([a for _, a in pairs])
    if not pairs and described["layer"] == "operations":
        before = before_all["mean"] if before_all else None
        after = after_all["mean"] if after_all else None
    delta = after - before if before is not None and after is not None else None
    return {
        "before": before,
        "after": after,
        "delta": delta,
        "n_paired": len(pairs),
        "ci": None,
        "p": None,
        "verdict": _verdict(delta, described, gate, before_all is not None and before_all["mean"] is not None),
    }


def _verdict(delta: float | None, described: Mapping[str, Any], gate: RegressionGate | None, was_measured: bool) -> str:
    if delta is None:
        return "unmeasured" if was_measured else "new"
    low, high = described["scale"]
    tolerance = gate.tolerance if gate else UNGATED_TOLERANCE * (high - low)
    gain = delta if described["better"] == "higher" else -delta
    if gain < -tolerance - ROUNDING:
        return "regressed"
    return "improved" if gain > tolerance + ROUNDING else "unchanged"


def _is_listed(gate: RegressionGate, compared: Mapping[str, Mapping[str, Any]], *, is_heuristic: bool) -> bool:
    """A default gate on what neither side measured is not worth a line; nor one that rests on a heuristic judge."""
    if not gate.is_default:
        return True
    if is_heuristic and gate.measure.metric.rubrics:
        return False
    one = compared.get(gate.name)
    return one is not None and one["verdict"] != "new"


def _gate(gate: RegressionGate, compared: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a regression gate says. `passed` None: it could not be measured; a gate that the user wrote then fails."""
    delta = compared["delta"] if compared else None
    passed = None if compared is None or delta is None else compared["verdict"] != "regressed"
    if passed is None and not gate.is_default:
        passed = False
    return {
        "metric": gate.name,
        "op": gate.word,
        "limit": gate.tolerance,
        "value": delta,
        "before": compared["before"] if compared else None,
        "after": compared["after"] if compared else None,
        "verdict": compared["verdict"] if compared else "unmeasured",
        "passed": passed,
    }


def _incomparable(
    metrics: Mapping[str, Any], now: Mapping[str, Row], shared: Sequence[str], baseline: Baseline
) -> Iterable[str]:
    """Invariants that do not hold: what must be the same on both sides for a difference to mean anything."""
    changed = [key for key in shared if baseline.cases[key].content_hash != now[key].content_hash]
    if changed:
        listed = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
        yield f"{len(changed)} of {len(shared)} shared cases changed since the baseline: {listed}"
    before, after = baseline.metrics.get("judge"), metrics.get("judge")
    if not before or not after:
        return  # nothing was judged on one side: what a judge scores is unmeasured, the rest compares
    if before["model"] != after["model"]:
        yield f"the judge was {before['model']} in the baseline and is {after['model']} now"
    for rubric in sorted(before["prompt_versions"].keys() & after["prompt_versions"].keys()):
        versions = before["prompt_versions"][rubric], after["prompt_versions"][rubric]
        if versions[0] != versions[1]:
            yield f"rubric {rubric} was {versions[0]} in the baseline and is {versions[1]} now"
