"""Intervals of the metrics of whole conversations: each conversation is one observation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_rageval.metrics.registry import Measure
from pytest_rageval.metrics.rewrites import is_rewrite_gap
from pytest_rageval.metrics.turns import conversation_pass_rate
from pytest_rageval.model import RunFacts
from pytest_rageval.runs.rewritten_follow_ups import gap_interval
from pytest_rageval.stats.intervals import Interval, mean_interval, share_interval


def run_interval(measure: Measure, value: float | None, facts: RunFacts) -> Interval | None:
    """Return the 95 % interval of a metric of the whole run; None if it has none."""
    if value is None:
        return None
    if measure.of is not None and is_rewrite_gap(measure):
        return gap_interval(measure.of, facts, measure.metric.scale)
    if measure.of is not None:
        return decay_interval(measure.of, facts, measure.metric.scale)
    if measure.metric.name == conversation_pass_rate.name:
        return share_interval(value, len(facts.conversations))
    if measure.metric.binary:
        # As if the turns of a conversation were all alike: the interval is at least as wide as it should be.
        return share_interval(value, facts.independent)
    return None


def decay_interval(name: str, facts: RunFacts, scale: Sequence[float]) -> Interval | None:
    """Return the interval of how far the mean of later turns differs from that of first turns.

    Source: the linear form of a difference of two ratios (Cochran 1977, chapter 6), as in `cluster_values`.
    """
    conversations = [each for each in facts.conversations if name in each.first or name in each.later]
    firsts = [each.first.get(name, ()) for each in conversations]
    laters = [each.later.get(name, ()) for each in conversations]
    n_first = sum(map(len, firsts))
    n_later = sum(map(len, laters))
    if not n_first or not n_later:
        return None
    first = math.fsum(map(math.fsum, firsts)) / n_first
    later = math.fsum(map(math.fsum, laters)) / n_later
    # How far the values of each conversation move the difference.
    moved: list[float] = []
    for own_first, own_later in zip(firsts, laters, strict=True):
        of_first = math.fsum(value - first for value in own_first) / n_first
        of_later = math.fsum(value - later for value in own_later) / n_later
        moved.append(later - first + len(conversations) * (of_later - of_first))
    interval = mean_interval(moved, scale)
    if interval is None:
        return None
    # One long conversation moves the difference by more than the scale is wide; the difference stays on it.
    low, high = interval
    return max(scale[0], low), min(scale[1], high)
