"""This run against another: metric by metric over shared cases, case by case, and the gates on what got worse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_rageval.compare.baseline import Baseline
from pytest_rageval.compare.changes import ROUNDING, Change, paired, paired_change, run_change, with_adjusted_p
from pytest_rageval.gates import RegressionGate
from pytest_rageval.plan import Plan
from pytest_rageval.runs.row import CaseScores, Row, cases_of

UNGATED_TOLERANCE = 0.05
"""Share of a metric's scale within which a metric without a gate of its own counts as unchanged."""

Verdict = Literal[
    "regressed",
    "improved",
    "beyond tolerance, may be noise",
    "significant, within tolerance",
    "unchanged",
    "unmeasured",
    "new",
    "incomparable",
]
"""'unmeasured': before and not now. 'new': now and not before. 'incomparable': said of gates only, where the two runs
cannot be compared. What may be noise or is within tolerance is called the same for better and for worse."""


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
    return compare_cases(metrics, {row.key: row for row in cases_of(rows)}, baseline, plan)


def compare_cases(
    metrics: Mapping[str, Any], now: Mapping[str, Row | CaseScores], baseline: Baseline, plan: Plan
) -> Comparison:
    """The same with the run's cases by key."""
    shared = sorted(now.keys() & baseline.cases.keys())
    problems = tuple(_incomparable(metrics, now, shared, baseline))
    gates = {gate.name: gate for gate in plan.regressions}
    described = {**baseline.metrics["metrics"], **metrics["metrics"]}
    changes = _changes(metrics, now, shared, baseline)
    verdicts = {
        name: _verdict(change, described[name], gates.get(name), was_measured=_was_measured(name, change, baseline))
        for name, change in changes.items()
    }
    is_stopped = bool(problems) and not plan.settings.ignore_invariants
    is_heuristic = bool(metrics["judge"] and metrics["judge"]["heuristic"])
    return Comparison(
        content={
            "baseline_run_id": baseline.run_id,
            "problems": list(problems),
            "metrics": {name: change.as_mapping() | {"verdict": verdicts[name]} for name, change in changes.items()},
            **_cases(now, shared, baseline),
        },
        gates=tuple(
            _gate(gate, changes.get(gate.name, Change()), "incomparable" if is_stopped else verdicts.get(gate.name))
            for gate in plan.regressions
            if _is_listed(gate, verdicts.get(gate.name), is_heuristic=is_heuristic)
        ),
        problems=problems,
    )


def _changes(
    metrics: Mapping[str, Any], now: Mapping[str, Row | CaseScores], shared: Sequence[str], baseline: Baseline
) -> dict[str, Change]:
    """By name, every metric of either side: over the cases scored on both, or as a whole if it is one of the run."""
    pairs = paired((baseline.cases[key].scores, now[key].scores) for key in shared)
    before, after = baseline.metrics["metrics"], metrics["metrics"]
    found: dict[str, Change] = {}
    for name in sorted(before.keys() | after.keys()):
        described = after.get(name) or before[name]
        if name in pairs:
            found[name] = paired_change(pairs[name], described["scale"])
        elif described["layer"] == "operations":
            found[name] = run_change(before.get(name, {}).get("mean"), after.get(name, {}).get("mean"))
        else:
            found[name] = Change()
    return with_adjusted_p(found)


def _was_measured(name: str, change: Change, baseline: Baseline) -> bool:
    before = baseline.metrics["metrics"].get(name)
    return change.n_unmeasured > 0 or (before is not None and before["mean"] is not None)


def _verdict(
    change: Change, described: Mapping[str, Any], gate: RegressionGate | None, *, was_measured: bool
) -> Verdict:
    if change.delta is None:
        return "unmeasured" if was_measured else "new"
    low, high = described["scale"]
    tolerance = gate.tolerance if gate else UNGATED_TOLERANCE * (high - low)
    if abs(change.delta) <= tolerance + ROUNDING:  # exactly the tolerance is within it
        return "significant, within tolerance" if change.is_significant else "unchanged"
    if change.p is not None and not change.is_significant:
        return "beyond tolerance, may be noise"
    return "improved" if _is_better(change.delta, described["better"]) else "regressed"


def _is_better(delta: float, better: str) -> bool:
    return delta > 0 if better == "higher" else delta < 0


def _is_listed(gate: RegressionGate, verdict: Verdict | None, *, is_heuristic: bool) -> bool:
    """A default gate on what the baseline did not measure is not worth a line; nor one on a heuristic's judgement."""
    if not gate.is_default:
        return True
    return verdict not in (None, "new") and not (is_heuristic and gate.measure.metric.rubrics)


def _gate(gate: RegressionGate, change: Change, verdict: Verdict | None) -> dict[str, Any]:
    """What a regression gate says. `passed` is None where it says nothing."""
    verdict = verdict or "unmeasured"
    return {
        "metric": gate.name,
        "op": gate.word,
        "limit": gate.tolerance,
        "significant": gate.significant,
        "value": change.delta,
        **{name: value for name, value in change.as_mapping().items() if name != "delta"},
        "verdict": verdict,
        "passed": _passes(gate, change, verdict),
    }


def _passes(gate: RegressionGate, change: Change, verdict: Verdict) -> bool | None:
    """What was not measured was not shown to hold: it fails a gate that the user wrote."""
    if verdict == "incomparable":
        return None
    if change.delta is None:
        return None if gate.is_default else False
    if verdict == "beyond tolerance, may be noise":
        return gate.significant or _is_better(change.delta, gate.measure.metric.better)
    return verdict != "regressed"


def _cases(now: Mapping[str, Row | CaseScores], shared: Sequence[str], baseline: Baseline) -> dict[str, Any]:
    """Which cases fail newly, pass newly, came, went, or could not be measured any more (and by what kind of error)."""
    was_bad = {key for key in shared if baseline.cases[key].is_bad}
    return {
        "flipped_to_fail": [key for key in shared if now[key].is_bad and key not in was_bad],
        "flipped_to_pass": [key for key in shared if now[key].outcome == "passed" and key in was_bad],
        "only_before": sorted(baseline.cases.keys() - now.keys()),
        "only_after": sorted(now.keys() - baseline.cases.keys()),
        "unmeasured": [
            {"case_key": key, "outcome": row.outcome, "reason": row.error_kind or row.outcome}
            for key in shared
            if not (row := now[key]).scores and baseline.cases[key].scores
        ],
    }


def _incomparable(
    metrics: Mapping[str, Any], now: Mapping[str, Row | CaseScores], shared: Sequence[str], baseline: Baseline
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
