"""Moments of values around their mean, exact to the last digit in any order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, repeat
from typing import NamedTuple


class Moments(NamedTuple):
    """Number and mean of values, and the sums of their second, third and fourth powers around it."""

    n: int
    mean: float
    second: float
    third: float
    fourth: float


def moments_of(values: Sequence[float]) -> Moments:
    """The moments of at least one value."""
    mean = math.fsum(values) / len(values)
    # Of the changes between two runs most are 0: their powers are computed once.
    zeros = values.count(0)
    offsets = [value - mean for value in values if value]
    squares = [offset * offset for offset in offsets]
    cubes = [square * offset for square, offset in zip(squares, offsets, strict=True)]
    fourths = [square * square for square in squares]
    square = mean * mean
    return Moments(
        len(values),
        mean,
        math.fsum(chain(squares, repeat(square, zeros))),
        math.fsum(chain(cubes, repeat(-square * mean, zeros))),
        math.fsum(chain(fourths, repeat(square * square, zeros))),
    )
