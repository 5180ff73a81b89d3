"""The smallest change that the paired tests show with power 0.8, for a mean and for a share of cases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from statistics import NormalDist

from pytest_rageval.stats.intervals import Moments, moments_of
from pytest_rageval.stats.paired_test import LEVEL, mid_p, student_quantile

POWER = 0.8
FEWEST = 5
"""With fewer changed cases no test gets below the level: 2 / 2**5 is 0.06."""
COUNTED = 60
"""Up to so many changed cases the power for shares is exact; beyond, its limit is off by a hundredth at most."""
UNLIKELY = 1e-9
_Z_LEVEL = NormalDist().inv_cdf(1 - LEVEL / 2)
_Z_POWER = NormalDist().inv_cdf(POWER)


def detectable_mean(differences: Sequence[float], widest: float, moments: Moments | None = None) -> float | None:
    """The smallest change of a mean that cases differing like these would show with power 0.8 at level 0.05.

    From the standard deviation of the differences, with the quantiles of Student's t. None where nothing can be said:
    fewer than five cases changed, all by the same, or none smaller than `widest`, the largest change there can be.
    `moments`: of the differences, where they are known already.
    """
    n = len(differences)
    if n - differences.count(0) < FEWEST:
        return None
    deviation = math.sqrt((moments or moments_of(differences)).second / (n - 1))
    quantiles = student_quantile(_Z_LEVEL, n - 1) + student_quantile(_Z_POWER, n - 1)
    change = quantiles * deviation / math.sqrt(n)
    return change if 0 < change <= widest else None


@lru_cache(maxsize=256)
def detectable_share(n: int, changed: int) -> float | None:
    """The smallest drop of a share that n cases, of which `changed` differ between the runs, show at that power.

    Beside the drop, as many cases are taken to change as did; where a drop needs more, they all change for the worse.
    So even a run in which nothing changed says something. None for fewer than five cases. Source: the unconditional
    power of McNemar's mid-p test; beyond `COUNTED` changes its normal limit (Connor 1987).
    """
    if n < FEWEST:
        return None
    power = _exact_power if changed <= COUNTED else _normal_power
    low, high = 0.0, min(n, 12 + 3 * math.sqrt(changed))  # more than the limit needs, in cases
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (low, middle) if power(n, max(changed, middle) / n, middle / n) >= POWER else (middle, high)
    return high / n


def _normal_power(n: int, changing: float, drop: float) -> float:
    """How likely the drop stands out, in the limit for many changed cases."""
    needed = _Z_LEVEL * math.sqrt(n * changing)
    return NormalDist().cdf((n * drop - needed) / math.sqrt(n * (changing - drop * drop)))


def _exact_power(n: int, changing: float, drop: float) -> float:
    """How likely McNemar's mid-p test shows a drop: summed over how many cases get better all the same."""
    better, worse = (changing - drop) / 2, (changing + drop) / 2
    total = 0.0
    for gained, likely in enumerate(_binomial(n, better)):
        too_few = math.fsum(islice(_binomial(n - gained, worse / (1 - better)), _needed(gained)))
        total += likely * (1 - too_few)
        if gained > n * better and likely < UNLIKELY:
            break
    return total


@lru_cache(maxsize=1024)
def _needed(gained: int) -> int:
    """How many cases must get worse to be significant beside so many that get better."""
    lost = _needed(gained - 1) + 1 if gained else FEWEST
    while 2 * mid_p(lost + gained, gained) > LEVEL:
        lost += 1
    return lost


def _binomial(n: int, share: float) -> Iterator[float]:
    """How likely are 0, 1, … n of n? Where n times share is beyond a few hundred, floats would not do."""
    if share > 1 - UNLIKELY:
        yield from (float(k == n) for k in range(n + 1))
        return
    odds = share / (1 - share)
    likely = math.exp(n * math.log1p(-share))
    for k in range(n + 1):
        yield likely
        likely *= odds * (n - k) / (k + 1)
