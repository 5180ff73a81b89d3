"""Geometry of the HTML report's charts: interval bars, sparklines, and plots with axes, in units of the templates."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

WIDTH = 100
HEIGHT = 20
"""Units of a chart that is scaled to its room."""
BINS = 10
"""Bars of a histogram of scores."""


class IntervalFigure(NamedTuple):
    """A mean with its 95 % interval on its scale, from 0 to `WIDTH`; without an interval `low` and `high` are None."""

    mean: float
    low: float | None
    high: float | None


def interval_figure(
    mean: float | None, ci: Sequence[float | None] | None, scale: Sequence[float]
) -> IntervalFigure | None:
    """Return a mean with its interval as a figure, None if there is no mean."""
    if mean is None:
        return None
    low, high = ci or (None, None)
    return IntervalFigure(
        mean=_position(mean, scale),
        low=None if low is None else _position(low, scale),
        high=None if high is None else _position(high, scale),
    )


def change_figure(
    delta: float | None, ci: Sequence[float | None] | None, scale: Sequence[float]
) -> IntervalFigure | None:
    """Return a change as a figure on a scale twice as wide, with no change in the middle."""
    widest = scale[1] - scale[0]
    return interval_figure(delta, ci, (-widest, widest))


def _position(value: float, scale: Sequence[float]) -> float:
    low, high = scale
    share = (value - low) / (high - low)
    return round(min(max(share, 0.0), 1.0) * WIDTH, 2)


class Spark(NamedTuple):
    """Values in time as a line with a gap for each that is missing, and the place of the last one."""

    path: str
    last: tuple[float, float]
    values: tuple[float | None, ...]


def spark(values: Iterable[float | None], least_span: float = 0.0) -> Spark | None:
    """Draw a line over the range of its values, or over `least_span` if they lie closer: a small step looks small.

    Return None for fewer than two values.
    """
    values = tuple(values)
    numbers = [value for value in values if value is not None]
    if len(numbers) < 2:
        return None
    low = min(numbers)
    high = max(numbers)
    middle = (low + high) / 2
    # Equal values have no range: they are a line in the middle.
    span = max(high - low, least_span) or 1.0
    step = WIDTH / (len(values) - 1)
    inner_height = HEIGHT - 4
    places: list[tuple[float, float] | None] = []
    last = (0.0, 0.0)
    for number, value in enumerate(values):
        if value is None:
            places.append(None)
            continue
        last = (round(number * step, 1), round(HEIGHT / 2 - inner_height * (value - middle) / span, 1))
        places.append(last)
    return Spark(line_path(places), last, values)


def line_path(places: Iterable[tuple[float, float] | None]) -> str:
    """Join places by a line that breaks at each None; a single place becomes a dot."""
    path = ""
    is_drawing = False
    for place in places:
        if place is not None:
            x, y = place
            # Round caps of the stroke make a dot of a line without a length.
            path += f"L{x:g} {y:g}" if is_drawing else f"M{x:g} {y:g}h0"
        is_drawing = place is not None
    return path


def least_span(scale: Sequence[float]) -> float:
    """Return a tenth of a metric's scale: the least height of a chart, over which closer values are drawn."""
    return (scale[1] - scale[0]) / 10


# ── plots with axes ───────────────────────────────────────────────────────────────────────────────────────────


class PlotFrame(NamedTuple):
    """The units of a plot, and the edges of its inner part, outside of which the labels of the axes are drawn."""

    width: int = 260
    height: int = 120
    left: int = 34
    right: int = 252
    top: int = 8
    bottom: int = 102


FRAME = PlotFrame()
MOST_LABELS = 6
"""Labels of an axis."""
LABEL_HEIGHT = 8
"""Units below which two labels overlap."""


class AxisValue(NamedTuple):
    """A value at an axis."""

    at: float
    text: str


class Axis(NamedTuple):
    """An axis over values: its ends, with room beyond them, and the first and the last value."""

    low: float
    high: float
    first: float
    last: float

    @classmethod
    def over(cls, values: Sequence[float], least: float = 0.0) -> Axis:
        """Return an axis over some values, with a minimum length."""
        first = min(values, default=0.0)
        last = max(values, default=1.0)
        # Never 0, by which the share of a value would be divided.
        room = max(0.06 * (last - first), 0.01, (least - last + first) / 2)
        return cls(first - room, last + room, first, last)

    def height(self, value: float) -> float:
        """Return the vertical place of a value on the axis."""
        return round(FRAME.bottom - self._share(value) * (FRAME.bottom - FRAME.top), 1)

    def across(self, value: float) -> float:
        """Return the horizontal place of a value on the axis."""
        return round(FRAME.left + self._share(value) * (FRAME.right - FRAME.left), 1)

    def _share(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)

    def labels(self, place: Callable[[float], float]) -> tuple[AxisValue, ...]:
        """Return the first and the last value at their places; the last alone if they would overlap."""
        first = AxisValue(place(self.first), f"{self.first:.2f}")
        last = AxisValue(place(self.last), f"{self.last:.2f}")
        if first.text == last.text or abs(first.at - last.at) < LABEL_HEIGHT:
            return (last,)
        return (first, last)


class Bar(NamedTuple):
    """Numbers of cases with a value from `low` to `high`, now and before."""

    low: float
    high: float
    cases: int
    before: int


class Chart(NamedTuple):
    """A plot with axes: bars or a line, and the baseline dashed."""

    unit: str
    """What the chart shows, in words."""
    across: Sequence[AxisValue]
    """The labels of the horizontal axis."""
    up: Sequence[AxisValue]
    """The labels of the vertical axis."""
    bars: str = ""
    """The path of the bars."""
    line: str = ""
    """The path of the line."""
    before: str = ""
    """The dashed path of the baseline."""
    marks: Sequence[AxisValue] = ()
    """Other values of the baseline."""
    rows: Sequence[Bar] = ()
    """The bars for the table beneath."""
    dashed: str = "before"
    """What the dashed lines are."""


def histogram(values: Iterable[float], scale: Sequence[float], before: Iterable[float] = ()) -> Chart:
    """Count the values in each tenth of the scale; a value on a border counts above it, the last one below."""
    low, high = scale
    edges = [low + (high - low) * number / BINS for number in range(BINS + 1)]
    return _bar_chart(edges, _counts(values, edges), _counts(before, edges), "cases by score")


def doubling_histogram(values: Sequence[float], before: Mapping[str, float] | None = None) -> Chart | None:
    """Count the times between doublings: 100, 200, 400, … ms. `before`: times of the baseline to mark."""
    positive = [value for value in values if value > 0]
    if not positive:
        return None
    first = math.floor(math.log2(min(positive)))
    last = math.floor(math.log2(max(positive)))
    bins = last - first + 1
    edges = [2.0**power for power in range(first, last + 2)]
    chart = _bar_chart(edges, _counts(positive, edges), [0] * bins, "cases by ms")
    marks = []
    for name, time in (before or {}).items():
        # A time of 0 has no logarithm.
        if time <= 0:
            continue
        at = FRAME.left + (math.log2(time) - first) / bins * (FRAME.right - FRAME.left)
        # The baseline may have been faster or slower than all times of this run.
        if FRAME.left <= at <= FRAME.right:
            marks.append(AxisValue(at, name))
    return chart._replace(marks=marks)


def _counts(values: Iterable[float], edges: Sequence[float]) -> list[int]:
    """Return how many values are between two edges; those beyond all edges count in the first and the last bin."""
    in_order = sorted(values)
    # Sorted once and cut at the edges: no look for the bin of each value.
    inner_ends = [bisect_left(in_order, edge) for edge in edges[1:-1]]
    ends = [0, *inner_ends, len(in_order)]
    return [end - start for start, end in pairwise(ends)]


def _bar_chart(edges: Sequence[float], counts: Sequence[int], before: Sequence[int], unit: str) -> Chart:
    # At least 1: a run without scores still gets axes.
    most = max(*counts, *before, 1)
    step = (FRAME.right - FRAME.left) / len(counts)
    lefts = [round(FRAME.left + step * number, 1) for number in range(len(edges))]
    bars = ""
    for left, count in zip(lefts, counts, strict=False):
        if count:
            bars += f"M{left:g} {FRAME.bottom}V{_top(count, most):g}h{step - 1:.4g}V{FRAME.bottom}z"
    outline = ""
    if any(before):
        steps = [f"V{_top(count, most):g}H{right:g}" for count, right in zip(before, lefts[1:], strict=True)]
        outline = f"M{FRAME.left} {FRAME.bottom}{''.join(steps)}V{FRAME.bottom}"
    labels = [AxisValue(left, f"{edge:,g}") for left, edge in zip(lefts, edges, strict=True)]
    labelled_edges = math.ceil(len(edges) / MOST_LABELS)
    up = [AxisValue(FRAME.bottom, "0"), AxisValue(FRAME.top, f"{most:,}")]
    rows = [Bar(*row) for row in zip(edges, edges[1:], counts, before, strict=False)]
    return Chart(unit, labels[::labelled_edges], up, bars, before=outline, rows=rows)


def _top(count: int, most: int) -> float:
    """Return the top of a bar. `most`: the largest number, which fills the height."""
    return round(FRAME.bottom - count / most * (FRAME.bottom - FRAME.top), 1)


def time_chart(
    values: Sequence[float | None],
    dates: Sequence[str],
    before: float | None = None,
    least: float = 0.1,
    marked: Iterable[int] = (),
) -> Chart | None:
    """Draw a mean from run to run, with dashed lines for the baseline's and at `marked` runs; None below two values."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < 2:
        return None
    axis = Axis.over(numbers if before is None else [*numbers, before], least)
    step = (FRAME.right - FRAME.left - 2 * FRAME.top) / (len(values) - 1)
    lefts = [round(FRAME.left + FRAME.top + step * number, 1) for number in range(len(values))]
    places = [None if value is None else (left, axis.height(value)) for left, value in zip(lefts, values, strict=True)]
    line = line_path(places)
    dashed = "" if before is None else f"M{FRAME.left} {axis.height(before):g}H{FRAME.right}"
    across = [AxisValue(lefts[0], dates[0]), AxisValue(lefts[-1], dates[-1])]
    marks = [AxisValue(lefts[number], "") for number in marked]
    unit = f"mean of {len(values)} runs in time"
    return Chart(unit, across, axis.labels(axis.height), line=line, before=dashed, marks=marks)
