"""Student's t by way of the normal distribution: tails and quantiles that undo each other. Source: Wallace 1959."""

from __future__ import annotations

import math
from statistics import NormalDist

_DIGITS = 12
"""Computed quantiles may differ in the last digit between Pythons; rounded to so many they do not."""


def normal_quantile(tail: float) -> float:
    """Return the point beyond which the standard normal distribution has this share."""
    return round(-NormalDist().inv_cdf(tail), _DIGITS)


def student_tail(t: float, freedom: int) -> float:
    """Return how likely Student's t lies beyond t; off by 0.002 at most."""
    scaled = math.sqrt(freedom * math.log1p(t * t / freedom)) / _stretch(freedom)
    return math.erfc(math.copysign(scaled, t) / math.sqrt(2)) / 2


def student_quantile(z: float, freedom: int) -> float:
    """Return the quantile of Student's t that corresponds to a quantile of the normal distribution."""
    scaled = z * _stretch(freedom)
    return math.copysign(math.sqrt(freedom * math.expm1(scaled * scaled / freedom)), z)


def _stretch(freedom: int) -> float:
    return (8 * freedom + 3) / (8 * freedom + 1)
