"""Pass rates with intervals: a judge's share over many answers, corrected by people's labels of a few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from pytest_rageval.stats.agreement import Estimate
from pytest_rageval.stats.design_effect import Effect, independent
from pytest_rageval.stats.intervals import Interval, Z


class IntervalPart(NamedTuple):
    """The centre and variance of an interval; both add up over independent parts."""

    centre: float
    variance: float

    def plus(self, other: IntervalPart) -> IntervalPart:
        return IntervalPart(self.centre + other.centre, self.variance + other.variance)

    def times(self, effect: float) -> IntervalPart:
        """Return the part with a design effect in its variance."""
        return IntervalPart(self.centre, effect * self.variance)

    def interval(self) -> Interval:
        """Return the 95 % interval."""
        half = Z * math.sqrt(self.variance)
        return self.centre - half, self.centre + half


def paired_difference(more: int, less: int, n: int) -> IntervalPart:
    """Return centre and variance for (more - less) / n: `more` and `less` of n cases got better and worse.

    Source: Bonett and Price 2012, who add one case of either change: no change among a few cases does not prove that
    there is none.
    """
    n_adjusted = n + 2
    up = (more + 1) / n_adjusted
    down = (less + 1) / n_adjusted
    variance = up + down - (up - down) ** 2
    return IntervalPart(centre=up - down, variance=variance / n_adjusted)


def share(values: Sequence[float]) -> IntervalPart:
    """Return centre and variance for a mean of values from 0 to 1, at most as wide as if each were 0 or 1.

    Source: Agresti and Coull 1998, who add two cases of either kind.
    """
    n_adjusted = len(values) + 4
    mean = (math.fsum(values) + 2) / n_adjusted
    return IntervalPart(centre=mean, variance=mean * (1 - mean) / n_adjusted)


def corrected_pass_rate(
    labelled: Sequence[tuple[bool, bool]],
    unlabelled: Sequence[float],
    effect_of_labelled: Effect = independent,
    effect_of_unlabelled: Effect = independent,
) -> Estimate | None:
    """Return the share of answers that people would pass, though most have a judge's score only; None without a part.

    labelled    for each answer with both: whether it passes by the judge, and by people
    unlabelled  for each answer with a judge's score only: 1 if it passes, 0 if not, or the share of its trials that do

    It is the judge's share over the unlabelled answers plus the mean of (people - judge) over the labelled ones. It is
    right for any judge, provided that the labelled answers are a random sample of all.
    Source: prediction-powered inference for a mean (Angelopoulos et al. 2023). The variances of the two parts add up;
    each part has an interval that is also valid for few cases. There is no interval if it would lie wholly outside
    0 to 1: then the labelled answers are no sample of the others; none either for too few clusters of one part.
    """
    if not labelled or not unlabelled:
        return None
    missed = sum(human and not judge for judge, human in labelled)
    let_through = sum(judge and not human for judge, human in labelled)
    by_judge = math.fsum(unlabelled) / len(unlabelled)
    correction = (missed - let_through) / len(labelled)
    value = max(0.0, min(1.0, by_judge + correction))
    effect = effect_of_unlabelled(unlabelled)
    effect_of_correction = effect_of_labelled([float(human) - float(judge) for judge, human in labelled])
    if effect is None or effect_of_correction is None:
        return Estimate(value, None)
    by_people = paired_difference(missed, let_through, len(labelled)).times(effect_of_correction)
    sum_of_parts = share(unlabelled).times(effect).plus(by_people)
    low, high = sum_of_parts.interval()
    if low > 1 or high < 0:
        return Estimate(value, None)
    # The parts are drawn towards a half and towards 0, so the value may lie outside.
    low = min(low, value)
    high = max(high, value)
    return Estimate(value, (max(0.0, low), min(1.0, high)))
