"""The mean of several means over the same cases, of which each may have some of the values, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pytest_rageval.stats.intervals import Interval, mean_interval


def mean_of_means_interval(cases: Sequence[Mapping[str, float]]) -> Interval | None:
    """The interval for the mean of the means of every name, from 0 to 1; None for fewer than five cases.

    Each case counts by what it moves: the mean, and for each of its values how far that lies from the mean of its name,
    weighed as much as it weighs there. The mean of these is the mean of means; where every case has every name, they
    are the means of the cases.
    """
    values: dict[str, list[float]] = {}
    for case in cases:
        for name, value in case.items():
            values.setdefault(name, []).append(value)
    means = {name: math.fsum(each) / len(each) for name, each in values.items()}
    if not means:
        return None
    mean = math.fsum(means.values()) / len(means)
    weights = {name: len(cases) / (len(each) * len(means)) for name, each in values.items()}
    # By name, not by case: half of the time. What a case lacks adds nothing.
    shares = [
        [(case[name] - each) * weights[name] if name in case else 0.0 for case in cases] for name, each in means.items()
    ]
    moved = [mean + math.fsum(case) for case in zip(*shares, strict=True)]
    interval = mean_interval(moved, (0, 1))
    return None if interval is None else (max(interval[0], 0.0), min(interval[1], 1.0))
