"""How sure is a mean? 95 % intervals from the standard library: Wilson's for shares, the bootstrap for other means."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from operator import itemgetter
from statistics import NormalDist

Interval = tuple[float, float]

LEVEL = 0.95
RESAMPLES = 1000
FEW = 64
"""Up to so many values are resampled; beyond, the limit below is nearer to the bootstrap than a thousand resamples are:
its error is a few hundredths of the mean's standard error, that of a thousand resamples a tenth."""
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


def wilson(share: float, n: int) -> Interval:
    """The interval for a share (0 to 1) seen in n independent cases; never empty, never outside 0 to 1.

    Source: Wilson 1927, without continuity correction.
    """
    shrink = 1 + _Z * _Z / n
    centre = (share + _Z * _Z / (2 * n)) / shrink
    half = _Z * math.sqrt(share * (1 - share) / n + _Z * _Z / (4 * n * n)) / shrink
    # At the ends the formula gives 0 and 1 but for rounding.
    return (0.0 if share == 0 else max(0.0, centre - half), 1.0 if share == 1 else min(1.0, centre + half))


def bootstrap(values: Sequence[float], seed: str) -> Interval | None:
    """The percentile bootstrap's interval for the mean of values of independent cases; None for fewer than two.

    The same for the same values in the same order and the same seed. Values that are all equal give an interval of
    width 0. Beyond `FEW` values it is the bootstrap's limit for ever more resamples: normal quantiles corrected for
    skewness (Cornish and Fisher). Source: Efron and Tibshirani 1993, chapter 13.
    """
    if len(values) < 2:
        return None
    low, high = min(values), max(values)
    if low == high:
        return low, high
    found = _resampled(values, seed) if len(values) <= FEW else _limit(values)
    return max(low, found[0]), min(high, found[1])


def _resampled(values: Sequence[float], seed: str) -> Interval:
    n = len(values)
    means = sorted([sum(itemgetter(*chosen)(values)) / n for chosen in _draws(n, seed)])
    return _quantile(means, (1 - LEVEL) / 2), _quantile(means, (1 + LEVEL) / 2)


def _draws(n: int, seed: str) -> Iterator[bytes]:
    """`RESAMPLES` times n positions drawn with replacement, a byte each: one by one, drawing takes ten times longer."""
    generator = random.Random(seed)  # noqa: S311 because the same numbers are wanted again, not secret ones
    position = bytes(byte % n for byte in range(256))
    uneven = bytes(range(256 - 256 % n, 256))  # taken, they would make the first positions likelier
    drawn = b""
    while len(drawn) < RESAMPLES * n:
        drawn += generator.randbytes(RESAMPLES * n).translate(position, uneven)
    return (drawn[start : start + n] for start in range(0, RESAMPLES * n, n))


def _quantile(ordered: Sequence[float], q: float) -> float:
    """Between the two nearest values, in proportion, as NumPy does by default."""
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    return ordered[below] + (place - below) * (ordered[min(below + 1, len(ordered) - 1)] - ordered[below])


def _limit(values: Sequence[float]) -> Interval:
    n = len(values)
    mean = math.fsum(values) / n
    deviation = math.dist(values, [mean] * n) / math.sqrt(n)
    if not deviation:  # values that differ by less than its square can hold
        return mean, mean
    skewness = math.fsum([((value - mean) / deviation) ** 3 for value in values]) / n
    error, bend = deviation / math.sqrt(n), skewness / math.sqrt(n) * (_Z * _Z - 1) / 6
    return mean + error * (bend - _Z), mean + error * (bend + _Z)
