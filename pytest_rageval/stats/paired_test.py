"""A test of the mean change over paired cases, and its interval, which agree at every level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from pytest_rageval.stats.intervals import FEWEST, Interval, Moments, moments_of
from pytest_rageval.stats.pass_rate import paired_difference

_DIGITS = 12
"""Rounding to so many digits makes quantiles equal in all versions of Python."""


def normal_quantile(tail: float) -> float:
    """Return the point beyond which the standard normal distribution has this share."""
    return round(-NormalDist().inv_cdf(tail), _DIGITS)


def student_tail(t: float, freedom: int) -> float:
    """Return the chance that Student's t lies beyond t; off by 0.002 at most. Source: Wallace 1959."""
    scaled = math.sqrt(freedom * math.log1p(t * t / freedom)) / _stretch(freedom)
    return math.erfc(math.copysign(scaled, t) / math.sqrt(2)) / 2


def student_quantile(z: float, freedom: int) -> float:
    """Return the quantile of Student's t that corresponds to a quantile of the normal distribution."""
    scaled = z * _stretch(freedom)
    return math.copysign(math.sqrt(freedom * math.expm1(scaled * scaled / freedom)), z)


def _stretch(freedom: int) -> float:
    return (8 * freedom + 3) / (8 * freedom + 1)


LEVEL = 0.05
"""A p of at most this is significant."""
SHORTFALL = 8
"""The skewness of a sample underestimates the true one: for n exponential values it is n / (n + 8) of it (measured with
the usual correction: .45 at 6 values, .57 at 10, .72 at 20, .91 at 100), for less skewed ones more."""
MOST_SKEWED = 0.3
"""Skewness is limited to this many roots of n: intervals stay within 1.2 times the width of Student's t. Without the
limit, a single outlier decides their width. Chosen and confirmed on different data: `benchmarks/paired_tests.py`."""
BINOMIAL = 10_000
"""How many changes of equal size are counted exactly (5 ms); for more, the normal limit is used."""
NOISE = 1e-9
"""Sizes that differ by at most this share of the largest are equal: the rest is rounding of binary fractions."""

Side = Literal[1, -1]
"""Above or below 0."""


def paired_test(
    differences: Sequence[float], widest: float, moments: Moments | None = None, *, changed: int | None = None
) -> PairedTest:
    """Return the test of whether the mean of these differences (at least one) is 0.

    widest   the largest difference that the scale allows
    moments  of the differences, if known
    changed  how many observations changed, if these are not the differences other than 0
    """
    n = len(differences)
    sizes = set(map(abs, filter(None, differences)))
    if not sizes or max(sizes) - min(sizes) <= NOISE * max(sizes):
        rises = sum(difference > 0 for difference in differences)
        return FlipTest(
            n=n,
            widest=widest,
            size=max(sizes, default=widest),
            rises=rises,
            falls=n - rises - differences.count(0),
        )
    moments = moments or moments_of(differences)
    deviation = math.sqrt(moments.second / n)
    if changed is None:
        changed = n - differences.count(0)
    return GradedTest(
        n=n,
        widest=widest,
        changed=changed,
        mean=moments.mean,
        deviation=deviation,
        skewness=_skewness(moments, deviation),
    )


def _skewness(moments: Moments, deviation: float) -> float:
    """Return the skewness of what the sample is drawn from: corrected twice, and limited."""
    n = moments.n
    if n < 3:
        # The usual correction divides by n - 2.
        return 0.0
    of_sample = moments.third / n / deviation**3
    with_usual_correction = of_sample * math.sqrt(n * (n - 1)) / (n - 2)
    skewness = with_usual_correction * (1 + SHORTFALL / n)
    most = MOST_SKEWED * math.sqrt(n)
    return max(-most, min(most, skewness))


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A test with p values and limits for every level: a limit excludes 0 exactly if p is at most its level."""

    n: int
    widest: float

    def p_towards(self, side: Side) -> float:
        """Return the chance that the mean moves so far to this side of 0 without a true change."""
        raise NotImplementedError

    def limit(self, side: Side, level: float) -> float:
        """Return the limit nearest to 0, or beyond, of a true mean on this side, at a one-sided level."""
        raise NotImplementedError

    @property
    def p(self) -> float:
        """Return the two-sided p."""
        return min(1.0, 2 * min(self.p_towards(1), self.p_towards(-1)))

    def interval(self, level: float = LEVEL) -> Interval | None:
        """Return the interval; it excludes 0 exactly if the two-sided p is at most the level. None below five cases."""
        if self.n < FEWEST:
            return None
        low = self.limit(1, level / 2)
        high = self.limit(-1, level / 2)
        return max(-self.widest, low), min(self.widest, high)

    def one_sided_interval(self, side: Side) -> Interval:
        """Return the interval with one limit; it excludes 0 exactly if the p towards this side is significant."""
        limit = max(-self.widest, min(self.widest, self.limit(side, LEVEL)))
        if side > 0:
            return limit, self.widest
        return -self.widest, limit


@dataclass(frozen=True, slots=True)
class FlipTest(PairedTest):
    """The exact McNemar test with mid-p, for changes of one size, such as those of 0/1 metrics.

    Source of the p: Lancaster 1961; Fagerland, Lydersen and Laake 2013. Source of the limits: Bonett and Price 2012,
    who add one case of either change. If limit and p disagree, the limit's distance is scaled until they agree.
    """

    size: float
    rises: int
    falls: int

    def p_towards(self, side: Side) -> float:
        if side > 0:
            towards = self.rises
            against = self.falls
        else:
            towards = self.falls
            against = self.rises
        changed = towards + against
        if changed > BINOMIAL:
            return math.erfc((towards - against) / math.sqrt(2 * changed)) / 2
        # The smaller count has fewer terms to add up.
        if against < towards:
            return mid_p(changed, against)
        return 1 - mid_p(changed, towards)

    def limit(self, side: Side, level: float) -> float:
        change = paired_difference(self.rises, self.falls, self.n)
        mean = side * change.centre
        error = math.sqrt(change.variance)
        p = self.p_towards(side)
        z = normal_quantile(level)
        is_significant = p <= level
        excludes_0 = mean > z * error
        if is_significant != excludes_0:
            # The exact p and the normal limit disagree near the level. The p decides, and the limit follows it.
            error = mean / normal_quantile(p)
        return side * self.size * (mean - z * error)


@dataclass(frozen=True, slots=True)
class GradedTest(PairedTest):
    """The test of changes of many sizes: the larger p of Student's t and of Hall's, which corrects t for skewness.

    Student's t is significant too often if many cases lose a little and few gain much; Hall's if few cases change much
    either way. Also, p is at least the share of one sign pattern among all those of the changed cases, so that fewer
    than five of them show nothing. Source: Hall 1992, "On the removal of skewness by transformation".
    """

    changed: int
    mean: float
    deviation: float
    skewness: float

    def p_towards(self, side: Side) -> float:
        freedom = self.n - 1
        ratio = side * self.mean / self.deviation
        students = student_tail(ratio * math.sqrt(freedom), freedom)
        halls = student_tail(self._bent(ratio, side * self.skewness) * math.sqrt(freedom), freedom)
        return max(self._least_p, students, halls)

    def limit(self, side: Side, level: float) -> float:
        freedom = self.n - 1
        students = student_quantile(normal_quantile(level), freedom) / math.sqrt(freedom)
        halls = self._unbent(students, side * self.skewness)
        bound = side * self.mean - self.deviation * max(students, halls)
        if self._least_p > level:
            # Too few changed to be significant: then the interval may not exclude 0 either.
            bound = min(0.0, bound)
        return side * bound

    @property
    def _least_p(self) -> float:
        return 0.5 ** (self.changed + 1)

    def _bent(self, ratio: float, skewness: float) -> float:
        """Return Hall's transformation of a ratio of mean and deviation."""
        square_term = skewness * ratio * ratio / 3
        cube_term = skewness * skewness * ratio**3 / 27
        bend = square_term + cube_term + skewness / (6 * self.n)
        return ratio + bend

    def _unbent(self, ratio: float, skewness: float) -> float:
        """Return the ratio of mean and deviation that Hall's transformation maps to this one."""
        if abs(skewness) < NOISE:
            # In the limit the transformation changes nothing, and below it would divide by 0.
            return ratio
        cube = 1 + skewness * (ratio - skewness / (6 * self.n))
        return (math.cbrt(cube) - 1) * 3 / skewness


def mid_p(n: int, k: int) -> float:
    """Return the chance that at most k of n fair coins show heads, with exactly k counted half."""
    # In whole numbers: twice the sum of the binomial coefficients, of which that of k counts half.
    term = math.comb(n, k)
    twice = -term
    while True:
        twice += 2 * term
        # All further terms are smaller: they are below the precision of a float.
        is_negligible = term << 60 <= twice
        if k == 0 or is_negligible:
            return twice / (1 << n + 1)
        term = term * k // (n - k + 1)
        k -= 1


def adjusted(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return each p as the smallest rate of false discoveries at which it is accepted along with all smaller ones.

    Source: Benjamini and Hochberg 1995.
    """
    adjusted_p: dict[str, float] = {}
    least = 1.0
    ascending = sorted(p_values.items(), key=lambda item: item[1])
    ranked = list(enumerate(ascending, start=1))
    for rank, (name, p) in reversed(ranked):
        # The running minimum keeps the order: a smaller p is never adjusted to a larger one.
        least = min(least, p * len(p_values) / rank)
        adjusted_p[name] = least
    return adjusted_p


def level_among(adjusted_p: Mapping[str, float]) -> float:
    """Return the level at which an interval excludes 0 exactly if its adjusted p is significant.

    At this level 95 % of the intervals that exclude 0 contain the true value. Source: Benjamini and Yekutieli 2005.
    """
    significant = sum(p <= LEVEL for p in adjusted_p.values())
    return LEVEL * max(1, significant) / max(1, len(adjusted_p))
