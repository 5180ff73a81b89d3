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
    square = mean * mean
    return Moments(
        len(values),
        mean,
        math.fsum(chain(squares, repeat(square, zeros))),
        math.fsum(chain(map(mul, squares, offsets), repeat(-square * mean, zeros))),
        math.fsum(chain(map(mul, squares, squares), repeat(square * square, zeros))),
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


def wilson(share: float, n: int) -> Interval:
    """Return the interval for a share (0 to 1) of n independent cases; never empty, never outside 0 to 1.

    Source: Wilson 1927, without continuity correction.
    """
    shrink = 1 + Z * Z / n
    centre = (share + Z * Z / (2 * n)) / shrink
    half = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n)) / shrink
    # At the ends the formula gives 0 and 1 but for rounding.
    return (0.0 if share == 0 else max(0.0, centre - half), 1.0 if share == 1 else min(1.0, centre + half))


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
        return _exact_quantile([*values, low], _TAIL), _exact_quantile([*values, high], 1 - _TAIL)
    moments = moments or moments_of(values)
    return max(low, _quantile(moments, low, -Z)), min(high, _quantile(moments, high, Z))


def _ends(values: Sequence[float], scale: Sequence[float]) -> Interval:
    least, most = min(values), max(values)
    low = scale[0] if math.isfinite(scale[0]) else least - (most - least)
    high = scale[1] if math.isfinite(scale[1]) else most + (most - least)
    return float(min(low, least)), float(max(high, most))


# ── exact, for few values ─────────────────────────────────────────────────────────────────────────────────────


def _exact_quantile(values: Sequence[float], share: float) -> float:
    """Return the quantile of the mean of the values under random weights."""
    values = sorted(values)
    low, high = values[0], values[-1]
    for _ in range(_HALVINGS if low < high else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if _share_below(values, middle) < share else (low, middle)
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
            chance = chances[at] = (below[at] * chances[at] + pull * chance) / (below[at] + pull)
    return chances[0] if chances else 0.0


# ── by moments, for many ──────────────────────────────────────────────────────────────────────────────────────


def _with(moments: Moments, value: float) -> Moments:
    """Return the moments with one more value."""
    n, mean, second, third, fourth = moments
    shift = (value - mean) / (n + 1)
    own = (value - mean - shift) * (value - mean - shift)
    square = shift * shift
    return Moments(
        n + 1,
        mean + shift,
        second + n * square + own,
        third - 3 * shift * second - n * square * shift + own * (value - mean - shift),
        fourth - 4 * shift * third + 6 * square * second + n * square * square + own * own,
    )


def _quantile(moments: Moments, end: float, z: float) -> float:
    """Return the quantile of the weighted mean of the values and an end of the scale, at the normal quantile z.

    It follows from the known moments of the weighted mean, up to the fourth, by Cornish and Fisher 1938.
    """
    n, mean, second, third, fourth = _with(moments, end)
    variance = second / (n * (n + 1))
    if variance <= 0:
        return mean
    spread = math.sqrt(variance)
    skewness = 2 * third / (n * (n + 1) * (n + 2)) / (variance * spread)
    excess = (6 * fourth + 3 * second * second) / (n * (n + 1) * (n + 2) * (n + 3)) / (variance * variance) - 3
    square = z * z
    bend = (square - 1) * skewness / 6 + z * (square - 3) * excess / 24
    return mean + spread * (z + bend - z * (2 * square - 5) * skewness * skewness / 36)


Column = Sequence[float | None]


def mean_of_means_interval(columns: Mapping[str, Column]) -> Interval | None:
    """Return the interval for the mean of the means of all names, from 0 to 1; None for fewer than five cases.

    Each mean has its own interval, also exact for names with few values. The distances of their limits from the means
    add up like standard errors. Names that rise and fall together in the same cases count as dependent, estimated from
    the cases and one more in which all are at the end of the scale.
    Source: Zou and Donner 2008, "Construction of confidence limits about effect measures".

    columns  the values of each name, in one order of cases; None for a case without a value
    """
    values = {name: present for name, column in columns.items() if (present := [v for v in column if v is not None])}
    if cases_with_values(columns) < FEWEST:
        return None
    moments = {name: moments_of(each) for name, each in values.items()}
    means = {name: each.mean for name, each in moments.items()}
    weights = {name: 1 / (each.n * len(means)) for name, each in moments.items()}
    mean = math.fsum(means.values()) / len(means)
    # The sums of squares of the cases' sums, and of all values: how far the cases move the mean of means.
    together = _moved_by_cases(columns, means, weights)
    apart = math.fsum(each.second * weights[name] * weights[name] for name, each in moments.items())
    alone = {name: _limits(each, moments[name]) for name, each in values.items()}
    limits = []
    for end in (0, 1):
        at_end = [(end - means[name]) * weight for name, weight in weights.items()]
        spread = apart + math.fsum(each * each for each in at_end)
        dependence = (together + math.fsum(at_end) ** 2) / spread if spread else 1.0
        distances = [(each[end] - means[name]) / len(means) for name, each in alone.items()]
        distance = math.sqrt(dependence * math.fsum(each * each for each in distances))
        limits.append(mean + distance if end else mean - distance)
    return max(0.0, limits[0]), min(1.0, limits[1])


def cases_with_values(columns: Mapping[str, Column]) -> int:
    """Return how many cases have a value of any name."""
    if whole := next((column for column in columns.values() if None not in column), None):  # the usual case, fast
        return len(whole)
    return sum(any(value is not None for value in case) for case in zip(*columns.values(), strict=True))


def _moved_by_cases(columns: Mapping[str, Column], means: Mapping[str, float], weights: Mapping[str, float]) -> float:
    # Column by column: case by case takes three times as long.
    moved = [
        [0.0 if value is None else (value - mean) * weights[name] for value in columns[name]]
        for name, mean in means.items()
    ]
    sums = list(map(sum, zip(*moved, strict=True)))
    return math.fsum(map(mul, sums, sums))


def _limits(values: Sequence[float], moments: Moments) -> Interval:
    limits = gaffke(values, (0, 1), moments)
    assert limits is not None  # the scale has ends
    return limits
