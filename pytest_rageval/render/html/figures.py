"""Geometry of the page's small charts: interval bars, sparklines, histograms, in units that the templates draw."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 100, 20
"""Units of a chart that is drawn into whatever room it gets."""
BINS = 10


class IntervalFigure(NamedTuple):
    """A mean with its 95 % interval on its scale, from 0 to `WIDTH`; without an interval `low` and `high` are None."""

    mean: float
    low: float | None
    high: float | None


def interval_figure(
    mean: float | None, ci: Sequence[float | None] | None, scale: Sequence[float]
) -> IntervalFigure | None:
    """None where there is no mean."""
    if mean is None:
        return None
    low, high = ci or (None, None)
    ends = [None if end is None else _placed(end, scale) for end in (low, high)]
    return IntervalFigure(_placed(mean, scale), ends[0], ends[1])


def change_figure(
    delta: float | None, ci: Sequence[float | None] | None, scale: Sequence[float]
) -> IntervalFigure | None:
    """A change on a scale twice as wide, with no change in the middle."""
    widest = scale[1] - scale[0]
    return interval_figure(delta, ci, (-widest, widest))


def _placed(value: float, scale: Sequence[float]) -> float:
    low, high = scale
    return round(min(max((value - low) / (high - low), 0.0), 1.0) * WIDTH, 2)


class Spark(NamedTuple):
    """Values in time as a line: its points, and the last one."""

    points: str
    last: tuple[float, float]
    values: tuple[float | None, ...]


def spark(values: Iterable[float | None], least_span: float = 0.0) -> Spark | None:
    """A line over its own range, or over `least_span` where the values lie closer, so that a small step looks small.

    None of fewer than two values.
    """
    values = tuple(values)
    numbers = [value for value in values if value is not None]
    if len(numbers) < 2:
        return None
    middle, span = (min(numbers) + max(numbers)) / 2, max(max(numbers) - min(numbers), least_span) or 1.0
    step, top = WIDTH / (len(values) - 1), HEIGHT - 4
    places = [
        (round(number * step, 1), round(HEIGHT / 2 - top * (value - middle) / span, 1))
        for number, value in enumerate(values)
        if value is not None
    ]
    return Spark(" ".join(f"{x:g},{y:g}" for x, y in places), places[-1], values)


def least_span(scale: Sequence[float]) -> float:
    """A tenth of a metric's scale: a line of values that lie closer is drawn over this much of it."""
    return (scale[1] - scale[0]) / 10


class Bar(NamedTuple):
    """A bar of a histogram: the values from `low` to `high`, how many, and its height of at most `HEIGHT`."""

    low: float
    high: float
    cases: int
    height: float


def histogram(values: Sequence[float], scale: Sequence[float]) -> list[Bar]:
    """How often values lie in each tenth of the scale; a value on a border counts above it, the last one below."""
    low, high = scale
    width, counts = high - low, [0] * BINS
    for place, number in Counter([int((value - low) / width * BINS) for value in values]).items():
        counts[min(max(place, 0), BINS - 1)] += number
    step = (high - low) / BINS
    edges = [low + step * number for number in range(BINS + 1)]
    return _bars(edges, counts)


def doubling_histogram(values: Sequence[float]) -> list[Bar]:
    """How often values lie between doublings: 100, 200, 400, …; for times, which have no scale."""
    positive = [value for value in values if value > 0]
    if not positive:
        return []
    first, last = (math.floor(math.log2(end)) for end in (min(positive), max(positive)))
    counts = [0] * (last - first + 1)
    for value in positive:
        counts[math.floor(math.log2(value)) - first] += 1
    return _bars([2.0**power for power in range(first, last + 2)], counts)


def _bars(edges: Sequence[float], counts: Sequence[int]) -> list[Bar]:
    most = max(counts, default=0) or 1
    return [
        Bar(edges[number], edges[number + 1], count, round(count / most * HEIGHT, 2))
        for number, count in enumerate(counts)
    ]
