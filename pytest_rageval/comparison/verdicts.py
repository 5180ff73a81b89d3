"""Verdicts of a comparison: by metric over shared cases, by case, and by regression gate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pytest_rageval.comparison.baseline import Side, side_of_run
from pytest_rageval.comparison.changes import (
    ROUNDING,
    Change,
    ComparedMetrics,
    compared_layers,
    compared_metrics,
    fallen_together,
    paired,
    worst_first,
)
from pytest_rageval.comparison.cut_offs import at_shared_cut_off, cut_off_label, paired_cut_offs
from pytest_rageval.comparison.gates_now import Both, case_flips, decided_by_gates_now, gate_changes, gates_of
from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.regression import RegressionGate
from pytest_rageval.io.suggestions import listed
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.columns import CaseColumns, shared_cases, values_at
from pytest_rageval.runs.comparable import (
    Comparable,
    Mismatch,
    changed_cases,
    comparable_of,
    differences,
    judged_otherwise,
    mismatches,
    relabelled,
)
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.row import CaseScores, Row, cases_of
from pytest_rageval.runs.run_ref import in_time, is_of_sweep
from pytest_rageval.stats.paired_test import LEVEL
from pytest_rageval.stats.paired_test import Side as Direction
from pytest_rageval.text import counted

UNGATED_TOLERANCE = 0.05
"""The tolerance of a metric without a gate of its own, as a share of its scale."""

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
DecidedBy = Literal["tolerance", "adjusted p", "one-sided p"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison in metrics.json, and the result of each regression gate.

    before, after  the facts that decide whether the sides can be compared
    problems       why the sides cannot be compared at all
    both           the compared cases; earlier ones are decided by the current gates and have the current metric names
    """

    content: Mapping[str, Any]
    gates: tuple[Mapping[str, Any], ...]
    before: Comparable
    after: Comparable
    problems: tuple[Mismatch, ...]
    both: Both


def compare_with_baseline(
    metrics: Mapping[str, Any],
    rows: Iterable[Row],
    baseline: Side,
    plan: Plan,
    config: Mapping[str, Any] | None,
) -> Comparison:
    """Compare a run with the baseline: the contents of its metrics.json and config.json, and its rows.

    `config` is None if it is not known.
    """
    return compare_sides(baseline, Side("", metrics, CaseColumns.of_rows(cases_of(rows)), config), plan)


def compare_sides(before: Side, after: Side, plan: Plan) -> Comparison:
    """Compare the cases of two sides by key, with the earlier cases decided again by the current gates.

    Leave out cases that changed. If the sides share no other case, gates have no verdict, unless the settings ignore
    that. If a side has no cases, compare every metric as one of the whole run.
    """
    if before.scores is None or after.scores is None:
        before, after = _aggregates(before), _aggregates(after)
    ground = _ground(before, after, plan)
    renamed = paired_cut_offs(before.metrics["metrics"], after.metrics["metrics"], before.k, plan.settings.k)
    earlier = {renamed.get(name, name): metric for name, metric in before.metrics["metrics"].items()}
    both = _compared_cases(before, after, ground, renamed, plan)
    was, now, pairs = both.was, both.now, paired(*both[:3])
    has_other_cases = bool(now and was) and not len(now) == len(was) == len(both.shared.keys)
    is_same = not ground.changed and not has_other_cases
    metrics = after.metrics["metrics"]
    compared = compared_metrics(metrics, earlier, pairs, ground.unlike, is_of_same_cases=is_same)
    shared = before.metrics["metrics"].keys() & after.metrics["metrics"].keys()
    regressions = [at_shared_cut_off(gate, shared, before.k) for gate in plan.regressions]
    tolerances = {gate.name: gate.tolerance for gate in regressions}
    verdicts = {
        name: _verdict(name, change, compared, tolerances, earlier) for name, change in compared.changes.items()
    }
    labels = {name: cut_off_label(old, name) for old, name in renamed.items()}
    is_stopped = bool(ground.problems) and not plan.settings.ignore_invariants
    return Comparison(
        content={
            "baseline_run_id": before.metrics.get("volatile", {}).get("run_id"),
            "compared": not is_stopped,
            "ignores_invariants": plan.settings.ignore_invariants,
            "problems": [str(problem) for problem in ground.problems],
            "differences": ground.differing,
            "gate_changes": gate_changes(before.config, after.config),
            "metrics": {name: _metric(name, compared, verdicts[name], labels) for name in compared.changes},
            "layers": compared_layers(compared),
            **_cases(both, compared, metrics),
            "changed_cases": sorted(ground.changed),
            "changed_failing": sorted(key for key in ground.changed if after.cases[key].is_bad),
            "relabelled": relabelled(*ground.facts),
        },
        gates=tuple(
            _gate(gate, compared.changes.get(gate.name, Change()), "incomparable" if is_stopped else verdict)
            | {"label": labels.get(gate.name, gate.name)}
            for gate, verdict in ((gate, verdicts.get(gate.name)) for gate in regressions)
            if _is_listed(gate, verdict, is_heuristic=both.gates_now.is_heuristic)
        ),
        before=ground.facts[0],
        after=ground.facts[1],
        problems=ground.problems,
        both=both,
    )


class _Ground(NamedTuple):
    """The facts that decide what of two sides is compared, and lines on how they differ.

    changed  cases that are left out
    unlike   metrics that were judged by different judges
    """

    facts: tuple[Comparable, Comparable]
    problems: tuple[Mismatch, ...]
    changed: Collection[str]
    unlike: Collection[str]
    differing: list[str]


def _ground(before: Side, after: Side, plan: Plan) -> _Ground:
    was, now = (comparable_of(side.metrics, side.config, side.scores) for side in (before, after))
    problems, changed = tuple(mismatches(was, now)), changed_cases(was, now)
    differing, rubrics = [*map(str, differences(was, now))], judged_otherwise(was, now)
    if not plan.settings.ignore_invariants:
        unlike = {metric.name for metric in plan.registry if not rubrics.isdisjoint((metric.name, *metric.rubrics))}
        return _Ground((was, now), problems, changed, unlike, differing)
    if changed:
        cases_are = counted(len(changed), "changed case is", "changed cases are")
        differing.append(f"{cases_are} compared all the same: {listed(changed)}")
    return _Ground((was, now), problems, (), (), differing)


def _compared_cases(before: Side, after: Side, ground: _Ground, renamed: Mapping[str, str], plan: Plan) -> Both:
    """Return the cases of both sides, without earlier retrieval scores of cases whose golds are matched otherwise."""
    was, now = before.cases.without(ground.changed).renamed(renamed), after.cases.without(ground.changed)
    matched_otherwise = differing_doubts(before.metrics, after.metrics).keys() & was.keys() & now.keys()
    if matched_otherwise and not plan.settings.ignore_invariants:
        names = before.metrics["metrics"]
        retrieval = {renamed.get(name, name) for name in names if names[name]["layer"] == "L2"}
        was = was.unscored(matched_otherwise, retrieval)
        ground.differing.append(matched_otherwise_note(matched_otherwise, before.metrics, after.metrics))
    gates = [gates_of(side.metrics, side.config, plan.settings.k) for side in (before, after)]
    both = Both(was, now, shared_cases(was, now), gates[0], gates[1], ground.unlike)
    return both._replace(was=decided_by_gates_now(both))


def differing_doubts(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the doubts about the matches of both metrics.json, by case, where they differ."""
    was, now = ((side.get("doubts") or {}).get("cases", {}) for side in (before, after))
    doubts = {key: (was.get(key, "none"), now.get(key, "none")) for key in {*was, *now}}
    return {key: pair for key, pair in doubts.items() if pair[0] != pair[1]}


def matched_otherwise_note(keys: Collection[str], before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return a line about cases whose golds are matched by other steps than before."""
    doubts = differing_doubts(before, after)
    kinds = sorted({f"doubt {was}, now {now}" for was, now in map(doubts.__getitem__, keys)})
    cases = counted(len(keys), "case is", "cases are")
    return (
        f"{cases} matched otherwise ({'; '.join(kinds)}), and their retrieval is not compared: {listed(sorted(keys))}"
    )


def _aggregates(side: Side) -> Side:
    """Return a side without its cases, where each metric is one of the whole run."""
    metrics = {name: {**metric, "run_level": True} for name, metric in side.metrics["metrics"].items()}
    return replace(side, metrics={**side.metrics, "metrics": metrics}, scores=None)


def _metric(name: str, compared: ComparedMetrics, verdict: Verdict, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        **{part: compared.described[name][part] for part in ("layer", "scale", "better")},
        **compared.changes[name].as_mapping(),
        "verdict": verdict,
        "label": labels.get(name, name),
        "why": compared.reasons.get(name, ""),
    }


def _verdict(
    name: str, change: Change, compared: ComparedMetrics, tolerances: Mapping[str, float], earlier: Mapping[str, Any]
) -> Verdict:
    if name in compared.reasons:
        return "incomparable"
    if change.delta is None:
        was_measured = change.n_unmeasured > 0 or earlier.get(name, {}).get("mean") is not None
        return "unmeasured" if was_measured else "new"
    low, high = compared.described[name]["scale"]
    tolerance = tolerances.get(name, UNGATED_TOLERANCE * (high - low))
    if abs(change.delta) <= tolerance + ROUNDING:  # exactly the tolerance is within it
        return "significant, within tolerance" if change.is_significant else "unchanged"
    if change.p is not None and not change.is_significant:
        return "beyond tolerance, may be noise"
    return "improved" if _is_better(change.delta, compared.described[name]["better"]) else "regressed"


def _is_better(delta: float, better: str) -> bool:
    return delta > 0 if better == "higher" else delta < 0


def _is_listed(gate: RegressionGate, verdict: Verdict | None, *, is_heuristic: bool) -> bool:
    """Return False for a default gate on a metric that the baseline lacks or that a heuristic judges."""
    if not gate.is_default:
        return True
    return verdict not in (None, "new") and not (is_heuristic and gate.measure.metric.rubrics)


def _gate(gate: RegressionGate, change: Change, verdict: Verdict | None) -> dict[str, Any]:
    """Return the result of a regression gate; `passed` is None if it has no verdict.

    `decided_by`: the tolerance alone, the adjusted p as well, or the one-sided p of this metric alone. Verdict and
    interval belong to the deciding p: a one-sided p has an interval with one limit.
    """
    verdict = verdict or "unmeasured"
    worse: Direction = -1 if gate.word == "drop" else 1
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
    """Return whether the gate passes; a metric that was not measured fails a gate that the user wrote."""
    if verdict == "incomparable":
        return None
    if change.delta is None:
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
        return "adjusted p"
    is_beyond = verdict in ("regressed", "beyond tolerance, may be noise")
    if not (is_beyond and gate.is_wary_of_noise) or change.delta is None or change.p_towards(1) is None:
        return "tolerance"
    return "tolerance" if _is_better(change.delta, gate.measure.metric.better) else "one-sided p"


def _cases(both: Both, compared: ComparedMetrics, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics that fell together, and the cases that flipped, are new or gone, or have no score any more."""
    was, now, shared = both.was, both.now, both.shared
    comparable = {name: compared.described[name] for name in compared.changes.keys() - compared.reasons.keys()}
    flips = case_flips(both)
    added = [key for key in now if key not in was] if len(shared.keys) < len(now) else []
    return {
        "fallen": fallen_together(was, now, shared, comparable),
        **flips._replace(flipped_to_fail=worst_first(flips.flipped_to_fail, was, now, metrics))._asdict(),
        "only_before": [key for key in was if key not in now] if len(shared.keys) < len(was) else [],
        "only_after": added,
        "added_failing": [key for key in added if now[key].is_bad],
        "unmeasured": [
            {"case_key": key, "outcome": case.outcome, "reason": case.error_kind or case.outcome}
            for key in (now.case_keys[place] for place in now.places_without_score())
            if key in was and was[key].scores and (case := now[key])
        ],
        "paired": {
            "cases": len(shared.keys),
            "passed_before": values_at(was.outcomes, shared.before).count("passed"),
            "passed_after": values_at(now.outcomes, shared.after).count("passed"),
        },
    }


Cases = Mapping[str, CaseScores] | Mapping[str, Row]
"""The outcome and scores of each case of a run, by key."""
SEARCHED_RUNS = 20
"""How many earlier runs are searched for the last complete one."""


def compare_with_previous(run: StoredRun, cases: Cases, plan: Plan) -> Mapping[str, Any] | None:
    """Compare a run with the last complete one before it, as if that were the baseline; None without such a run."""
    folders: list[Path] = [path for path in in_time(run.path.parent) if path == run.path or not is_of_sweep(path)]
    before = folders[: folders.index(run.path)] if run.path in folders else []
    now = Side(run.run_id, run.finished_metrics, CaseColumns.of(cases), run.config)
    for earlier in map(StoredRun, before[: -SEARCHED_RUNS - 1 : -1]):
        try:
            if earlier.state == "complete" and earlier.scores is not None:
                return compare_sides(side_of_run(earlier), now, plan).content
        except SettingsError:
            continue  # skip a damaged run: the user did not ask for it, and an earlier one serves
    return None
