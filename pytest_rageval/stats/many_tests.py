"""Many tests at once: p values adjusted for their number, and the level of the intervals that one looks at."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_rageval.stats.paired_test import LEVEL


def adjusted(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return each p as the smallest share of false alarms at which it would be accepted with all smaller ones.

    Source: Benjamini and Hochberg 1995.
    """
    adjusted_p: dict[str, float] = {}
    least = 1.0
    ascending = sorted(p_values.items(), key=lambda item: item[1])
    for rank, (name, p) in reversed(list(enumerate(ascending, start=1))):
        least = min(least, p * len(p_values) / rank)
        adjusted_p[name] = least
    return adjusted_p


def level_among(adjusted_p: Mapping[str, float]) -> float:
    """Return the level at which an interval excludes 0 exactly if its adjusted p is significant.

    At this level 95 % of the intervals that exclude 0 hold the truth. Source: Benjamini and Yekutieli 2005.
    """
    significant = sum(p <= LEVEL for p in adjusted_p.values())
    return LEVEL * max(1, significant) / max(1, len(adjusted_p))
