"""Charts of conversations by the number of the turn: a point for each number, which averages no other turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.render.html.figures import FRAME, AxisValue, line_path
from pytest_rageval.stats.intervals import FEWEST
from pytest_rageval.text import score_text
from pytest_rageval.views.turns import metrics_by_turn

MOST_TURNS_SHOWN = 12
"""Numbers of turns that a chart has room for."""
SHARE_PASSED = "pass rate"


class TurnPoint(NamedTuple):
    """The turns of one number: their mean, its interval, and how many they are."""

    x: float
    y: float
    low: float | None
    """The vertical place of the lower end of the 95 % interval; None without an interval."""
    high: float | None
    is_first: bool
    words: str


class TurnChart(NamedTuple):
    """One metric by the number of the turn."""

    name: str
    is_metric: bool
    """It has a definition, which the pass rate has not."""
    points: Sequence[TurnPoint]
    line: str
    """The path through later turns. It does not begin at the first: that needs nothing of what was said before."""
    up: Sequence[AxisValue]
    across: Sequence[AxisValue]
    counts: Sequence[AxisValue]
    """How many turns of each number have a value."""
    remark: str
    """The remark on numbers with few turns, and on those that are left out; '' without any."""


class _Figure(NamedTuple):
    """The turns of one number in one metric."""

    number: int
    mean: float
    n: int
    ci: Sequence[float] | None


def turn_charts(metrics: Mapping[str, Any]) -> list[TurnChart]:
    """Return the charts of the pass rate and of the shown metrics; empty for a run without later turns."""
    by_turn: Mapping[str, Mapping[str, Any]] = metrics.get("by_turn") or {}
    if len(by_turn) < 2:
        return []
    charts = [_chart(SHARE_PASSED, list(_pass_rates(by_turn)), (0, 1), by_turn)]
    for name in metrics_by_turn(metrics["metrics"], by_turn):
        figures = list(_figures(name, by_turn))
        if len(figures) > 1:
            charts.append(_chart(name, figures, metrics["metrics"][name]["scale"], by_turn))
    return charts


def _pass_rates(by_turn: Mapping[str, Mapping[str, Any]]) -> Iterator[_Figure]:
    for number, group in by_turn.items():
        share = group["outcomes"]["passed"] / group["tests"]
        yield _Figure(int(number), share, group["tests"], group.get("pass_rate_ci"))


def _figures(name: str, by_turn: Mapping[str, Mapping[str, Any]]) -> Iterator[_Figure]:
    for number, group in by_turn.items():
        scored = group["metrics"].get(name)
        if scored is not None:
            yield _Figure(int(number), scored["mean"], scored["n_scored"], scored.get("ci"))


def _chart(
    name: str, figures: Sequence[_Figure], scale: Sequence[float], by_turn: Mapping[str, Mapping[str, Any]]
) -> TurnChart:
    numbers = [int(number) for number in by_turn][:MOST_TURNS_SHOWN]
    step = (FRAME.right - FRAME.left) / len(numbers)
    places = {number: round(FRAME.left + step * (place + 0.5), 1) for place, number in enumerate(numbers)}
    shown = [figure for figure in figures if figure.number in places]
    points = [_point(figure, places[figure.number], scale) for figure in shown]
    heights = {figure.number: (point.x, point.y) for figure, point in zip(shown, points, strict=True)}
    later = [heights.get(number) for number in numbers if number > 1]
    ends = [AxisValue(_height(end, scale), f"{end:g}") for end in scale]
    return TurnChart(
        name=name,
        is_metric=name != SHARE_PASSED,
        points=points,
        line=line_path(later),
        up=ends,
        across=[AxisValue(place, str(number)) for number, place in places.items()],
        counts=[AxisValue(places[figure.number], str(figure.n)) for figure in shown],
        remark=_remark(shown, len(by_turn) - len(numbers)),
    )


def _point(figure: _Figure, x: float, scale: Sequence[float]) -> TurnPoint:
    words = f"turn {figure.number}: {score_text(figure.mean)}"
    low: float | None = None
    high: float | None = None
    if figure.ci is not None:
        low, high = (_height(end, scale) for end in figure.ci)
        words += f", 95 % within {score_text(figure.ci[0])} to {score_text(figure.ci[1])}"
    words += f", n {figure.n}"
    return TurnPoint(x, _height(figure.mean, scale), low, high, is_first=figure.number == 1, words=words)


def _height(value: float, scale: Sequence[float]) -> float:
    low, high = scale
    share = (value - low) / (high - low)
    on_scale = min(max(share, 0.0), 1.0)
    return round(FRAME.bottom - on_scale * (FRAME.bottom - FRAME.top), 1)


def _remark(figures: Sequence[_Figure], left_out: int) -> str:
    """Return which numbers have too few turns for an interval, and how many are in the table alone."""
    remarks: list[str] = []
    few = [str(figure.number) for figure in figures if figure.n < FEWEST]
    if few:
        noun = "turn" if len(few) == 1 else "turns"
        remarks.append(f"{noun} {', '.join(few)}: fewer than {FEWEST}, no interval")
    if left_out > 0:
        remarks.append(f"{left_out} more in the table")
    return "; ".join(remarks)
