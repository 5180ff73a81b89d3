"""Design effects: wider intervals for values that depend on each other, such as those of turns of a conversation."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

from pytest_rageval.stats.intervals import FEWEST, Interval, Z

Effect = Callable[[Sequence[float]], float | None]
"""Returns the design effect of one value for each answer, in their order; None for too few clusters."""


def independent(_: Sequence[float]) -> float:
    """Return the design effect of values that do not depend on each other."""
    return 1.0


def design_effect(values: Sequence[float], clusters: Sequence[Hashable]) -> float | None:
    """Return the factor by which clusters raise the variance of the mean: 1 or more, None below five clusters.

    For any other statistic, pass the influence of each answer on it. The spread of few clusters is uncertain, so the
    factor includes the quantile of Student's t.
    Source: Kish 1965, "Survey Sampling", chapter 8 (deff); Cochran 1977, chapter 9 (ratio of cluster totals).
    """
    n = len(values)
    totals: dict[Hashable, float] = {}
    mean = math.fsum(values) / n if n else 0.0
    for value, cluster in zip(values, clusters, strict=True):
        totals[cluster] = totals.get(cluster, 0.0) + value - mean
    n_clusters = len(totals)
    if n_clusters == n:
        return 1.0
    if n_clusters < FEWEST:
        return None
    squares = math.fsum((value - mean) ** 2 for value in values)
    # Equal values show no spread: then each cluster counts as one of them.
    effect = n / n_clusters
    if squares > 1e-12 * n:
        between = math.fsum(total**2 for total in totals.values()) * n_clusters / (n_clusters - 1)
        effect = between / squares * (n - 1) / n
    return max(1.0, effect * (_t_quantile(n_clusters - 1) / Z) ** 2)


def _t_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t, by its series in 1/degrees: right to 2 % from four degrees on.

    Source: Abramowitz and Stegun 1964, 26.7.5.
    """
    first = (Z**3 + Z) / 4
    second = (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96
    third = (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384
    return Z + first / degrees + second / degrees**2 + third / degrees**3


def widened(value: float, interval: Interval | None, effect: float | None, ends: Interval) -> Interval | None:
    """Return an interval whose distances from its value grow with the root of the effect; None without an effect."""
    if interval is None or effect is None:
        return None
    factor = math.sqrt(effect)
    low = max(ends[0], value - (value - interval[0]) * factor)
    high = min(ends[1], value + (interval[1] - value) * factor)
    return low, high


def kappa_influences(decided: Sequence[tuple[bool, bool]]) -> list[float]:
    """Return the influence of each pair of decisions on Cohen's kappa: the derivative by the share of such pairs.

    Zeros if both always agree by chance alone: kappa is not defined then.
    """
    n = len(decided)
    if not n:
        return []
    ours = sum(judge for judge, _ in decided) / n
    theirs = sum(people for _, people in decided) / n
    agreed = sum(judge == people for judge, people in decided) / n
    chance = ours * theirs + (1 - ours) * (1 - theirs)
    if chance >= 1:
        return [0.0] * n
    influences: list[float] = []
    for judge, people in decided:
        by_agreement = (judge == people) - agreed
        by_chance = (judge - ours) * (2 * theirs - 1) + (people - theirs) * (2 * ours - 1)
        change = by_agreement * (1 - chance) - (1 - agreed) * by_chance
        influences.append(change / (1 - chance) ** 2)
    return influences
