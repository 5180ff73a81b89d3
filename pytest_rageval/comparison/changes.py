"""Changes of metrics between two runs, with interval, p value and detectable change."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import compress, count
from operator import ne, sub
from typing import Any, NamedTuple, cast

from pytest_rageval.io.suggestions import listed
from pytest_rageval.metrics.registry import LAYERS
from pytest_rageval.model import NOTHING
from pytest_rageval.runs.aggregate import mean
from pytest_rageval.runs.columns import CaseColumns, Column, SharedCases, values_at
from pytest_rageval.stats.clusters import Clusters, changed_clusters, clustered_test
from pytest_rageval.stats.intervals import FEWEST, Interval, Moments, moments_of
from pytest_rageval.stats.paired_test import LEVEL, PairedTest, Side, adjusted, level_among, paired_test
from pytest_rageval.stats.power import detectable_in_clusters, detectable_mean, detectable_share
from pytest_rageval.text import counted

OVERALL = "overall_score"
JUDGED_OTHERWISE = "judged otherwise"
NAMED = 20
"""How many cases of a group are named: a group can hold all cases of a run."""
ROUNDING = 1e-12
"""Smaller differences are rounding errors of binary fractions."""


class Pairs(NamedTuple):
    """One metric over the shared cases: the scores of cases scored on both sides, and of those that lost theirs."""

    before: Sequence[float]
    after: Sequence[float]
    lost: Sequence[float]
    """The scores before of cases without a score after."""
    clusters: Clusters | None = None
    """The conversation of each case scored on both sides; None if no case is a turn."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a metric, on its own scale, over the cases scored on both sides.

    ci             95 % interval of `delta`: it excludes 0 exactly if `p_adjusted` is significant (with several tested
                   metrics it is widened accordingly); None for fewer than five cases
    p, p_adjusted  of the test of a change, alone and among all tested metrics; None for a run-level metric
    n_paired       cases scored on both sides; 0 for a run-level metric
    n_changed      how many of these scores moved
    n_unmeasured   cases scored before but not after
    detectable     the smallest change that so many cases show with power 0.8; None if it cannot be computed
    n_independent  how many independent observations the test counts: each conversation, and each single case; None
                   if no case is a turn
    moved          in how many of them a score moved; not stored
    test           the source of `p` and `ci`; not stored
    """

    before: float | None = None
    after: float | None = None
    delta: float | None = None
    ci: Interval | None = None
    p: float | None = None
    p_adjusted: float | None = None
    n_paired: int = 0
    n_changed: int = 0
    n_unmeasured: int = 0
    detectable: float | None = None
    n_independent: int | None = None
    moved: int = 0
    test: PairedTest | None = None

    @property
    def is_significant(self) -> bool:
        return self.p_adjusted is not None and self.p_adjusted <= LEVEL

    def p_towards(self, side: Side) -> float | None:
        """Return the one-sided p of this metric alone; None if too few cases differ for it to reach 0.05."""
        # McNemar's mid-p if all cases that moved went one way: no smaller p is possible.
        smallest_p = 0.5 ** (self.moved + 1)
        if self.test is None or self.test.n < FEWEST or smallest_p > LEVEL:
            return None
        return self.test.p_towards(side)

    def as_mapping(self) -> dict[str, Any]:
        """Return the fields for metrics.json."""
        left_out = {"test", "moved"}
        if self.n_independent is None:
            left_out.add("n_independent")
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in left_out}


def paired(before: CaseColumns, after: CaseColumns, shared: SharedCases) -> dict[str, Pairs]:
    """Return the scores before and after of each metric that shared cases had before."""
    nowhere = [None] * len(after)
    clusters = after.clusters(shared.after)
    pairs: dict[str, Pairs] = {}
    for name in sorted(before.scores):
        was = values_at(before.scores[name], shared.before)
        now = values_at(after.scores.get(name, nowhere), shared.after)
        if None in was or None in now:  # else, as nearly always, the columns are taken as they are
            column = _pairs_with_gaps(was, now, clusters)
        else:
            column = Pairs(cast("Sequence[float]", was), cast("Sequence[float]", now), [], clusters)
        if column.before or column.lost:
            pairs[name] = column
    return pairs


def _pairs_with_gaps(was: Column, now: Column, clusters: Clusters | None) -> Pairs:
    both = [(old, new) for old, new in zip(was, now, strict=True) if old is not None and new is not None]
    lost = [old for old, new in zip(was, now, strict=True) if new is None and old is not None]
    if clusters is not None:
        has_both = [old is not None and new is not None for old, new in zip(was, now, strict=True)]
        clusters = list(compress(clusters, has_both))
    before = [old for old, _ in both]
    after = [new for _, new in both]
    return Pairs(before, after, lost, clusters)


def paired_change(pairs: Pairs, scale: Sequence[float]) -> Change:
    """Return the change of one metric on its scale."""
    befores, afters, lost, clusters = pairs
    n = len(befores)
    if not n:
        return Change(n_unmeasured=len(lost))
    differences = list(map(sub, afters, befores))
    # Most columns have no such difference, and need no second list.
    if any(-ROUNDING < gap < ROUNDING for gap in filter(None, differences)):
        differences = [0.0 if -ROUNDING < gap < ROUNDING else gap for gap in differences]
    n_changed = n - differences.count(0)
    widest = scale[1] - scale[0]
    moments = moments_of(differences)
    are_flips = all(scores.count(0) + scores.count(1) == n for scores in (befores, afters))
    # A test of differences within cases: cases vary far more than a change of the system moves them.
    if clusters is not None:
        test = clustered_test(differences, clusters, widest)
        moved = changed_clusters(differences, clusters)
        detectable = detectable_in_clusters(differences, clusters, widest, are_flips=are_flips)
    else:
        test = paired_test(differences, widest, moments)
        moved = n_changed
        detectable = _detectable(differences, widest, moments, are_flips=are_flips)
    return Change(
        before=math.fsum(befores) / n,
        after=math.fsum(afters) / n,
        delta=moments.mean,
        ci=test.interval(),
        p=test.p,
        n_paired=n,
        n_changed=n_changed,
        n_unmeasured=len(lost),
        detectable=detectable,
        n_independent=None if clusters is None else test.n,
        moved=moved,
        test=test,
    )


def _detectable(differences: Sequence[float], widest: float, moments: Moments, *, are_flips: bool) -> float | None:
    if are_flips:
        return detectable_share(moments.n, moments.n - differences.count(0))
    return detectable_mean(differences, widest, moments)


def run_change(before: float | None, after: float | None) -> Change:
    """Return the change of a run-level metric: without paired cases, nothing is known of chance."""
    if before is None or after is None:
        return Change()
    return Change(before, after, after - before)


def with_adjusted_p(changes: Mapping[str, Change]) -> dict[str, Change]:
    """Return the changes with `p_adjusted`: one metric in twenty moves significantly by chance, and there are many.

    Intervals that exclude 0 by themselves are widened to the adjusted level. A metric in which no case moved cannot be
    significant, and does not count as tested.
    """
    tested = {name: change.p for name, change in changes.items() if change.p is not None and change.n_changed}
    p_values = adjusted(tested)
    level = level_among(p_values)
    result: dict[str, Change] = {}
    for name, change in changes.items():
        ci = change.ci
        if change.test is not None and change.test.p <= LEVEL:
            # Widened, so that interval and adjusted p never contradict each other.
            ci = change.test.interval(level)
        result[name] = replace(change, p_adjusted=p_values.get(name, change.p), ci=ci)
    return result


class ComparedMetrics(NamedTuple):
    """The change of each metric, why some cannot be compared, and the metrics as metrics.json describes them."""

    changes: Mapping[str, Change]
    reasons: Mapping[str, str]
    described: Mapping[str, Any]


def compared_metrics(
    now: Mapping[str, Any],
    before: Mapping[str, Any],
    pairs: Mapping[str, Pairs],
    unlike: Collection[str],
    *,
    is_of_same_cases: bool,
) -> ComparedMetrics:
    """Compare every metric of either side.

    Metrics of cases are compared over the cases scored on both sides, run-level metrics if the cases are the same, and
    the overall score if the metrics and the cases that they scored are the same too.

    now, before  the metrics of metrics.json
    unlike       metrics that were judged by different judges
    """
    described = {**before, **now}
    changes = dict.fromkeys(sorted(described), Change())
    reasons: dict[str, str] = {}
    for name in changes:
        is_of_run = described[name]["run_level"]
        # The parts of turn_decay@correctness: a metric, and the one that it is about.
        if not set(unlike).isdisjoint(name.split("@")):
            # Another judge or prompt scores the same answers otherwise: the system need not have changed.
            reasons[name] = JUDGED_OTHERWISE
        elif is_of_run and not is_of_same_cases:
            reasons[name] = "not of the same cases"
        elif name in pairs:
            changes[name] = paired_change(pairs[name], _scale_of(described[name], pairs[name]))
        elif is_of_run:
            changes[name] = run_change(before.get(name, {}).get("mean"), now.get(name, {}).get("mean"))
    if changes.get(OVERALL, Change()).delta is not None:
        why = _other_scores(changes, now, before, reasons)
        if why:
            changes[OVERALL] = Change()
            reasons[OVERALL] = why
    return ComparedMetrics(with_adjusted_p(changes), reasons, described)


def _scale_of(metric: Mapping[str, Any], pairs: Pairs) -> Sequence[float]:
    """Return the scale of a metric; of an amount from 0 to the largest one of either side."""
    if "unit" not in metric:
        scale: Sequence[float] = metric["scale"]
        return scale
    largest = max([*pairs.before, *pairs.after], default=0.0)
    return 0.0, largest or 1.0


def _other_scores(
    changes: Mapping[str, Change], now: Mapping[str, Any], before: Mapping[str, Any], reasons: Mapping[str, str]
) -> str:
    """Return why the two overall scores are means of different scores; '' if they are not."""
    otherwise = [name for name, why in reasons.items() if why == JUDGED_OTHERWISE and _has_mean(name, now)]
    if otherwise:
        return f"{JUDGED_OTHERWISE}: {listed(otherwise)}"
    names = [name for name in changes if _counts_in_overall(now.get(name) or before[name])]
    on_one_side = [name for name in names if _has_mean(name, now) != _has_mean(name, before)]
    if on_one_side:
        return f"not of the same metrics: {listed(on_one_side)}"
    of_other_cases = []
    for name in names:
        if not _has_mean(name, now):
            continue
        change = changes[name]
        n_scored = now[name].get("n_scored", change.n_paired)
        has_new_scores = change.n_paired not in (0, n_scored)
        if change.n_unmeasured or has_new_scores:
            of_other_cases.append(name)
    return f"not of the same cases: {listed(of_other_cases)}" if of_other_cases else ""


def _counts_in_overall(metric: Mapping[str, Any]) -> bool:
    return not metric["run_level"] and "unit" not in metric


def _has_mean(name: str, metrics: Mapping[str, Any]) -> bool:
    return name in metrics and metrics[name]["mean"] is not None


def compared_layers(compared: ComparedMetrics, lost: Mapping[str, int] = NOTHING) -> dict[str, dict[str, Any]]:
    """Return the mean change of each layer's metrics as a share of their scales, or why it has none.

    It is over the metrics that both sides have; `without` names those of one side, or judged otherwise. A layer of
    which no metric is compared has no change, nor has one that did not fall and lost cases.

    lost  in how many cases a metric is no longer measured
    """
    changes, reasons, described = compared
    layers: dict[str, dict[str, Any]] = {}
    for layer in LAYERS:
        of_layer = [name for name in changes if described[name]["layer"] == layer]
        names = [name for name in of_layer if _counts_in_overall(described[name])]
        valued = [name for name in names if described[name]["mean"] is not None or changes[name].n_unmeasured]
        if not valued:
            continue
        uncompared = [name for name in valued if changes[name].delta is None]
        gains = [gain(changes[name].delta, described[name]) for name in valued]
        delta = mean([each for each in gains if each is not None])
        lost_in = max((lost.get(name, 0) for name in valued), default=0)
        if lost_in and not (delta is not None and delta < -ROUNDING):
            why = f"not measured in {counted(lost_in, 'case')} that the other run measured"
            layers[layer] = {"delta": None, "why": why}
            continue
        if delta is None:
            reason = reasons.get(uncompared[0]) or "not of the same metrics"
            layers[layer] = {"delta": None, "why": f"{reason}: {listed(uncompared)}"}
            continue
        layers[layer] = {"delta": delta, "why": ""}
        if uncompared:
            layers[layer]["without"] = uncompared
    return layers


def fallen_together(
    before: CaseColumns, after: CaseColumns, shared: SharedCases, described: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the groups of metrics that got worse in the same cases (two or more), largest groups first."""
    metrics_by_cases: dict[tuple[str, ...], list[str]] = {}
    for name, moved in moved_scores(before, after, shared, described):
        fallen = tuple(shared.keys[at] for at, _, _, share in moved if share < -ROUNDING)
        metrics_by_cases.setdefault(fallen, []).append(name)
    groups: list[dict[str, Any]] = []
    for keys, names in metrics_by_cases.items():
        if len(keys) > 1 and len(names) > 1:
            groups.append({"metrics": names, "cases": len(keys), "first": list(keys[:NAMED])})
    return sorted(groups, key=lambda group: (-group["cases"], group["metrics"]))


Move = tuple[int, float, float, float]
"""One case in one metric: its place among the shared cases, its score before and after, its gain."""


def moved_scores(
    before: CaseColumns, after: CaseColumns, shared: SharedCases, described: Mapping[str, Any]
) -> Iterator[tuple[str, list[Move]]]:
    """Yield each metric of both sides with the cases whose scores differ, if both sides have one."""
    for name in sorted(before.scores.keys() & after.scores.keys() & described.keys()):
        if "unit" in described[name]:
            continue  # a time differs in every case of every run
        was = values_at(before.scores[name], shared.before)
        now = values_at(after.scores[name], shared.after)
        width = signed_width(described[name])
        moved = compress(zip(count(), was, now), map(ne, was, now))  # fast, as most cases are equal
        both = ((at, old, new) for at, old, new in moved if old is not None and new is not None)
        yield name, [(at, old, new, (new - old) / width) for at, old, new in both]


def signed_width(metric: Mapping[str, Any]) -> float:
    """Return the width of a metric's scale, negative if lower is better."""
    low, high = metric["scale"]
    width = float(high - low)
    return width if metric["better"] == "higher" else -width


def gain(delta: float | None, described: Mapping[str, Any]) -> float | None:
    """Return a metric's change as a share of its scale, positive if it got better."""
    return None if delta is None else delta / signed_width(described)
