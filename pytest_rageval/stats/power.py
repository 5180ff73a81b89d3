"""The smallest change that the paired tests detect with power 0.8, for a mean and for a share of cases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from statistics import NormalDist

from pytest_rageval.stats.clusters import Clusters, changed_clusters, cluster_values
from pytest_rageval.stats.intervals import Moments, moments_of
from pytest_rageval.stats.paired_test import LEVEL, mid_p, student_quantile

POWER = 0.8
"""The usual choice of the field (Cohen 1988): one true change in five is missed."""
FEWEST = 5
"""Fewer changed cases cannot be significant: 2 / 2**5 is 0.06."""
COUNTED = 60
"""Up to so many changed cases the power for shares is exact; for more, the normal limit is off by 0.01 at most."""
UNLIKELY = 1e-9
"""Terms of a sum below this change no digit that is shown."""
_Z_LEVEL = NormalDist().inv_cdf(1 - LEVEL / 2)
_Z_POWER = NormalDist().inv_cdf(POWER)


def detectable_mean(differences: Sequence[float], widest: float, moments: Moments | None = None) -> float | None:
    """Return the smallest change of a mean that cases differing like these show with power 0.8 at level 0.05.

    It uses the standard deviation of the differences and the quantiles of Student's t. None if fewer than five cases
    changed, all changed equally, or no change below `widest`, the largest possible one, is detectable.
    `moments`: of the differences, if known.
    """
    n = len(differences)
    if n - differences.count(0) < FEWEST:
        return None
    moments = moments or moments_of(differences)
    deviation = math.sqrt(moments.second / (n - 1))
    quantiles = student_quantile(_Z_LEVEL, n - 1) + student_quantile(_Z_POWER, n - 1)
    change = quantiles * deviation / math.sqrt(n)
    if not 0 < change <= widest:
        return None
    return change


def detectable_in_clusters(
    differences: Sequence[float], clusters: Clusters, widest: float, *, are_flips: bool
) -> float | None:
    """Return the smallest change of a mean that clusters of dependent values show with that power.

    Where too few of them changed, clusters of 0/1 values that `are_flips` count as if each changed as a whole.
    """
    values = cluster_values(differences, clusters)
    changed = changed_clusters(differences, clusters)
    if changed >= FEWEST:
        return detectable_mean(values, widest)
    return detectable_share(len(values), changed) if are_flips else None


@lru_cache(maxsize=256)
def detectable_share(n: int, changed: int) -> float | None:
    """Return the smallest drop of a share that n cases, of which `changed` differ between the runs, show at that power.

    As many cases are assumed to change as did; if a drop needs more, all of them get worse. So even a run without
    changes has an answer. None for fewer than five cases. Source: the unconditional power of McNemar's mid-p test;
    beyond `COUNTED` changes its normal limit (Connor 1987).
    """
    if n < FEWEST:
        return None
    power = _exact_power if changed <= COUNTED else _normal_power
    low = 0.0
    high = min(n, 12 + 3 * math.sqrt(changed))  # more than the limit needs, in cases
    # Sixteen halvings: to a thousandth of a case if some hundreds change.
    for _ in range(16):
        middle = (low + high) / 2
        changing = max(changed, middle) / n
        if power(n, changing, middle / n) >= POWER:
            high = middle
        else:
            low = middle
    return high / n


def _normal_power(n: int, changing: float, drop: float) -> float:
    """Return the power to detect the drop, in the limit for many changed cases."""
    needed = _Z_LEVEL * math.sqrt(n * changing)
    return NormalDist().cdf((n * drop - needed) / math.sqrt(n * (changing - drop * drop)))


def _exact_power(n: int, changing: float, drop: float) -> float:
    """Return the power of McNemar's mid-p test to detect a drop, summed over how many cases get better."""
    better = (changing - drop) / 2
    worse = (changing + drop) / 2
    worse_of_rest = worse / (1 - better)
    total = 0.0
    # Given how many got better, the losses are binomial among the rest: a sum of n terms instead of n².
    for gained, likely in enumerate(_binomial(n, better)):
        chances_of_losses = _binomial(n - gained, worse_of_rest)
        too_few = math.fsum(islice(chances_of_losses, _needed(gained)))
        total += likely * (1 - too_few)
        # Only behind the middle: before it the terms are small, too, and still rise.
        if gained > n * better and likely < UNLIKELY:
            break
    return total


@lru_cache(maxsize=1024)
def _needed(gained: int) -> int:
    """Return how many cases must get worse to be significant if so many get better."""
    lost = FEWEST
    if gained:
        lost = _needed(gained - 1) + 1  # one more gain needs at least one more loss
    while 2 * mid_p(lost + gained, gained) > LEVEL:
        lost += 1
    return lost


def _binomial(n: int, share: float) -> Iterator[float]:
    """Yield the probabilities of 0, 1, … n of n; they underflow if n times share exceeds a few hundred."""
    if share > 1 - UNLIKELY:  # the odds would be infinite
        yield from [0.0] * n
        yield 1.0
        return
    odds = share / (1 - share)
    # By its logarithm: a power of a number just below 1 loses digits.
    likely = math.exp(n * math.log1p(-share))
    for k in range(n + 1):
        yield likely
        likely *= odds * (n - k) / (k + 1)
