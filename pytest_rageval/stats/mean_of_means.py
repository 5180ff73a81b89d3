"""The mean of several means over the same cases, of which each may have some of the values, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pytest_rageval.stats.intervals import Interval, mean_interval


def mean_of_means_interval(columns: Mapping[str, Sequence[float | None]]) -> Interval | None:
    """The interval for the mean of the means of every name, from 0 to 1; None for fewer than five cases.

    Each case counts by what it moves: the mean, and for each of its values how far that lies from the mean of its name,
    weighed as much as it weighs there. The mean of these is the mean of means; where every case has every name, they
    are the means of the cases.

    columns  by name the value of each case, in one order of cases; None of a case without one
    """
    values = {name: present for name, column in columns.items() if (present := [v for v in column if v is not None])}
    means = {name: math.fsum(each) / len(each) for name, each in values.items()}
    if not means:
        return None
    mean = math.fsum(means.values()) / len(means)
    cases = sum(any(value is not None for value in case) for case in zip(*columns.values(), strict=True))
    weights = {name: cases / (len(each) * len(means)) for name, each in values.items()}
    # Column by column: case by case, the same takes three times as long.
    weighed = [
        [None if value is None else (value - means[name]) * weights[name] for value in columns[name]] for name in means
    ]
    by_case = ([each for each in case if each is not None] for case in zip(*weighed, strict=True))
    moved = [mean + math.fsum(each) for each in by_case if each]
    interval = mean_interval(moved, (0, 1))
    return None if interval is None else (max(interval[0], 0.0), min(interval[1], 1.0))
