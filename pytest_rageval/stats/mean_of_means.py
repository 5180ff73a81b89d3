"""The mean of several means over the same cases, of which each may have some of the values, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pytest_rageval.stats.intervals import FEWEST, Interval, gaffke

Column = Sequence[float | None]


def mean_of_means_interval(columns: Mapping[str, Column]) -> Interval | None:
    """Return the interval for the mean of the means of all names, from 0 to 1; None for fewer than five cases.

    Each mean has its own interval, exact also where a name has few values. The distances of their limits from the means
    add up as standard errors do. Names that rise and fall together in the same cases count as dependent, judged by what
    was seen and one more case, in which all are at the end of the scale.
    Source: Zou and Donner 2008, "Construction of confidence limits about effect measures".

    columns  by name the value of each case, in one order of cases; None of a case without one
    """
    values = {name: present for name, column in columns.items() if (present := [v for v in column if v is not None])}
    if sum(any(value is not None for value in case) for case in zip(*columns.values(), strict=True)) < FEWEST:
        return None
    means = {name: math.fsum(each) / len(each) for name, each in values.items()}
    weights = {name: 1 / (len(each) * len(means)) for name, each in values.items()}
    mean = math.fsum(means.values()) / len(means)
    together, apart = _moved(columns, means, weights)
    limits = []
    for end in (0, 1):
        at_end = [(end - means[name]) * weight for name, weight in weights.items()]
        alone = apart + math.fsum(each * each for each in at_end)
        dependence = (together + math.fsum(at_end) ** 2) / alone if alone else 1.0
        distances = [(_limit(each, end) - means[name]) / len(means) for name, each in values.items()]
        distance = math.sqrt(dependence * math.fsum(each * each for each in distances))
        limits.append(mean + distance if end else mean - distance)
    return max(0.0, limits[0]), min(1.0, limits[1])


def _moved(columns: Mapping[str, Column], means: Mapping[str, float], weights: Mapping[str, float]) -> Interval:
    """Return how far the cases move the mean of means: squares of each case's sum, and of each of its values."""
    # Column by column: case by case, the same takes three times as long.
    moved = [
        [0.0 if value is None else (value - mean) * weights[name] for value in columns[name]]
        for name, mean in means.items()
    ]
    together = math.fsum(each * each for each in map(math.fsum, zip(*moved, strict=True)))
    return together, math.fsum(each * each for column in moved for each in column)


def _limit(values: Sequence[float], end: int) -> float:
    limits = gaffke(values, (0, 1))
    assert limits is not None  # the scale has ends
    return limits[end]
