"""The p value of a mean change over paired cases: a sign-flip test that skewness does not fool."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_rageval.stats.moments import Moments, moments_of
from pytest_rageval.stats.sign_flip import sign_flip_p

SHORTFALL = 8
"""The skewness of a sample falls short of the truth: of n exponential values it is n / (n + 8) of it (measured with the
usual correction: .45 at 6 values, .57 at 10, .72 at 20, .91 at 100); of less skewed ones it is nearer."""
_FEWEST_FOR_SKEWNESS = 3


def change_p(differences: Sequence[float], moments: Moments | None = None) -> float | None:
    """How likely a mean as far from 0 as this one, two-sided, where the true mean is 0; None without any difference.

    The larger of two: the sign-flip test holds exactly where differences are symmetric around 0; where many small
    losses stand against few large gains it calls a change too often, and Student's t corrected for skewness does not.
    Where all changes are of one size (metrics that are 0 or 1) the first alone counts, which is McNemar's test. In the
    direction seen, the one-sided p is half of this. `moments`: of the differences, where they are known already.
    """
    by_signs = sign_flip_p(differences)
    if by_signs is None or len(set(map(abs, filter(None, differences)))) < 2:
        return by_signs
    return max(by_signs, _skewed_t_p(moments or moments_of(differences)))


def _skewed_t_p(differences: Moments) -> float:
    """The p of Student's t, made symmetric by a cubic function of it, two-sided in the direction of the mean.

    Source: Hall 1992, "On the removal of skewness by transformation".
    """
    n, mean, second, third, _ = differences
    variance = second / n
    if n < _FEWEST_FOR_SKEWNESS or variance <= 0:
        return 0.0
    deviation = math.sqrt(variance)
    cubed = third / n / (variance * deviation)
    skewness = cubed * math.sqrt(n * (n - 1)) / (n - 2) * (1 + SHORTFALL / n) * (1 if mean > 0 else -1)
    ratio = abs(mean) / deviation
    bend = skewness * ratio * ratio / 3 + skewness * skewness * ratio * ratio * ratio / 27 + skewness / (6 * n)
    return min(1.0, 2 * _student_tail((ratio + bend) * math.sqrt(n - 1), n - 1))


def _student_tail(t: float, freedom: int) -> float:
    """How likely Student's t lies beyond t, by the normal distribution; off by 0.002 at most. Source: Wallace 1959."""
    scaled = (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log1p(t * t / freedom))
    return math.erfc(math.copysign(scaled, t) / math.sqrt(2)) / 2
