"""The win rate of one system over another on paired cases: wins and half of the ties, with interval and sign test."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from pytest_rageval.stats.clusters import cluster_values
from pytest_rageval.stats.intervals import Interval
from pytest_rageval.stats.paired_test import paired_test

WIN, TIE, LOSS = 1.0, 0.5, 0.0
HALF = 0.5


class WinRate(NamedTuple):
    """The mean of wins (1), ties (½) and losses (0).

    n         cases
    clusters  independent observations among them: conversations, or the cases themselves
    interval  of 95 %; None for fewer than five clusters
    p         two-sided, of the hypothesis that neither system is better; the interval excludes ½ exactly if it is at
              most 0.05
    """

    rate: float
    n: int
    clusters: int
    interval: Interval | None
    p: float


def win_rate(points: Sequence[float], clusters: Sequence[Hashable]) -> WinRate:
    """Return the win rate of at least one case, with the cluster that each case belongs to.

    Without clusters of several cases, the test is the sign test with mid-p, in which ties count for neither side, and
    the interval is the one that belongs to it. With such clusters, the sums of the clusters are tested.
    """
    # From ½, since that is what the hypothesis says: paired tests are about a mean of 0.
    values = cluster_values([point - HALF for point in points], clusters)
    test = paired_test(values, widest=HALF)
    limits = test.interval()
    interval = None
    if limits is not None:
        low, high = limits
        interval = max(0.0, HALF + low), min(1.0, HALF + high)
    return WinRate(math.fsum(points) / len(points), len(points), len(values), interval, test.p)
