"""The content of metrics.json from rows: means with their denominators, breakdowns, gates; the same in any order."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rageval.metrics.registry import LAYERS, Measure, RunScore
from pytest_rageval.metrics.rewrites import is_rewrite_gap
from pytest_rageval.model import BLOCKED, CaseTrials, NotApplicable, RunFacts
from pytest_rageval.model.case_fields import CATEGORY, OTHER_DESCRIPTIVE_NAMES
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.scoring import failed_metric
from pytest_rageval.runs.causes import causes_content
from pytest_rageval.runs.conversation_counts import (
    conversation_counts,
    conversation_scores,
    pass_rate_interval,
    turn_numbers,
)
from pytest_rageval.runs.conversation_intervals import run_interval
from pytest_rageval.runs.flaky_cases import flaky_cases, new_failure_counts
from pytest_rageval.runs.flat_aggregates import flat_aggregates, flat_averages, only_averages
from pytest_rageval.runs.judge_notes import judges_in_short
from pytest_rageval.runs.latency_and_cost import cost_of, latency_of, operations_of, statistics_of
from pytest_rageval.runs.repeated_trials import case_trials, repeats
from pytest_rageval.runs.reservations import (
    doubts_in,
    leaks,
    not_judged,
    open_abstentions,
    reruns,
    unmeasured_answers,
    unmeasured_retrieval,
)
from pytest_rageval.runs.rewritten_follow_ups import failed_rewrites, gap_counts
from pytest_rageval.runs.row import ASK_FAILED, Row, cases_of, first_attempts, flagged, in_order
from pytest_rageval.runs.run_gates import run_gate_result
from pytest_rageval.stats.clusters import Clusters, cluster_interval
from pytest_rageval.stats.intervals import Interval, mean_interval, share_interval

BREAKDOWNS = (CATEGORY, "tag", *OTHER_DESCRIPTIVE_NAMES, "answerable")
OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed")


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts of a run in metrics.json that do not follow from its rows."""

    config_hash: str
    dataset_version: str | None
    expected: int
    is_partial: bool
    coverage: Mapping[str, Any] | None
    volatile: Mapping[str, Any]


def aggregate(trials: Iterable[Row], plan: Plan, info: RunInfo) -> dict[str, Any]:
    """Return the content of metrics.json without its comparison. A case with several trials counts with their mean."""
    trials = in_order(trials)
    rows = cases_of(trials)
    counted = _CountedRows(rows)
    metrics = {measure.name: _metric(measure, counted, info.expected) for measure in plan.measures}
    scored = [name for name, metric in metrics.items() if metric["n_scored"]]
    layers = _layers(metrics)
    facts = _facts(rows, info, _overall(layers, plan), case_trials(trials, plan))
    metrics |= {measure.name: _run_metric(measure, facts, info.expected, plan) for measure in plan.run_measures}
    breakdowns = {name: _breakdown(rows, name, scored, plan.settings.k) for name in BREAKDOWNS}
    aggregates = flat_aggregates(metrics, info.coverage, plan.settings.k)
    aggregates["by_tag"] = {tag: only_averages(group) for tag, group in breakdowns["tag"].items()}
    gates = [run_gate_result(gate, metrics[gate.name], values_of(rows, gate.name)) for gate in plan.run_gates]
    return {
        **_about_run(plan, info),
        **_counts(rows),
        **_reservations(rows),
        **leaks(trials),
        **unmeasured_answers(rows, layers, is_retrieval_only=plan.settings.retrieval_only),
        **unmeasured_retrieval(rows),
        **_flaky(rows, facts),
        **failed_rewrites(row.follow_up for row in rows),
        "metrics": metrics,
        "overall_score": facts.overall,
        "by_layer": layers,
        **repeats(trials, plan),
        **{f"by_{name}": groups for name, groups in breakdowns.items()},
        **_by_turn(rows, plan.measures, scored, plan.settings.k),
        "failure_tags": _failed_by_tag(rows),
        "causes": _causes(rows),
        "gates": gates,
        "aggregate_metrics": aggregates,
        "volatile": _volatile(trials, rows, info),
    }


def _about_run(plan: Plan, info: RunInfo) -> dict[str, Any]:
    """Return what the run was, apart from its results."""
    return {
        "schema": 1,
        "config_hash": info.config_hash,
        "eval_set_commit_hash": info.dataset_version,
        "description": plan.settings.description,
        "partial": info.is_partial,
    }


def _counts(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how many cases there are, and how they ended."""
    answerable: Counter[str] = Counter()
    for row in rows:
        answerable.update(row.groups["answerable"])
    return {
        "total_tests": len(rows),
        "answerable_tests": answerable["answerable"],
        "unanswerable_tests": answerable["unanswerable"],
        "outcomes": _outcomes(rows),
        **conversation_counts(rows),
    }


def _reservations(rows: Sequence[Row]) -> dict[str, Any]:
    """Return what a reader should know of the figures: cases that no gate examined, doubts, and who judged."""
    return {
        "without_gate": sum(row.lacks_gate for row in rows),
        "gold_without_gate": sum(row.has_ungated_gold and row.outcome == "passed" for row in rows),
        "facts_without_gate": sum(row.has_ungated_facts for row in rows),
        "answers_without_gate": sum(row.has_ungated_answer for row in rows),
        **doubts_in(rows),
        **open_abstentions(rows),
        "judge": judges_in_short(row.judge for row in rows),
        "judge_errors": flagged(rows, "failed"),
        **not_judged(rows),
        **reruns(rows),
    }


def _flaky(rows: Sequence[Row], facts: RunFacts) -> dict[str, Any]:
    """Return the flaky cases and their share; empty if no case was asked again."""
    flaky = flaky_cases(rows)
    if flaky:
        flaky["flaky_rate"] = facts.flaky / facts.asked if facts.asked else None
    return flaky


def _volatile(trials: Sequence[Row], rows: Sequence[Row], info: RunInfo) -> dict[str, Any]:
    """Return what differs between two runs of equal results."""
    cost = cost_of([row.cost for row in trials])
    hit_rate = None
    if cost["judgements"]:
        hit_rate = cost["judgements_cached"] / cost["judgements"]
    measured = first_attempts(trials)
    return {
        **info.volatile,
        "latency": latency_of(measured),
        "operations": operations_of(measured),
        "cost": cost,
        "cache_hit_rate": hit_rate,
        **new_failure_counts(rows),
    }


def _causes(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return why cases fail, the most frequent cause first, each with the keys of its cases."""
    return causes_content((row.key, row.cause) for row in rows if row.cause is not None)


def _outcomes(rows: Iterable[Row]) -> dict[str, int]:
    counts = Counter(row.outcome for row in rows)
    return {name: counts[name] for name in OUTCOMES}


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, identical to the last digit in any order; None without values."""
    return math.fsum(values) / len(values) if values else None


class _CountedRows:
    """Rows with what each metric counts of them: most rows share their reasons, and few have errors."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._has_turns = any(row.conversation is not None for row in rows)
        self._reasons = Counter(row.not_applicable for row in rows)
        self._with_errors = [row for row in rows if row.metric_errors or row.outcome == "error"]

    def clusters(self, name: str) -> Clusters | None:
        """Return the conversation of each case scored by a metric, in order; None if no case is a turn."""
        if not self._has_turns:
            return None
        return [row.conversation or row.key for row in self.rows if name in row.scores]

    def not_applicable(self, name: str) -> int:
        """Return for how many cases a metric is not applicable."""
        return sum(count for names, count in self._reasons.items() if name in names)

    def errors(self, name: str) -> int:
        """Return how many cases have no value of a metric because of an error: of its judgement, or of the case."""
        count = 0
        for row in self._with_errors:
            is_case_error = row.outcome == "error" and name not in row.scores and name not in row.not_applicable
            # Both may hold, and both are counted.
            if name in row.metric_errors:
                count += 1
            if is_case_error:
                count += 1
        return count


def _metric(measure: Measure, counted: _CountedRows, expected: int) -> dict[str, Any]:
    name = measure.name
    values = values_of(counted.rows, name)
    statistics = statistics_of(values) if measure.metric.unit is not None else {}
    clusters = counted.clusters(name)
    independent = {}
    if clusters is not None:
        independent = {"n_independent": len(set(clusters))}
    return _described(measure) | {
        "mean": mean(values),
        **statistics,
        "ci": _interval(measure, values, clusters),
        **independent,
        "n_scored": len(values),
        "n_not_applicable": counted.not_applicable(name),
        "n_error": counted.errors(name),
        "n_expected": expected,
    }


def values_of(rows: Iterable[Row], name: str) -> list[float]:
    return [row.scores[name] for row in rows if name in row.scores]


def _interval(measure: Measure, values: Sequence[float], clusters: Clusters | None = None) -> Interval | None:
    """Return the 95 % confidence interval of the mean. The trials of a case are dependent: their mean counts once.

    The turns of a conversation depend on each other: each conversation counts as one observation.
    """
    if clusters is not None and len(set(clusters)) < len(clusters):
        scale = (0, math.inf) if measure.metric.unit is not None else measure.metric.scale
        return cluster_interval(values, clusters, scale)
    # With repeats a case's value may be a share, which Wilson's interval is not for.
    if values and measure.metric.binary and all(value in (0, 1) for value in values):
        return share_interval(sum(values) / len(values), len(values))
    if measure.metric.unit is not None:
        return mean_interval(values, (0, math.inf))
    return mean_interval(values, measure.metric.scale)


def _described(measure: Measure) -> dict[str, Any]:
    metric = measure.metric
    return {
        "layer": metric.layer,
        "scale": list(metric.scale),
        "better": metric.better,
        "aggregate": metric.aggregate or measure.name,
        "run_level": metric.run_level,
        **({} if metric.unit is None else {"unit": metric.unit}),
    }


def _run_metric(measure: Measure, facts: RunFacts, expected: int, plan: Plan) -> dict[str, Any]:
    """Score the run by one measure, unless its score is that of the stored run."""
    score = plan.stored_run_scores.get(measure.name)
    if score is None:
        score = _run_score(measure, facts, plan)
    asked = facts.asked
    interval = run_interval(measure, score.value, facts)
    described = _described(measure) | {"mean": score.value, "ci": interval}
    described |= {"n_scored": 0, "n_not_applicable": 0, "n_error": 0, "n_expected": expected}
    if score.error is not None:
        return described | {"n_error": asked, "error": score.error}
    described["n_not_applicable" if score.value is None else "n_scored"] = asked
    if is_rewrite_gap(measure) and measure.of is not None:
        described |= gap_counts(measure.of, facts)
    return described


def _run_score(measure: Measure, facts: RunFacts, plan: Plan) -> RunScore:
    """Score the run. What a measure raises is recorded as its error, since everything else is to be written."""
    try:
        scored = measure(facts)
    # Ctrl-C waits while a run is finished: also an exception that ends a program is one of the metric's own.
    except BaseException as raised:  # noqa: BLE001
        return RunScore(error=failed_metric(measure.name, raised, plan.mask))
    return RunScore() if isinstance(scored, NotApplicable) else RunScore(scored.value)


def metric_errors(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the errors of the metrics of a run, by metric, as metrics.json has them."""
    return {name: metric["error"] for name, metric in metrics.items() if metric.get("error")}


def _facts(rows: Sequence[Row], info: RunInfo, overall: float | None, trials: tuple[CaseTrials, ...]) -> RunFacts:
    # A case skipped by a mark was never asked. One that no gate could examine was: its metrics do not apply.
    reached = [row for row in rows if row.outcome != "skipped" or row.not_applicable]
    asked = [row for row in reached if row.error_kind != BLOCKED]
    kinds = Counter(row.error_kind for row in asked)
    failed = sum(number for kind, number in kinds.items() if kind in ASK_FAILED)
    return RunFacts(
        asked=len(asked),
        failed=failed,
        timed_out=kinds["timeout"],
        blank=sum(row.is_blank for row in asked),
        coverage=copy.deepcopy(info.coverage),  # a metric may change what it is given
        overall=overall,
        judged=sum(bool(row.judge) for row in rows),
        judge_failed=len(flagged(rows, "failed")),
        flaky=sum(row.is_flaky for row in rows),
        trials=trials,
        conversations=conversation_scores(rows),
        independent=len({row.conversation or row.key for row in asked}),
        follow_ups=tuple(row.follow_up for row in rows if row.follow_up is not None),
    )


def normalised(value: float, scale: Sequence[float], better: str) -> float:
    """Return a value on its scale as 0 to 1, where higher is better."""
    low, high = scale
    share = (value - low) / (high - low)
    return share if better == "higher" else 1 - share


def _layers(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return each layer's title, score (the mean of its normalised metric means) and metrics."""
    layers: dict[str, Any] = {}
    for layer, title in LAYERS.items():
        names = [name for name, metric in metrics.items() if metric["layer"] == layer]
        # Amounts have no scale to be a share of.
        shares = [metrics[name] for name in names if "unit" not in metrics[name]]
        present = [metric for metric in shares if metric["mean"] is not None]
        values = [normalised(metric["mean"], metric["scale"], metric["better"]) for metric in present]
        if values:
            layers[layer] = {"title": title, "score": mean(values), "metrics": sorted(names)}
    return layers


def _overall(layers: Mapping[str, Any], plan: Plan) -> float | None:
    written = plan.settings.weights
    # The settings name a layer by its number (L5) or its name (answer).
    weights = {layer: written.get(layer, written.get(LAYERS[layer], 1.0)) for layer in layers}
    total = math.fsum(weights.values())
    if not total:
        return None
    return math.fsum(weights[layer] * layers[layer]["score"] for layer in layers) / total


def _breakdown(rows: Iterable[Row], name: str, scored: Sequence[str], k: int) -> dict[str, Any]:
    """Return the groups of a breakdown by value, each with the metrics that have a value in it, out of `scored`."""
    by_value: dict[str, list[Row]] = {}
    for row in rows:
        for value in row.groups[name]:
            by_value.setdefault(value, []).append(row)
    return {value: _group(group, scored, k) for value, group in sorted(by_value.items())}


def _by_turn(rows: Sequence[Row], measures: Sequence[Measure], scored: Sequence[str], k: int) -> dict[str, Any]:
    """Return the turns by their number, in its order, as in a breakdown and with intervals; empty without any."""
    by_number = turn_numbers(rows)
    if not by_number:
        return {}
    by_turn: dict[str, Any] = {}
    for number, turns in by_number.items():
        group = _group(turns, scored, k)
        counted = _CountedRows(turns)
        for measure in measures:
            if measure.name in group["metrics"]:
                values = values_of(turns, measure.name)
                interval = _interval(measure, values, counted.clusters(measure.name))
                group["metrics"][measure.name]["ci"] = interval
        group["pass_rate_ci"] = pass_rate_interval(turns)
        by_turn[str(number)] = group
    return {"by_turn": by_turn}


def _group(rows: Sequence[Row], scored: Sequence[str], k: int) -> dict[str, Any]:
    metrics = {}
    for name in scored:
        values = values_of(rows, name)
        if values:
            metrics[name] = {"mean": mean(values), "n_scored": len(values)}
    averages = flat_averages({name: metric["mean"] for name, metric in metrics.items()}, k)
    return {
        "tests": len(rows),
        "outcomes": _outcomes(rows),
        "metrics": metrics,
        **{name: value for name, value in averages.items() if value is not None},
    }


def _failed_by_tag(rows: Sequence[Row]) -> dict[str, list[str]]:
    keys_by_tag: dict[str, list[str]] = {}
    for row in rows:
        for tag in dict.fromkeys(tag for _, tag in row.failed):
            keys_by_tag.setdefault(tag, []).append(row.key)
    return dict(sorted(keys_by_tag.items()))
