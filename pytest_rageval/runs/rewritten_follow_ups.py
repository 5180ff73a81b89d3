"""Follow-ups that were asked as their rewrites, too: their pairs of scores from records, and their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_rageval.metrics.rewrites import score_pairs
from pytest_rageval.model import RewrittenFollowUp, RunFacts, ScorePair
from pytest_rageval.stats.clusters import cluster_interval
from pytest_rageval.stats.intervals import Interval


def follow_up_of(record: Mapping[str, Any], unit: str) -> RewrittenFollowUp | None:
    """Return the pairs of scores of one record; None if its case was not to be asked as its rewrite."""
    rewrite = record.get("rewrite")
    if rewrite is None:
        return None
    if rewrite["error"] is not None:
        return RewrittenFollowUp(unit, failure=rewrite["error"]["kind"])
    scores = record["scores"]
    pairs: dict[str, ScorePair] = {}
    for name, value in rewrite["scores"].items():
        if name in scores:
            pairs[name] = ScorePair(value, scores[name])
    # An error on either side leaves no pair.
    errors = frozenset({*rewrite["metric_errors"], *record.get("metric_errors", ())})
    return RewrittenFollowUp(unit, pairs, errors)


def over_trials_of_follow_up(trials: Iterable[RewrittenFollowUp | None]) -> RewrittenFollowUp | None:
    """Return a follow-up over its trials: the means of those that have a pair. A pair without any is missing."""
    known = [trial for trial in trials if trial is not None]
    if len(known) < 2:
        return next(iter(known), None)
    by_metric: dict[str, list[ScorePair]] = {}
    for trial in known:
        for name, pair in trial.pairs.items():
            by_metric.setdefault(name, []).append(pair)
    pairs = {name: _mean_pair(of_metric) for name, of_metric in by_metric.items()}
    errors = frozenset[str]().union(*(trial.errors for trial in known))
    failures = [trial.failure for trial in known if trial.failure is not None]
    # A trial that failed leaves the others' pairs; without any other, the follow-up has none.
    failure = failures[0] if len(failures) == len(known) else None
    return RewrittenFollowUp(known[0].unit, pairs, errors, failure)


def _mean_pair(pairs: Sequence[ScorePair]) -> ScorePair:
    rewritten = math.fsum(pair.rewritten for pair in pairs) / len(pairs)
    in_conversation = math.fsum(pair.in_conversation for pair in pairs) / len(pairs)
    return ScorePair(rewritten, in_conversation)


def gap_interval(of: str, facts: RunFacts, scale: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of a gap: each conversation is one observation."""
    counted = [each for each in facts.follow_ups if of in each.pairs]
    gaps = [each.pairs[of].gap for each in counted]
    return cluster_interval(gaps, [each.unit for each in counted], scale)


def gap_counts(of: str, facts: RunFacts) -> dict[str, Any]:
    """Return both means of a gap, and how many follow-ups it is of."""
    pairs = score_pairs(facts, of)
    errors = 0
    for each in facts.follow_ups:
        if of not in each.pairs and (each.failure is not None or of in each.errors):
            errors += 1
    counts: dict[str, Any] = {
        "n_independent": len({each.unit for each in facts.follow_ups if of in each.pairs}),
        "n_scored": len(pairs),
        "n_not_applicable": len(facts.follow_ups) - len(pairs) - errors,
        "n_error": errors,
        "n_expected": len(facts.follow_ups),
    }
    if pairs:
        over_all = _mean_pair(pairs)
        counts |= {"rewritten": over_all.rewritten, "in_conversation": over_all.in_conversation}
        # Gaps of both signs cancel in the mean.
        counts["n_higher_alone"] = len([pair for pair in pairs if pair.gap > 0])
        counts["n_lower_alone"] = len([pair for pair in pairs if pair.gap < 0])
    return counts


def failed_rewrites(follow_ups: Iterable[RewrittenFollowUp | None]) -> dict[str, Any]:
    """Return the part of metrics.json about follow-ups without any pair; empty if no rewrite was to be asked."""
    asked = [each for each in follow_ups if each is not None]
    if not asked:
        return {}
    kinds: dict[str, int] = {}
    for each in asked:
        if each.failure is not None:
            kinds[each.failure] = kinds.get(each.failure, 0) + 1
    return {"rewrites": {"follow_ups": len(asked), "failed": dict(sorted(kinds.items()))}}


def rewrite_note(metrics: Mapping[str, Any], *, is_wanted: bool) -> str | None:
    """Return the note on follow-ups without any pair; None if each has one. `is_wanted`: rewrites were to be asked."""
    written: Mapping[str, Any] = metrics.get("rewrites") or {}
    if is_wanted and not written:
        return "rewrites: no case is a follow-up with a `rewrite`, so none was asked"
    failed: Mapping[str, int] = written.get("failed") or {}
    if not failed:
        return None
    kinds = ", ".join(f"{kind} {number}" for kind, number in failed.items())
    number = sum(failed.values())
    return f"rewrite_gap leaves out {number} of {written['follow_ups']} follow-ups, which ended in errors ({kinds})"
