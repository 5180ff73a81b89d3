"""A sweep as one HTML page: the verdict, the points, a plot for each parameter, recall against negative accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from pytest_rageval.io.atomic import write_text
from pytest_rageval.render.html.environment import policy, rendered, style
from pytest_rageval.render.html.figures import FRAME, Axis, AxisValue
from pytest_rageval.render.html.variables import variables
from pytest_rageval.text import NO_VALUE, score_text
from pytest_rageval.tune.sweep.grid import value_text
from pytest_rageval.tune.sweep.outcome import ScoredPoint, Sweep
from pytest_rageval.views.sweep import SCORES, fixed_params, score_cells

SWEEP_PAGE = "sweep.html"
MOST_ROWS = 200
"""Points in the table."""
RUN_PAGES = ("report.html", "summary.md")
"""Pages of a run to link to, the first that exists."""


class Dot(NamedTuple):
    """A point in a plot."""

    x: float
    y: float
    text: str
    kind: str
    """derived, measured, default or best."""
    link: str | None = None
    """The page of its run; None without one."""


class Plot(NamedTuple):
    """Dots on two axes."""

    title: str
    dots: tuple[Dot, ...]
    line: str
    """The points of the line through some of the dots."""
    across: tuple[AxisValue, ...]
    """The labels of the horizontal axis."""
    up: tuple[AxisValue, ...]
    """The labels of the vertical axis."""
    default: float | None = None
    """The height of the default, if it has a score."""


@dataclass(frozen=True, kw_only=True)
class SweepContext:
    """What the page of a sweep gets."""

    policy: str
    """The content security policy."""
    style: Markup
    """The style sheet."""
    version: str
    """The version of this package."""
    sweep: Sweep
    """The sweep."""
    sweep_id: str
    """The name of its folder."""
    sentence: str
    """The verdict."""
    details: Sequence[str]
    """The lines below the verdict."""
    tone: str
    """The tone of the verdict: green or grey."""
    fixed: str
    """The parameters that all points share."""
    score_heads: Sequence[str]
    """The names of the scores of a point."""
    rows: Sequence[Mapping[str, object]]
    """The points of the table, the default first."""
    hidden: int
    """The number of points that are not in the table."""
    plots: Sequence[Plot]
    """A plot for each parameter."""
    front: Plot | None
    """Recall against negative accuracy; None without both."""
    front_points: Sequence[Mapping[str, object]]
    """The points of which none has more of both."""


def write_sweep_page(sweep: Sweep, folder: Path, sentence: str, details: Sequence[str]) -> Path:
    """Write the page into the sweep's folder; `sentence` and `details` are the terminal's verdict."""
    runs = folder.parent.parent / "runs"
    run_ids = [point.run for point in (*sweep.points, sweep.default) if point.run]
    links = {run_id: _link(runs, run_id) for run_id in run_ids}
    write_text(folder / SWEEP_PAGE, sweep_html(sweep, folder.name, sentence, details, links))
    return folder / SWEEP_PAGE


def sweep_html(
    sweep: Sweep, sweep_id: str, sentence: str, details: Sequence[str], links: Mapping[str, str | None]
) -> str:
    """Return the page; `links` maps the ids of stored runs to their pages."""
    shown_points = (sweep.default, *sweep.points[:MOST_ROWS])
    context = SweepContext(
        policy=policy(),
        style=style(),
        version=version("pytest-rageval"),
        sweep=sweep,
        sweep_id=sweep_id,
        sentence=sentence,
        details=details,
        tone="green" if sweep.is_better else "grey",
        fixed=fixed_params(sweep),
        score_heads=SCORES,
        rows=[_row(point, sweep, links) for point in shown_points],
        hidden=max(0, len(sweep.points) - MOST_ROWS),
        plots=[parameter_plot(sweep, name) for name in sweep.varying],
        front=front_plot(sweep, links),
        front_points=[_row(point, sweep, links) for point in sweep.front],
    )
    return rendered("sweep.html", **variables(context))


def parameter_plot(sweep: Sweep, name: str) -> Plot:
    """Plot the scores of all points over the values of one parameter; the line is the best score at each value."""
    by_value: dict[str, list[ScoredPoint]] = {}
    scores: list[float] = []
    for point in sorted(sweep.points, key=lambda point: _order(point.point.params.get(name))):
        # A point without a score has no height; 0 would be the worst.
        if point.scores.score is not None:
            scores.append(point.scores.score)
            by_value.setdefault(value_text(point.point.params.get(name)), []).append(point)
    default = sweep.default.scores.score
    axis = Axis.over(scores if default is None else [*scores, default])
    step = (FRAME.right - FRAME.left) / max(1, len(by_value))
    across = []
    dots = []
    line = []
    for number, (value, points) in enumerate(by_value.items()):
        x = round(FRAME.left + step * (number + 0.5), 1)
        across.append(AxisValue(x, value))
        heights = [axis.height(point.scores.score or 0.0) for point in points]
        for point, y in zip(points, heights, strict=True):
            dots.append(Dot(x, y, _text(point, sweep), _kind(point, sweep)))
        line.append(f"{x:g},{min(heights):g}")  # heights are counted from the top
    return Plot(
        title=name,
        dots=_visible_dots(dots),
        line=" ".join(line),
        across=tuple(across),
        up=axis.labels(axis.height),
        default=None if default is None else axis.height(default),
    )


def front_plot(sweep: Sweep, links: Mapping[str, str | None]) -> Plot | None:
    """Plot negative accuracy over recall; None without both.

    The line is the front: no point has more of both.
    """
    points = [point for point in (*sweep.points, sweep.default) if _has_both(point)]
    if not points:
        return None
    across = Axis.over([point.scores.recall or 0.0 for point in points])
    up = Axis.over([point.scores.negative_accuracy or 0.0 for point in points])

    def place(point: ScoredPoint) -> tuple[float, float]:
        return across.across(point.scores.recall or 0.0), up.height(point.scores.negative_accuracy or 0.0)

    dots = []
    for point in points:
        x, y = place(point)
        dots.append(Dot(x, y, _text(point, sweep), _kind(point, sweep), links.get(point.run or "")))
    corners = dict.fromkeys("{:g},{:g}".format(*place(point)) for point in sweep.front)
    return Plot(
        title="recall against negative accuracy",
        dots=_visible_dots(dots),
        line=" ".join(corners),
        across=across.labels(across.across),
        up=up.labels(up.height),
    )


def _has_both(point: ScoredPoint) -> bool:
    return point.scores.recall is not None and point.scores.negative_accuracy is not None


def _visible_dots(dots: Sequence[Dot]) -> tuple[Dot, ...]:
    """Return one dot for each place, the most telling, drawn last: 10,000 points must not be 10,000 circles."""
    rank = ("derived", "measured", "default", "best")
    by_place: dict[tuple[float, float], Dot] = {}
    for dot in sorted(dots, key=lambda each: rank.index(each.kind)):
        by_place[dot.x, dot.y] = dot
    return tuple(sorted(by_place.values(), key=lambda each: rank.index(each.kind)))


def _kind(point: ScoredPoint, sweep: Sweep) -> str:
    if point.rank == 1:
        return "best"
    return "default" if point is sweep.default else point.how


def _text(point: ScoredPoint, sweep: Sweep) -> str:
    name = "default" if point is sweep.default else point.point.of(sweep.varying)
    score = f"score {score_text(point.scores.score)}"
    recall = f"recall {score_text(point.scores.recall)}"
    negative_accuracy = f"negative accuracy {score_text(point.scores.negative_accuracy)}"
    return f"{name}: {score}, {recall}, {negative_accuracy} ({point.how})"


def _row(point: ScoredPoint, sweep: Sweep, links: Mapping[str, str | None]) -> dict[str, object]:
    return {
        "rank": point.rank or NO_VALUE,
        "run": point.run,
        "link": links.get(point.run or ""),
        "how": point.how,
        "name": "as configured" if point is sweep.default else point.point.values(sweep.varying),
        "n": point.scores.n,
        "errors": len(point.errors),
        "asked": point.asked,
        "scores": score_cells(point),
    }


def _link(runs: Path, run: str) -> str | None:
    """Return the page of a run, relative to the sweep's folder."""
    for name in RUN_PAGES:
        if (runs / run / name).is_file():
            return f"../../runs/{run}/{name}"
    return None


def _order(value: object) -> tuple[bool, float, str]:
    """Return a sort key: numbers by value, before all others by text."""
    # True is an int to Python, and would stand among the numbers.
    if isinstance(value, bool):
        return True, float(value), str(value)
    if isinstance(value, int | float):
        return False, float(value), ""
    return True, 0.0, str(value)
