"""Means of values on a bounded scale: moments, Wilson's, Gaffke's and other 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from operator import mul
from typing import NamedTuple


class Moments(NamedTuple):
    """Number and mean of values, and the sums of their second, third and fourth powers around it."""

    n: int
    mean: float
    second: float
    third: float
    fourth: float


def moments_of(values: Sequence[float]) -> Moments:
    """Return the moments of at least one value."""
    mean = math.fsum(values) / len(values)
    # Most changes between two runs are 0: compute their powers once.
    zeros = values.count(0)
    offsets = [value - mean for value in values if value]
    squares = list(map(mul, offsets, offsets))
    cubes = map(mul, squares, offsets)
    fourth_powers = map(mul, squares, squares)
    square_of_zero = mean * mean
    cube_of_zero = -square_of_zero * mean
    fourth_power_of_zero = square_of_zero * square_of_zero
    return Moments(
        n=len(values),
        mean=mean,
        second=math.fsum(chain(squares, repeat(square_of_zero, zeros))),
        third=math.fsum(chain(cubes, repeat(cube_of_zero, zeros))),
        fourth=math.fsum(chain(fourth_powers, repeat(fourth_power_of_zero, zeros))),
    )


Interval = tuple[float, float]

LEVEL = 0.95
FEWEST = 5
"""Fewer cases have no interval: it would span most of the scale, and suggest knowledge."""
EXACT = 16
"""Up to so many values the limits are exact; for more, four moments give them to four thousandths of the scale."""
_TAIL = (1 - LEVEL) / 2
Z = 1.959963984540054  # of the normal distribution; a literal, since computed quantiles may differ in the last digit
_HALVINGS = 26
"""Of the range of the values: the quantile is exact to 2⁻²⁷ of it, far below what is shown."""


def wilson(share: float, n: float) -> Interval:
    """Return the interval for a share (0 to 1) of n independent cases; never empty, never outside 0 to 1.

    Cases that depend on each other are worth fewer, so that n need not be whole.
    Source: Wilson 1927, without continuity correction.
    """
    shrink = 1 + Z * Z / n
    centre = (share + Z * Z / (2 * n)) / shrink
    variance = share * (1 - share) / n + Z * Z / (4 * n * n)
    half = Z * math.sqrt(variance) / shrink
    low = max(0.0, centre - half)
    high = min(1.0, centre + half)
    # At the ends the formula gives 0 and 1 but for rounding.
    if share == 0:
        low = 0.0
    if share == 1:
        high = 1.0
    return low, high


def share_interval(share: float, n: int) -> Interval | None:
    """Return Wilson's interval for reports: None for fewer than five cases."""
    return None if n < FEWEST else wilson(share, n)


def mean_interval(values: Sequence[float], scale: Sequence[float]) -> Interval | None:
    """Return the interval for the mean of values of independent cases on a scale; None for fewer than five.

    An infinite end is replaced by a value one range beyond the values; if both ends are infinite and all values equal,
    there is no interval.
    """
    return gaffke(values, scale) if len(values) >= FEWEST else None


def gaffke(values: Sequence[float], scale: Sequence[float], moments: Moments | None = None) -> Interval | None:
    """Return the interval for the mean of at least one value on a scale; None if it cannot be computed.

    Each limit assumes one more case at the end of the scale: the interval covers the mean in at least 95 % of samples
    of any distribution, and is never empty, even if all values are equal. Random shares (Dirichlet, all ones) weigh the
    values; the limit is a quantile of the weighted mean. Nothing is resampled: the same values give the same limits, in
    any order.
    Source: Gaffke 2005; Learned-Miller and Thomas 2020, "A new confidence interval for the mean of a bounded random
    variable". With many values it approaches the bootstrap's interval corrected for skewness.
    """
    low, high = _ends(values, scale)
    if low == high:
        return None
    if len(values) <= EXACT:
        lower = _exact_quantile([*values, low], _TAIL)
        upper = _exact_quantile([*values, high], 1 - _TAIL)
        return lower, upper
    moments = moments or moments_of(values)
    lower = _quantile(moments, low, -Z)
    upper = _quantile(moments, high, Z)
    # The expansion, unlike the exact limits, may leave the scale.
    return max(low, lower), min(high, upper)


def _ends(values: Sequence[float], scale: Sequence[float]) -> Interval:
    """Return the ends of the scale; one range beyond the values for an infinite end."""
    least = min(values)
    most = max(values)
    low, high = scale
    if not math.isfinite(low):
        low = least - (most - least)
    if not math.isfinite(high):
        high = most + (most - least)
    return float(min(low, least)), float(max(high, most))


# ── exact, for few values ─────────────────────────────────────────────────────────────────────────────────────


def _exact_quantile(values: Sequence[float], share: float) -> float:
    """Return the quantile of the mean of the values under random weights."""
    values = sorted(values)
    low = values[0]
    high = values[-1]
    if low == high:
        return (low + high) / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _share_below(values, middle) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _share_below(values: Sequence[float], limit: float) -> float:
    """Return the chance that the weighted mean lies below a limit: exact, from positive terms only.

    The weights are exponential waiting times: do the values above the limit pull less in total than those below? Of two
    exponential pulls, the chance that one ends first is proportional to the other; the rest of the other has the same
    distribution as before.
    """
    below = [limit - value for value in values if value < limit]
    chances = [1.0] * len(below)  # that the pulls above end first: certain if none of them is left
    for pull in (value - limit for value in values if value > limit):
        chance = 0.0  # if none is left below
        for at in range(len(below) - 1, -1, -1):
            opposed = below[at]
            chance = (opposed * chances[at] + pull * chance) / (opposed + pull)
            chances[at] = chance
    return chances[0] if chances else 0.0


# ── by moments, for many ──────────────────────────────────────────────────────────────────────────────────────


def _with(moments: Moments, value: float) -> Moments:
    """Return the moments with one more value."""
    n, mean, second, third, fourth = moments
    shift = (value - mean) / (n + 1)
    offset = value - mean - shift
    own_square = offset * offset
    square = shift * shift
    return Moments(
        n=n + 1,
        mean=mean + shift,
        second=second + n * square + own_square,
        third=third - 3 * shift * second - n * square * shift + own_square * offset,
        fourth=fourth - 4 * shift * third + 6 * square * second + n * square * square + own_square * own_square,
    )


def _quantile(moments: Moments, end: float, z: float) -> float:
    """Return the quantile of the weighted mean of the values and an end of the scale, at the normal quantile z.

    It follows from the known moments of the weighted mean, up to the fourth, by Cornish and Fisher 1938.
    """
    n, mean, second, third, fourth = _with(moments, end)
    variance = second / (n * (n + 1))
    # All values, and the one more, lie at one end of the scale.
    if variance <= 0:
        return mean
    spread = math.sqrt(variance)
    third_moment = 2 * third / (n * (n + 1) * (n + 2))
    fourth_moment = (6 * fourth + 3 * second * second) / (n * (n + 1) * (n + 2) * (n + 3))
    skewness = third_moment / (variance * spread)
    excess = fourth_moment / (variance * variance) - 3
    # The terms of the expansion in their order; sums of other order differ in the last digit.
    square = z * z
    bend = (square - 1) * skewness / 6 + z * (square - 3) * excess / 24
    bend_of_square = z * (2 * square - 5) * skewness * skewness / 36
    return mean + spread * (z + bend - bend_of_square)


Column = Sequence[float | None]


def mean_of_means_interval(columns: Mapping[str, Column]) -> Interval | None:
    """Return the interval for the mean of the means of all names, from 0 to 1; None for fewer than five cases.

    Each mean has its own interval, also exact for names with few values. The distances of their limits from the means
    add up like standard errors. Names that rise and fall together in the same cases count as dependent, estimated from
    the cases and one more in which all are at the end of the scale.
    Source: Zou and Donner 2008, "Construction of confidence limits about effect measures".

    columns  the values of each name, in one order of cases; None for a case without a value
    """
    if cases_with_values(columns) < FEWEST:
        return None
    means = _named_means(columns)
    mean = math.fsum(one.moments.mean for one in means) / len(means)
    # How far the cases move the mean of means: the sum of squares of the cases' sums, and that of all values, as if
    # they were independent.
    together = _moved_by_cases(means)
    apart = math.fsum(one.moments.second * one.weight * one.weight for one in means)
    distances: list[float] = []
    for end in (0, 1):
        of_end = [(end - one.moments.mean) * one.weight for one in means]
        if_dependent = together + math.fsum(of_end) ** 2
        if_independent = apart + _sum_of_squares(of_end)
        dependence = if_dependent / if_independent if if_independent else 1.0
        of_means = [(one.limits[end] - one.moments.mean) / len(means) for one in means]
        distances.append(math.sqrt(dependence * _sum_of_squares(of_means)))
    below, above = distances
    return max(0.0, mean - below), min(1.0, mean + above)


def cases_with_values(columns: Mapping[str, Column]) -> int:
    """Return how many cases have a value of any name."""
    for column in columns.values():
        if column and None not in column:  # the usual case, fast
            return len(column)
    return sum(any(value is not None for value in case) for case in zip(*columns.values(), strict=True))


class _NamedMean(NamedTuple):
    """The mean of one name's values, with its interval."""

    column: Column
    moments: Moments
    limits: Interval
    weight: float
    """The weight of one of its values in the mean of means."""


def _named_means(columns: Mapping[str, Column]) -> list[_NamedMean]:
    """Return the means of the names that have values."""
    values_by_name = {name: [value for value in column if value is not None] for name, column in columns.items()}
    n_names = sum(bool(values) for values in values_by_name.values())
    means: list[_NamedMean] = []
    for name, values in values_by_name.items():
        if not values:
            continue
        moments = moments_of(values)
        limits = gaffke(values, (0, 1), moments)
        assert limits is not None  # the scale has ends
        means.append(_NamedMean(columns[name], moments, limits, weight=1 / (moments.n * n_names)))
    return means


def _moved_by_cases(means: Sequence[_NamedMean]) -> float:
    """Return the sum of squares of how far each case moves the mean of means."""
    # Column by column: case by case takes three times as long.
    moved: list[list[float]] = []
    for one in means:
        mean = one.moments.mean
        weight = one.weight
        moved.append([0.0 if value is None else (value - mean) * weight for value in one.column])
    return _sum_of_squares(list(map(sum, zip(*moved, strict=True))))


def _sum_of_squares(values: Sequence[float]) -> float:
    return math.fsum(map(mul, values, values))
