"""Sign-flip tests of paired differences, exact where that is affordable, and p values adjusted for their number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

LEVEL = 0.05
"""A p of at most this is significant."""
STEPS = 1000
"""Differences that are no multiples of a common step are rounded to so many steps of the largest."""
NOISE = 1e-9
"""Share of the largest difference below which a remainder is what binary fractions leave, not a difference."""
COUNTED = 100_000_000
"""Bits moved to count all signs, at most: 10 ms. Beyond, with some 75 changed cases or more of many sizes, the limit
was off by up to 7 % of p where p is 0.001, less above, and no p of 900 came to lie on the other side of 0.05."""
BINOMIAL = 10_000
"""Changes of equal size, at most, that are counted: 5 ms."""
LARGEST = 12
"""So many of the largest differences are counted even in the limit: a few large ones among many small have none."""


def sign_flip_p(differences: Iterable[float]) -> float | None:
    """How likely is a mean as far from 0 as this one, if each difference might as well have had the other sign?

    Two-sided, over all 2**m signs of the m differences that are not 0; None without any difference. Differences of
    equal size make it McNemar's exact test. Only beyond what can be counted, it is the limit for many differences.
    Source: Fisher 1935, section 21; Good 2005, chapter 3.
    """
    counts = Counter(differences)
    if not counts:
        return None
    steps = _steps(counts)
    rises, falls = (sum(step * n for step, n in steps if step * sign > 0) for sign in (1, -1))
    bound = min(rises, -falls)
    if rises == -falls:
        return 1.0
    sizes: Counter[int] = Counter()
    for step, n in steps:
        sizes[abs(step)] += n
    changed = sizes.total()
    if len(sizes) == 1 and changed <= BINOMIAL:
        share = binomial_tail(changed, bound // next(iter(sizes)))
    elif changed * (changed + 1) * (bound + 1) <= COUNTED:
        share = _counted(sizes, bound)
    else:
        share = _limit(sizes, rises + falls)
    return min(1.0, 2 * share)


def adjusted(p_values: Mapping[str, float]) -> dict[str, float]:
    """Each p as the smallest share of false alarms at which it would be accepted together with all smaller ones.

    Source: Benjamini and Hochberg 1995.
    """
    adjusted_p: dict[str, float] = {}
    least = 1.0
    ascending = sorted(p_values.items(), key=lambda item: item[1])
    for rank, (name, p) in reversed(list(enumerate(ascending, start=1))):
        least = min(least, p * len(p_values) / rank)
        adjusted_p[name] = least
    return adjusted_p


def binomial_tail(n: int, k: int) -> float:
    """How likely at most k of n fair coins show heads: exact."""
    term = total = math.comb(n, k)
    while k and term << 60 > total:
        term = term * k // (n - k + 1)
        total += term
        k -= 1
    return total / (1 << n)


def _steps(differences: Mapping[float, int]) -> list[tuple[int, int]]:
    """Differences other than 0 as whole multiples of their common step, and how often each occurs."""
    sizes = sorted({abs(difference) for difference in differences}, reverse=True)
    if not sizes[0]:
        return []
    unit = _unit(sizes)
    steps: Counter[int] = Counter()
    for difference, n in differences.items():
        steps[round(difference / unit)] += n
    common = math.gcd(*steps)
    return [(step // common, n) for step, n in sorted(steps.items()) if step]


def _unit(sizes: Sequence[float]) -> float:
    """The largest step that all sizes (descending) are multiples of, by Euclid's algorithm; or a small one."""
    largest = unit = sizes[0]
    for size in sizes:
        rest = size
        while rest > NOISE * largest:
            unit, rest = rest, abs(math.remainder(unit, rest))
        if unit < largest / STEPS:
            return largest / STEPS
    return unit


def _counted(sizes: Mapping[int, int], bound: int) -> float:
    """In which share of all ways to give sizes a sign do those with a plus add up to `bound` or less?

    The ways are coefficients of a polynomial: one integer, with a field of bits for each sum. One size more is one
    shift and one addition. Modulo a field of ones, the integer is the sum of its fields.
    """
    changed = sum(sizes.values())
    field = changed + 1
    kept = (1 << (bound + 1) * field) - 1
    ways = 1
    for size in _ascending(sizes):
        ways = (ways + (ways << size * field)) & kept
    return (ways % ((1 << field) - 1)) / (1 << changed)


def _limit(sizes: Mapping[int, int], excess: int) -> float:
    """The share of all signs with a sum of `excess` steps or more: normal but for the largest, which are counted.

    Sums lie two steps apart, so the limit is taken one step before.
    """
    descending = reversed(list(_ascending(sizes)))
    sums = [0]
    for size in islice(descending, LARGEST):
        sums = [total + sign * size for total in sums for sign in (1, -1)]
    spread = math.sqrt(2 * sum(size * size for size in descending))
    tails = (math.erfc((abs(excess) - 1 - total) / spread) / 2 for total in sums)
    return math.fsum(tails) / len(sums)


def _ascending(sizes: Mapping[int, int]) -> Iterator[int]:
    return (size for size in sorted(sizes) for _ in range(sizes[size]))
