"""Pass rates with intervals: a judge's share over many answers, corrected by people's labels of a few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from pytest_rageval.stats.agreement import Estimate, Z
from pytest_rageval.stats.intervals import Interval


class Centred(NamedTuple):
    """Centre and variance of an interval; both add up over independent parts."""

    centre: float
    variance: float

    def plus(self, other: Centred) -> Centred:
        return Centred(self.centre + other.centre, self.variance + other.variance)

    def interval(self) -> Interval:
        """95 %."""
        half = Z * math.sqrt(self.variance)
        return self.centre - half, self.centre + half


def paired_difference(more: int, less: int, n: int) -> Centred:
    """The interval's parts for (more - less) / n, where `more` and `less` of n cases changed for better and for worse.

    Source: Bonett and Price 2012, who count one more case of either change: no change among a few cases is no proof
    that there is none.
    """
    up, down = (more + 1) / (n + 2), (less + 1) / (n + 2)
    return Centred(up - down, (up + down - (up - down) ** 2) / (n + 2))


def share(values: Sequence[float]) -> Centred:
    """The interval's parts for a mean of values from 0 to 1, at most as wide as if each were 0 or 1.

    Source: Agresti and Coull 1998, who count two more of either kind.
    """
    mean = (math.fsum(values) + 2) / (len(values) + 4)
    return Centred(mean, mean * (1 - mean) / (len(values) + 4))


def corrected_pass_rate(labelled: Sequence[tuple[bool, bool]], unlabelled: Sequence[float]) -> Estimate | None:
    """The share of answers that people would pass, where most were seen by the judge alone; None without either part.

    labelled    of each answer that both saw: does it pass by the judge, does it pass by people?
    unlabelled  of each answer that the judge alone saw: 1 if it passes, 0 if not, or the share of its trials that do

    It is the judge's share over the unlabelled answers plus the mean of (people - judge) over the labelled ones, and
    holds however bad the judge is, provided that the labelled answers were drawn from the same answers as the others.
    Source: prediction-powered inference for a mean (Angelopoulos et al. 2023). The variances of the two parts add up;
    each part has the interval of its kind that holds for few cases too. There is no interval where it would lie wholly
    outside 0 to 1: the labelled answers are no sample of the others then.
    """
    if not labelled or not unlabelled:
        return None
    missed = sum(human and not judge for judge, human in labelled)
    let_through = sum(judge and not human for judge, human in labelled)
    value = math.fsum(unlabelled) / len(unlabelled) + (missed - let_through) / len(labelled)
    value = max(0.0, min(1.0, value))
    low, high = share(unlabelled).plus(paired_difference(missed, let_through, len(labelled))).interval()
    if low > 1 or high < 0:
        return Estimate(value, None)
    return Estimate(value, (max(0.0, min(low, value)), min(1.0, max(high, value))))
