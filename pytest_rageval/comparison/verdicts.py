"""The verdict on each compared metric, and the result of each regression gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pytest_rageval.comparison.changes import ROUNDING, Change, ComparedMetrics
from pytest_rageval.gates.regression import RegressionGate
from pytest_rageval.model import NOTHING
from pytest_rageval.stats.paired_test import LEVEL
from pytest_rageval.stats.paired_test import Side as Direction

UNGATED_TOLERANCE = 0.05
"""The tolerance of a metric without a gate of its own, as a share of its scale."""
AMOUNT_TOLERANCE = 0.1
"""The tolerance of an amount without a gate of its own, as a share of what it was: times of equal runs differ."""

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
"""'unmeasured': measured before but not now. 'new': measured now but not before. 'incomparable': the runs, or their
values of this metric, cannot be compared. Changes that may be noise or are tolerated can be for better or worse."""
DecidedBy = Literal["tolerance", "own p", "one-sided p"]


def metric_verdicts(
    compared: ComparedMetrics,
    regressions: Sequence[RegressionGate],
    earlier: Mapping[str, Any],
    lost: Mapping[str, int] = NOTHING,
) -> dict[str, Verdict]:
    """Return the verdict on each compared metric.

    A metric that some cases lost is unmeasured, unless it got worse in the others: what is left is of other cases.

    earlier  the metrics of the baseline, under their names of now
    lost     in how many cases a metric of retrieval is no longer measured
    """
    tolerances = {gate.name: gate.tolerance for gate in regressions}
    verdicts: dict[str, Verdict] = {}
    for name, change in compared.changes.items():
        if name in compared.reasons:
            verdicts[name] = "incomparable"
        elif change.delta is None:
            was_measured = change.n_unmeasured > 0 or earlier.get(name, {}).get("mean") is not None
            verdicts[name] = "unmeasured" if was_measured else "new"
        else:
            metric = compared.described[name]
            tolerance = tolerances.get(name, _usual_tolerance(metric, change))
            verdict = _verdict_on_change(change, change.delta, tolerance, metric["better"])
            # Beyond its tolerance it is better or worse, be it by noise.
            is_beyond = verdict in ("regressed", "improved", "beyond tolerance, may be noise")
            has_worsened = is_beyond and not _is_better(change.delta, metric["better"])
            verdicts[name] = "unmeasured" if name in lost and not has_worsened else verdict
    return verdicts


def _usual_tolerance(metric: Mapping[str, Any], change: Change) -> float:
    """Return the tolerance of a metric without a gate of its own: a share of its scale, or of an amount as it was."""
    if "unit" in metric:
        return AMOUNT_TOLERANCE * (change.before or 0.0)
    low, high = metric["scale"]
    return UNGATED_TOLERANCE * float(high - low)


def _verdict_on_change(change: Change, delta: float, tolerance: float, better: str) -> Verdict:
    if abs(delta) <= tolerance + ROUNDING:  # exactly the tolerance is within it
        return "significant, within tolerance" if change.is_significant else "unchanged"
    if change.p is not None and not change.is_significant:
        return "beyond tolerance, may be noise"
    return "improved" if _is_better(delta, better) else "regressed"


def _is_better(delta: float, better: str) -> bool:
    return delta > 0 if better == "higher" else delta < 0


def is_listed(gate: RegressionGate, verdict: Verdict | None, *, is_heuristic: bool) -> bool:
    """Return False for a default gate on a metric that the baseline lacks or that a heuristic judges."""
    if not gate.is_default:
        return True
    if is_heuristic and gate.measure.metric.rubrics:
        return False
    return verdict not in (None, "new")


def regression_result(gate: RegressionGate, change: Change, verdict: Verdict) -> dict[str, Any]:
    """Return the result of a regression gate; `passed` is None if it has no verdict.

    `decided_by`: the tolerance alone, the p of this metric alone as well, or its one-sided p. Verdict and interval
    belong to the deciding p: a one-sided p has an interval with one limit. An adjusted p decides nothing here: which
    other metrics are measured would decide whether a build fails.
    """
    worse: Direction = -1 if gate.word == "drop" else 1
    p_one_sided = change.p_towards(worse)
    decided_by = _decided_by(gate, change, verdict)
    evidence = change.as_mapping()
    del evidence["delta"]  # is `value` here
    if decided_by == "own p" and change.test is not None:
        evidence["ci"] = change.test.interval()
        verdict = _verdict_alone(gate, change, verdict)
    if decided_by == "one-sided p":
        evidence["ci"] = change.test.one_sided_interval(worse) if change.test else None
        if p_one_sided is not None and p_one_sided <= LEVEL:
            verdict = "regressed"
    return {
        "metric": gate.name,
        "op": gate.word,
        "limit": gate.tolerance,
        "significant": gate.significant,
        "decided_by": decided_by,
        "p_one_sided": p_one_sided,
        "value": change.delta,
        **evidence,
        "verdict": verdict,
        "passed": _passes(gate, change, verdict, decided_by),
    }


def _verdict_alone(gate: RegressionGate, change: Change, verdict: Verdict) -> Verdict:
    """Return the verdict by the p of this metric alone; verdicts that say that nothing was tested stay."""
    if change.delta is None or change.p is None or verdict in ("incomparable", "unmeasured", "new"):
        return verdict
    alone = replace(change, p_adjusted=change.p)
    return _verdict_on_change(alone, change.delta, gate.tolerance, gate.measure.metric.better)


def _passes(gate: RegressionGate, change: Change, verdict: Verdict, decided_by: DecidedBy) -> bool | None:
    """Return whether the gate passes; a metric that was not measured fails a gate that the user wrote."""
    if verdict == "incomparable":
        return None
    if verdict == "unmeasured" or change.delta is None:
        return None if gate.is_default else False
    if verdict == "beyond tolerance, may be noise":
        return decided_by != "tolerance" or _is_better(change.delta, gate.measure.metric.better)
    return verdict != "regressed"


def _decided_by(gate: RegressionGate, change: Change, verdict: Verdict) -> DecidedBy:
    """Return what decides the gate.

    A default gate on generated text needs significance beyond its tolerance if the number of differing cases allows it:
    the tolerance alone fails 7 to 27 of 100 builds of 20 cases in which only noise moved.
    """
    if gate.significant:
        return "own p"
    if not gate.is_wary_of_noise or verdict not in ("regressed", "beyond tolerance, may be noise"):
        return "tolerance"
    if change.delta is None or _is_better(change.delta, gate.measure.metric.better):
        return "tolerance"
    has_one_sided_p = change.p_towards(1) is not None  # either side has one if the other has
    return "one-sided p" if has_one_sided_p else "tolerance"
