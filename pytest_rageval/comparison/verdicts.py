"""Verdicts of a comparison: by metric over shared cases, by case, and by regression gate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pytest_rageval.comparison.baseline import Side, side_of_run
from pytest_rageval.comparison.changes import (
    ROUNDING,
    Change,
    compared_layers,
    compared_metrics,
    fallen_together,
    paired,
    worst_first,
)
from pytest_rageval.comparison.gates_now import Both, case_flips, decided_by_gates_now, gate_changes, gates_of
from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.regression import RegressionGate
from pytest_rageval.io.suggestions import listed
from pytest_rageval.plan import Plan
from pytest_rageval.runs.columns import CaseColumns, Scores, scores_of, shared_cases, values_at
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
from pytest_rageval.runs.run_ref import in_time
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
    return compare_sides(baseline, Side("", metrics, scores_of(cases_of(rows)), config), plan)


def compare_sides(before: Side, after: Side, plan: Plan) -> Comparison:
    """Compare the cases of two sides by key, with the earlier cases decided again by the current gates.

    Leave out cases that changed. If the sides share no other case, gates have no verdict, unless the settings ignore
    that. If a side has no cases, compare every metric as one of the whole run.
    """
    if before.scores is None or after.scores is None:
        before, after = _aggregates(before), _aggregates(after)
    facts = [comparable_of(side.metrics, side.config, side.cases if side.scores else None) for side in (before, after)]
    problems, changed = tuple(mismatches(*facts)), changed_cases(*facts)
    is_stopped = bool(problems) and not plan.settings.ignore_invariants
    differing, rubrics = [*map(str, differences(*facts))], judged_otherwise(*facts)
    unlike = {metric.name for metric in plan.registry if not rubrics.isdisjoint((metric.name, *metric.rubrics))}
    if plan.settings.ignore_invariants:
        if changed:
            cases_are = counted(len(changed), "changed case is", "changed cases are")
            differing.append(f"{cases_are} compared all the same: {listed(changed)}")
        changed, unlike = (), set()
    metrics, earlier = after.metrics["metrics"], before.metrics["metrics"]
    renamed = paired_cut_offs(earlier, metrics, before.k, plan.settings.k)
    regressions = [at_shared_cut_off(gate, earlier.keys() & metrics.keys(), before.k) for gate in plan.regressions]
    earlier = {renamed.get(name, name): metric for name, metric in earlier.items()}
    was, now = before.cases.without(changed).renamed(renamed), after.cases.without(changed)
    matched_otherwise = differing_doubts(before.metrics, after.metrics).keys() & was.keys() & now.keys()
    if matched_otherwise and not plan.settings.ignore_invariants:
        was = was.unscored(matched_otherwise, {name for name in earlier if earlier[name]["layer"] == "L2"})
        differing.append(matched_otherwise_note(matched_otherwise, before.metrics, after.metrics))
    shared = shared_cases(was, now)
    gates = [gates_of(side.metrics, side.config, plan.settings.k) for side in (before, after)]
    both = Both(was, now, shared, gates[0], gates[1], unlike)
    both = both._replace(was=decided_by_gates_now(both))
    has_other_cases = bool(now and was) and not len(now) == len(was) == len(shared.keys)
    flips = case_flips(both)
    flips = flips._replace(flipped_to_fail=worst_first(flips.flipped_to_fail, both.was, now, metrics))
    pairs = paired(both.was, now, shared)
    changes, reasons = compared_metrics(
        metrics, earlier, pairs, unlike, is_of_same_cases=not changed and not has_other_cases
    )
    described = {**earlier, **metrics}
    labels = {name: cut_off_label(old, name) for old, name in renamed.items()}
    tolerances = {gate.name: gate.tolerance for gate in regressions}
    verdicts: dict[str, Verdict] = {
        name: "incomparable" if name in reasons else _verdict(name, change, described[name], tolerances, earlier)
        for name, change in changes.items()
    }
    return Comparison(
        content={
            "baseline_run_id": before.metrics.get("volatile", {}).get("run_id"),
            "compared": not is_stopped,
            "ignores_invariants": plan.settings.ignore_invariants,
            "problems": [str(problem) for problem in problems],
            "differences": differing,
            "gate_changes": gate_changes(before.config, after.config),
            "metrics": {
                name: {part: described[name][part] for part in ("layer", "scale", "better")}
                | change.as_mapping()
                | {"verdict": verdicts[name], "label": labels.get(name, name), "why": reasons.get(name, "")}
                for name, change in changes.items()
            },
            "layers": compared_layers(changes, reasons, described),
            "fallen": fallen_together(
                both.was, now, shared, {name: described[name] for name in {*changes} - {*reasons}}
            ),
            **flips._asdict(),
            **_cases(both),
            "changed_cases": sorted(changed),
            "changed_failing": sorted(key for key in changed if after.cases[key].is_bad),
            "relabelled": relabelled(*facts),
            "paired": _paired_outcomes(both),
        },
        gates=tuple(
            _gate(gate, changes.get(gate.name, Change()), "incomparable" if is_stopped else verdicts.get(gate.name))
            | {"label": labels.get(gate.name, gate.name)}
            for gate in regressions
            if _is_listed(gate, verdicts.get(gate.name), is_heuristic=gates[1].is_heuristic)
        ),
        before=facts[0],
        after=facts[1],
        problems=problems,
        both=both,
    )


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


def _verdict(
    name: str,
    change: Change,
    described: Mapping[str, Any],
    tolerances: Mapping[str, float],
    earlier: Mapping[str, Any],
) -> Verdict:
    if change.delta is None:
        was_measured = change.n_unmeasured > 0 or earlier.get(name, {}).get("mean") is not None
        return "unmeasured" if was_measured else "new"
    low, high = described["scale"]
    tolerance = tolerances.get(name, UNGATED_TOLERANCE * (high - low))
    if abs(change.delta) <= tolerance + ROUNDING:  # exactly the tolerance is within it
        return "significant, within tolerance" if change.is_significant else "unchanged"
    if change.p is not None and not change.is_significant:
        return "beyond tolerance, may be noise"
    return "improved" if _is_better(change.delta, described["better"]) else "regressed"


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


def _cases(both: Both) -> dict[str, Any]:
    """Return the cases that were added, removed, or could not be measured any more (with the kind of error)."""
    was, now, shared = both.was, both.now, both.shared
    added = [key for key in now if key not in was] if len(shared.keys) < len(now) else []
    return {
        "only_before": [key for key in was if key not in now] if len(shared.keys) < len(was) else [],
        "only_after": added,
        "added_failing": [key for key in added if now[key].is_bad],
        "unmeasured": [
            {"case_key": key, "outcome": case.outcome, "reason": case.error_kind or case.outcome}
            for key in (now.case_keys[place] for place in now.places_without_score())
            if key in was and was[key].scores and (case := now[key])
        ],
    }


def _paired_outcomes(both: Both) -> dict[str, int]:
    """Return the number of compared cases, and how many passed before and after."""
    return {
        "cases": len(both.shared.keys),
        "passed_before": values_at(both.was.outcomes, both.shared.before).count("passed"),
        "passed_after": values_at(both.now.outcomes, both.shared.after).count("passed"),
    }


Cases = Mapping[str, CaseScores] | Mapping[str, Row]
"""The outcome and scores of each case of a run, by key."""
SEARCHED_RUNS = 20
"""How many earlier runs are searched for the last complete one."""


def compare_with_previous(run: StoredRun, cases: Cases, plan: Plan) -> Mapping[str, Any] | None:
    """Compare a run with the last complete one before it, as if that were the baseline; None without such a run."""
    folders: list[Path] = in_time(run.path.parent)
    before = folders[: folders.index(run.path)] if run.path in folders else []
    now = Side(run.run_id, run.finished_metrics, Scores(CaseColumns.of(cases), {}), run.config)
    for earlier in map(StoredRun, before[: -SEARCHED_RUNS - 1 : -1]):
        try:
            if earlier.state == "complete" and earlier.scores is not None:
                return compare_sides(side_of_run(earlier), now, plan).content
        except SettingsError:
            continue  # skip a damaged run: the user did not ask for it, and an earlier one serves
    return None


def paired_cut_offs(
    before: Collection[str], after: Collection[str], k_before: int | None, k_after: int | None
) -> dict[str, str]:
    """Map the names before to the names after of metrics with another cut-off: `recall_any@5` → `recall_any@10`.

    A name on both sides pairs with itself. If a metric has several cut-offs, the configured ones pair.
    """
    lost = _by_metric((name for name in before if name not in after), k_before)
    gained = _by_metric((name for name in after if name not in before), k_after)
    return {lost[metric]: gained[metric] for metric in sorted(lost.keys() & gained.keys())}


def _by_metric(names: Iterable[str], k: int | None) -> dict[str, str]:
    """Return the only cut-off of each metric, or its configured one."""
    names_by_metric: dict[str, list[str]] = {}
    for name in names:
        metric, at, _ = name.partition("@")
        if at:
            names_by_metric.setdefault(metric, []).append(name)
    chosen = {
        metric: ([f"{metric}@{k}"] if f"{metric}@{k}" in names else names) for metric, names in names_by_metric.items()
    }
    return {metric: names[0] for metric, names in chosen.items() if len(names) == 1}


def cut_off_label(before: str, after: str) -> str:
    """Format a changed cut-off as `recall_any@5 → @10`."""
    return f"{before} → @{after.partition('@')[2]}"


def at_shared_cut_off(gate: RegressionGate, shared: Collection[str], k_before: int | None) -> RegressionGate:
    """Move a default gate to a cut-off that both sides measured, unless both measured its own.

    shared    names of the metrics that both sides have
    k_before  the configured cut-off before, which is preferred; else the smallest is used
    """
    metric = gate.measure.metric
    if not gate.is_default or gate.measure.k is None or gate.name in shared:
        return gate
    cuts = sorted(int(name.partition("@")[2]) for name in shared if name.startswith(f"{metric.name}@"))
    if not cuts:
        return gate
    return replace(gate, measure=replace(gate.measure, k=k_before if k_before in cuts else cuts[0]))


def renamed_metrics(before: Side, after: Side) -> dict[str, str]:
    """Map the names before to the names after of metrics with another cut-off: `recall_any@5` → `recall_any@2`."""
    return paired_cut_offs(before.metrics["metrics"], after.metrics["metrics"], before.k, after.k)
