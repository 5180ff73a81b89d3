"""Comparisons of two sides: the cases and metrics that are compared, and the content of the comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.baseline import Side, side_of_run
from pytest_rageval.comparison.changes import (
    Change,
    ComparedMetrics,
    compared_layers,
    compared_metrics,
    fallen_together,
    paired,
)
from pytest_rageval.comparison.cut_offs import at_shared_cut_off, cut_off_label, paired_cut_offs
from pytest_rageval.comparison.gates_now import Both, case_flips, decided_by_gates_now, gate_changes, gates_of
from pytest_rageval.comparison.known_failures import known_failures_content
from pytest_rageval.comparison.lost_retrieval import LOST_RETRIEVAL, lost_retrieval
from pytest_rageval.comparison.operation_changes import are_times_scored, timed_otherwise
from pytest_rageval.comparison.renamed_cases import renamed_content
from pytest_rageval.comparison.severity import worst_first
from pytest_rageval.comparison.verdict_reasons import PASSED_THEN
from pytest_rageval.comparison.verdicts import Verdict, is_listed, metric_verdicts, regression_result
from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.regression import RegressionGate
from pytest_rageval.io.suggestions import listed
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.columns import CaseColumns, SharedCases, shared_cases, values_at
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
from pytest_rageval.text import counted


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
    now = Side("", metrics, CaseColumns.of_rows(cases_of(rows)), config)
    return compare_sides(baseline, now, plan)


def compare_sides(before: Side, after: Side, plan: Plan) -> Comparison:
    """Compare the cases of two sides by key, with the earlier cases decided again by the current gates.

    Leave out cases that changed. If the sides share no other case, gates have no verdict, unless the settings ignore
    that. If a side has no cases, compare every metric as one of the whole run.
    """
    if before.scores is None or after.scores is None:
        # Pairing needs cases on both sides.
        before = _aggregates(before)
        after = _aggregates(after)
    metrics_before = before.metrics["metrics"]
    metrics_after = after.metrics["metrics"]
    ground = _ground(before, after, plan)
    renamed = paired_cut_offs(metrics_before, metrics_after, before.k, plan.settings.k)
    both = _compared_cases(before, after, ground, renamed, plan)
    # From here on, a metric with another cut-off has its current name.
    earlier = {renamed.get(name, name): metric for name, metric in metrics_before.items()}
    pairs = paired(both.was, both.now, both.shared)
    is_of_same_cases = _are_same_cases(both, ground)
    compared = compared_metrics(metrics_after, earlier, pairs, ground.unlike, is_of_same_cases=is_of_same_cases)
    shared_names = metrics_before.keys() & metrics_after.keys()
    # A default gate moves to a cut-off that both sides measured: without a pair it would compare nothing.
    regressions = [at_shared_cut_off(gate, shared_names, before.k) for gate in plan.regressions]
    lost = lost_retrieval(both, pairs, metrics_after)
    verdicts = _MetricVerdicts(
        compared=compared,
        verdict_of=metric_verdicts(compared, regressions, earlier, lost.by_metric),
        lost=lost.by_metric,
        labels={name: cut_off_label(old, name) for old, name in renamed.items()},
    )
    cases = _cases_content(before.cases, both, compared, metrics_after)
    is_stopped = bool(ground.problems) and not plan.settings.ignore_invariants
    content = {
        "baseline_run_id": before.metrics.get("volatile", {}).get("run_id"),
        "compared": not is_stopped,
        "ignores_invariants": plan.settings.ignore_invariants,
        "problems": [str(problem) for problem in ground.problems],
        "differences": ground.differing,
        "gate_changes": gate_changes(before.config, after.config),
        "metrics": verdicts.content(),
        "layers": compared_layers(compared, lost.by_metric),
        **({LOST_RETRIEVAL: lost.cases} if lost.cases else {}),
        **cases,
        **renamed_content(before.cases, after.cases, cases["only_before"], cases["only_after"]),
        **known_failures_content(both, before.cases, compared.described),
        **_changed_cases_content(ground, after),
    }
    results = verdicts.results(regressions, is_heuristic=both.gates_now.is_heuristic, is_stopped=is_stopped)
    return Comparison(
        content=content,
        gates=tuple(results),
        before=ground.was,
        after=ground.now,
        problems=ground.problems,
        both=both,
    )


def _aggregates(side: Side) -> Side:
    """Return a side without its cases, where each metric is one of the whole run."""
    metrics = {name: {**metric, "run_level": True} for name, metric in side.metrics["metrics"].items()}
    return replace(side, metrics={**side.metrics, "metrics": metrics}, scores=None)


# ── what is compared ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Ground:
    """The facts that decide what of two sides is compared.

    changed            cases that are left out
    unlike             metrics that were judged by different judges
    matched_otherwise  cases whose golds are matched by other steps: their retrieval is not compared
    differing          lines on how the sides differ
    """

    was: Comparable
    now: Comparable
    problems: tuple[Mismatch, ...]
    changed: Collection[str]
    unlike: Collection[str]
    matched_otherwise: Collection[str]
    differing: Sequence[str]


def _ground(before: Side, after: Side, plan: Plan) -> _Ground:
    was = comparable_of(before.metrics, before.config, before.scores)
    now = comparable_of(after.metrics, after.config, after.scores)
    problems = tuple(mismatches(was, now))
    changed = changed_cases(was, now)
    differing = [str(difference) for difference in differences(was, now)]
    other_concurrency = timed_otherwise(before.metrics, after.metrics)
    if other_concurrency is not None and are_times_scored(before.metrics, after.metrics):
        differing.append(other_concurrency)
    if plan.settings.ignore_invariants:
        if changed:
            cases_are = counted(len(changed), "changed case is", "changed cases are")
            differing.append(f"{cases_are} compared all the same: {listed(changed)}")
        return _Ground(was, now, problems, (), (), (), differing)
    rubrics = judged_otherwise(was, now)
    unlike = {metric.name for metric in plan.registry if not rubrics.isdisjoint((metric.name, *metric.rubrics))}
    doubts = differing_doubts(before.metrics, after.metrics)
    doubtful = {key for key in doubts if key in before.cases and key in after.cases}
    matched_otherwise = doubtful.difference(changed)
    if matched_otherwise:
        differing.append(matched_otherwise_note(matched_otherwise, before.metrics, after.metrics))
    return _Ground(was, now, problems, changed, unlike, matched_otherwise, differing)


def differing_doubts(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the doubts about the matches of both metrics.json, by case, where they differ."""
    was = (before.get("doubts") or {}).get("cases", {})
    now = (after.get("doubts") or {}).get("cases", {})
    doubts: dict[str, tuple[str, str]] = {}
    for key in {*was, *now}:
        doubt_before = was.get(key, "none")
        doubt_after = now.get(key, "none")
        if doubt_before != doubt_after:
            doubts[key] = doubt_before, doubt_after
    return doubts


def matched_otherwise_note(keys: Collection[str], before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return a line about cases whose golds are matched by other steps than before."""
    doubts = differing_doubts(before, after)
    kinds = {f"doubt {was}, now {now}" for was, now in map(doubts.__getitem__, keys)}
    cases = counted(len(keys), "case is", "cases are")
    how = "; ".join(sorted(kinds))
    return f"{cases} matched otherwise ({how}), and their retrieval is not compared: {listed(sorted(keys))}"


def _compared_cases(before: Side, after: Side, ground: _Ground, renamed: Mapping[str, str], plan: Plan) -> Both:
    """Return the cases of both sides, without earlier retrieval scores of cases whose golds are matched otherwise."""
    was = before.cases.without(ground.changed).renamed(renamed)
    now = after.cases.without(ground.changed)
    if ground.matched_otherwise:
        # A system that begins to report headings retrieves neither better nor worse for that.
        metrics = before.metrics["metrics"]
        retrieval = {renamed.get(name, name) for name, metric in metrics.items() if metric["layer"] == "L2"}
        was = was.unscored(ground.matched_otherwise, retrieval)
    k = plan.settings.k
    both = Both(
        was,
        now,
        shared_cases(was, now),
        gates_was=gates_of(before.metrics, before.config, k),
        gates_now=gates_of(after.metrics, after.config, k),
        unlike=ground.unlike,
    )
    return both._replace(was=decided_by_gates_now(both))


def _are_same_cases(both: Both, ground: _Ground) -> bool:
    """Return False if a case changed or is on one side only; a side of aggregates has no cases that could differ."""
    # Metrics of a whole run cannot leave out a case: they are compared over the same cases alone.
    if ground.changed:
        return False
    if not both.was or not both.now:
        return True
    return len(both.now) == len(both.was) == len(both.shared.keys)


# ── the content ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _MetricVerdicts:
    """The compared metrics with a verdict on each, and the labels of those with another cut-off.

    lost  in how many cases a metric of retrieval is no longer measured
    """

    compared: ComparedMetrics
    verdict_of: Mapping[str, Verdict]
    labels: Mapping[str, str]
    lost: Mapping[str, int]

    def label(self, name: str) -> str:
        return self.labels.get(name, name)

    def content(self) -> dict[str, dict[str, Any]]:
        """Return the metrics by name, as metrics.json holds them."""
        metrics: dict[str, dict[str, Any]] = {}
        for name, change in self.compared.changes.items():
            described = self.compared.described[name]
            metrics[name] = {
                "layer": described["layer"],
                "scale": described["scale"],
                "better": described["better"],
                **({"unit": described["unit"]} if "unit" in described else {}),
                **change.as_mapping(),
                **({"lost": self.lost[name]} if name in self.lost else {}),
                "verdict": self.verdict_of[name],
                "label": self.label(name),
                "why": self.compared.reasons.get(name, ""),
            }
        return metrics

    def results(
        self, regressions: Iterable[RegressionGate], *, is_heuristic: bool, is_stopped: bool
    ) -> Iterator[dict[str, Any]]:
        """Yield the result of each gate that is listed; if the comparison is stopped, none has a verdict."""
        for gate in regressions:
            verdict = self.verdict_of.get(gate.name)
            if not is_listed(gate, verdict, is_heuristic=is_heuristic):
                continue
            if is_stopped:
                verdict = "incomparable"
            change = self.compared.changes.get(gate.name, Change())
            result = regression_result(gate, change, verdict or "unmeasured")
            yield {**result, "label": self.label(gate.name)}


def _cases_content(
    before: CaseColumns, both: Both, compared: ComparedMetrics, metrics: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the metrics that fell together, and the cases that flipped, are new or gone, or have no score any more.

    before  the earlier cases with the outcomes of their time; those of `both` are decided by the gates of now
    """
    was = both.was
    now = both.now
    shared = both.shared
    comparable = {name: compared.described[name] for name in compared.changes if name not in compared.reasons}
    flips = case_flips(both)
    removed = _keys_of_one_side(was, now, shared)
    added = _keys_of_one_side(now, was, shared)
    passed = {
        "cases": len(shared.keys),
        "passed_before": values_at(was.outcomes, shared.before).count("passed"),
        "passed_after": values_at(now.outcomes, shared.after).count("passed"),
    }
    if both.was.outcomes is not before.outcomes:
        passed_then = [before.outcomes[before.places[key]] for key in shared.keys].count("passed")
        if passed_then != passed["passed_before"]:
            passed[PASSED_THEN] = passed_then
    return {
        "fallen": fallen_together(was, now, shared, comparable),
        "flipped_to_fail": worst_first(flips.flipped_to_fail, was, now, metrics),
        "flipped_to_pass": flips.flipped_to_pass,
        "not_measured": flips.not_measured,
        "newly_gated": flips.newly_gated,
        "fails_new_gate": list(flips.fails_new_gate),
        "new_gates": flips.fails_new_gate,
        "only_before": removed,
        "only_after": added,
        "added_failing": [key for key in added if now[key].is_bad],
        "unmeasured": _unmeasured_cases(was, now),
        "paired": passed,
    }


def _keys_of_one_side(side: CaseColumns, other: CaseColumns, shared: SharedCases) -> list[str]:
    """Return the keys of the cases that only this side has."""
    if len(shared.keys) == len(side):
        # Most comparisons are of the same cases: then nothing is looked up.
        return []
    return [key for key in side if key not in other]


def _unmeasured_cases(was: CaseColumns, now: CaseColumns) -> list[dict[str, Any]]:
    """Return the cases that had scores before and have none now."""
    unmeasured: list[dict[str, Any]] = []
    for place in now.places_without_score():
        key = now.case_keys[place]
        if key in was and was[key].scores:
            case = now[key]
            reason = case.error_kind or case.outcome
            unmeasured.append({"case_key": key, "outcome": case.outcome, "reason": reason})
    return unmeasured


def _changed_cases_content(ground: _Ground, after: Side) -> dict[str, Any]:
    changed = sorted(ground.changed)
    return {
        "changed_cases": changed,
        "changed_failing": [key for key in changed if after.cases[key].is_bad],
        "relabelled": relabelled(ground.was, ground.now),
    }


# ── the run before ────────────────────────────────────────────────────────────────────────────────────────────

Cases = Mapping[str, CaseScores] | Mapping[str, Row]
"""The outcome and scores of each case of a run, by key."""
SEARCHED_RUNS = 20
"""How many earlier runs are searched for the last complete one."""


def compare_with_previous(run: StoredRun, cases: Cases, plan: Plan) -> Mapping[str, Any] | None:
    """Compare a run with the last complete one before it, as if that were the baseline; None without such a run."""
    folders: list[Path] = list(in_time(run.path.parent))
    if run.path not in folders:
        return None
    before_this = folders[: folders.index(run.path)]
    # A point of a sweep was a trial: its settings are not those before.
    earlier_folders = [folder for folder in before_this if not is_of_sweep(folder)]
    now = Side(run.run_id, run.finished_metrics, CaseColumns.of(cases), run.config)
    for folder in reversed(earlier_folders[-SEARCHED_RUNS:]):
        earlier = StoredRun(folder)
        try:
            if earlier.state == "complete" and earlier.scores is not None:
                return compare_sides(side_of_run(earlier), now, plan).content
        except SettingsError:
            continue  # skip a damaged run: the user did not ask for it, and an earlier one serves
    return None
