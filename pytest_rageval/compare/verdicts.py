"""The verdicts of a comparison: by metric over shared cases, by case, and by regression gate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pytest_rageval.compare.baseline import Baseline
from pytest_rageval.compare.changes import ROUNDING, Change, Pairs, paired, paired_change, run_change, with_adjusted_p
from pytest_rageval.compare.cut_offs import at_shared_cut_off, cut_off_label, paired_cut_offs
from pytest_rageval.gates.regression import RegressionGate
from pytest_rageval.plan import Plan
from pytest_rageval.runs.case_columns import CaseColumns, SharedCases, shared_cases, values_at
from pytest_rageval.runs.comparable import Mismatch, comparable_of, compared_parts, mismatches, relabelled
from pytest_rageval.runs.row import IS_BAD, Row
from pytest_rageval.runs.row_columns import RowColumns
from pytest_rageval.stats.paired_test import LEVEL, Side

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
DecidedBy = Literal["tolerance", "adjusted p", "one-sided p"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What stands in metrics.json, and the outcome of each regression gate.

    `problems`: why the two cannot be compared as they are. `renamed`: metrics before by the names that they have after.
    """

    content: Mapping[str, Any]
    gates: tuple[Mapping[str, Any], ...]
    problems: tuple[Mismatch, ...]
    renamed: Mapping[str, str] = field(default_factory=dict)


def compare_with_baseline(
    metrics: Mapping[str, Any],
    rows: Iterable[Row],
    baseline: Baseline,
    plan: Plan,
    config: Mapping[str, Any] | None,
) -> Comparison:
    """Compare a run with the baseline, paired by case key: the contents of its metrics.json and config.json, its rows.

    `config` is None where nobody knows it any more. Where the plan's settings ask for alike cases, those that changed
    since are left out.
    """
    cases = RowColumns.of(rows).cases().by_key()
    before, after, changed = compared_parts(
        comparable_of(baseline.metrics, baseline.config, baseline.columns),
        comparable_of(metrics, config, cases),
        alike_cases=plan.settings.alike_cases,
    )
    comparison = compare_cases(metrics, cases, baseline, plan, mismatches(before, after), changed)
    return replace(comparison, content={**comparison.content, "relabelled": relabelled(before, after)})


def compare_cases(
    metrics: Mapping[str, Any],
    now: CaseColumns,
    baseline: Baseline,
    plan: Plan,
    problems: Sequence[Mismatch] = (),
    changed: Collection[str] = (),
) -> Comparison:
    """Compare the cases of a run by key with those of the baseline. With `problems` no gate says anything, unless the
    plan's settings ignore them.

    changed  keys of cases that ask or decide otherwise than before: they are on both sides, and compared with nothing
    """
    changed_failing = sorted(key for key in changed if now[key].is_bad)
    now = now.without(changed)
    baseline = replace(baseline, cases=baseline.columns.without(changed))
    renamed, regressions = _at_cut_offs_of_both(metrics, baseline, plan)
    baseline = baseline.renamed(renamed)
    labels = {after: cut_off_label(before, after) for before, after in renamed.items()}
    was = baseline.columns
    shared = shared_cases(was, now)
    changes = _changes(metrics, baseline.metrics["metrics"], paired(was, now, shared))
    has_other_cases = bool(now and was) and not len(now) == len(was) == len(shared.keys)
    verdicts = _verdicts(changes, metrics, regressions, baseline, of_same_cases=not changed and not has_other_cases)
    is_stopped = bool(problems) and not plan.settings.ignore_invariants
    is_heuristic = bool(metrics["judge"] and metrics["judge"]["heuristic"])
    return Comparison(
        content={
            "baseline_run_id": baseline.run_id,
            "compared": not is_stopped,
            "problems": [str(problem) for problem in problems],
            "metrics": {
                name: change.as_mapping() | {"verdict": verdicts[name], "label": labels.get(name, name)}
                for name, change in changes.items()
            },
            **_cases(was, now, shared),
            "changed_cases": sorted(changed),
            "changed_failing": changed_failing,
            "paired": _paired_outcomes(was, now, shared),
        },
        gates=tuple(
            _gate(gate, changes.get(gate.name, Change()), "incomparable" if is_stopped else verdicts.get(gate.name))
            | {"label": labels.get(gate.name, gate.name)}
            for gate in regressions
            if _is_listed(gate, verdicts.get(gate.name), is_heuristic=is_heuristic)
        ),
        problems=tuple(problems),
        renamed=renamed,
    )


def _at_cut_offs_of_both(
    metrics: Mapping[str, Any], baseline: Baseline, plan: Plan
) -> tuple[dict[str, str], list[RegressionGate]]:
    """Names that metrics of the baseline have here, where another k was asked for, and the gates by these names."""
    before, after = baseline.metrics["metrics"].keys(), metrics["metrics"].keys()
    k_before = baseline.config.get("k") if baseline.config else None
    gates = [at_shared_cut_off(gate, before & after, k_before) for gate in plan.regressions]
    return paired_cut_offs(before, after, k_before, plan.settings.k), gates


def _changes(metrics: Mapping[str, Any], before: Mapping[str, Any], pairs: Mapping[str, Pairs]) -> dict[str, Change]:
    """By name, every metric of either side: over the cases scored on both, or as a whole if it is one of the run."""
    after = metrics["metrics"]
    changes: dict[str, Change] = {}
    for name in sorted(before.keys() | after.keys()):
        described = after.get(name) or before[name]
        if name in pairs:
            changes[name] = paired_change(pairs[name], described["scale"])
        elif described["run_level"]:
            changes[name] = run_change(before.get(name, {}).get("mean"), after.get(name, {}).get("mean"))
        else:
            changes[name] = Change()
    return with_adjusted_p(changes)


def _verdicts(
    changes: Mapping[str, Change],
    metrics: Mapping[str, Any],
    regressions: Iterable[RegressionGate],
    baseline: Baseline,
    *,
    of_same_cases: bool,
) -> dict[str, Verdict]:
    """By metric; what is scored once over all cases says nothing where these are others: added cases redden no build.

    of_same_cases  are all cases on both sides, and none left out?
    """
    described = {**baseline.metrics["metrics"], **metrics["metrics"]}
    gates = {gate.name: gate for gate in regressions}
    return {
        name: "incomparable"
        if described[name]["run_level"] and not of_same_cases
        else _verdict(change, described[name], gates.get(name), was_measured=_was_measured(name, change, baseline))
        for name, change in changes.items()
    }


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
    """What a regression gate says. `passed` is None where it says nothing.

    `decided_by`: tolerance alone, the adjusted p beside it, or the one-sided p of this metric by itself. Verdict and
    interval belong to the p that decides: of a one-sided p, all values on one side of its limit.
    """
    verdict = verdict or "unmeasured"
    worse: Side = -1 if gate.word == "drop" else 1
    p_one_sided, decided_by, ci = change.p_towards(worse), _decided_by(gate, change, verdict), change.ci
    if decided_by == "one-sided p":
        ci = change.test.one_sided_interval(worse) if change.test else None
        verdict = "regressed" if p_one_sided is not None and p_one_sided <= LEVEL else verdict
    return {
        "metric": gate.name,
        "op": gate.word,
        "limit": gate.tolerance,
        "significant": gate.significant,
        "decided_by": decided_by,
        "p_one_sided": p_one_sided,
        "value": change.delta,
        **{name: value for name, value in change.as_mapping().items() if name != "delta"},
        "ci": ci,
        "verdict": verdict,
        "passed": _passes(gate, change, verdict, decided_by),
    }


def _passes(gate: RegressionGate, change: Change, verdict: Verdict, decided_by: DecidedBy) -> bool | None:
    """What was not measured was not shown to hold: it fails a gate that the user wrote."""
    if verdict == "incomparable":
        return None
    if change.delta is None:
        return None if gate.is_default else False
    if verdict == "beyond tolerance, may be noise":
        return decided_by != "tolerance" or _is_better(change.delta, gate.measure.metric.better)
    return verdict != "regressed"


def _decided_by(gate: RegressionGate, change: Change, verdict: Verdict) -> DecidedBy:
    """Return what decides the gate.

    A default gate of generated text asks for significance beyond its tolerance, where so many differing cases could
    reach it: its tolerance alone would redden 7 to 27 of 100 builds of 20 cases in which nothing moved but noise.
    """
    if gate.significant:
        return "adjusted p"
    is_beyond = verdict in ("regressed", "beyond tolerance, may be noise")
    if not (is_beyond and gate.is_wary_of_noise) or change.delta is None or change.p_towards(1) is None:
        return "tolerance"
    return "tolerance" if _is_better(change.delta, gate.measure.metric.better) else "one-sided p"


def _cases(was: CaseColumns, now: CaseColumns, shared: SharedCases) -> dict[str, Any]:
    """Which cases fail newly, pass newly, came, went, or could not be measured any more (and by what kind of error)."""
    outcomes = values_at(was.outcomes, shared.before), values_at(now.outcomes, shared.after)
    moved = [each for each in zip(shared.keys, *outcomes, strict=True) if each[1] != each[2]]
    added = [key for key in now if key not in was] if len(shared.keys) < len(now) else []
    return {
        "flipped_to_fail": [key for key, before, after in moved if after in IS_BAD and before not in IS_BAD],
        "flipped_to_pass": [key for key, before, after in moved if after == "passed" and before in IS_BAD],
        "only_before": [key for key in was if key not in now] if len(shared.keys) < len(was) else [],
        "only_after": added,
        "added_failing": [key for key in added if now[key].is_bad],
        "unmeasured": [
            {"case_key": key, "outcome": case.outcome, "reason": case.error_kind or case.outcome}
            for key in (now.case_keys[place] for place in now.places_without_score())
            if key in was and was[key].scores and (case := now[key])
        ],
    }


def _paired_outcomes(was: CaseColumns, now: CaseColumns, shared: SharedCases) -> dict[str, int]:
    """Of the cases that are compared: how many there are, and how many passed before and after."""
    return {
        "cases": len(shared.keys),
        "passed_before": values_at(was.outcomes, shared.before).count("passed"),
        "passed_after": values_at(now.outcomes, shared.after).count("passed"),
    }
