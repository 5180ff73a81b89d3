"""A sweep as one HTML page: the verdict, the points, a plot for each parameter, recall against negative accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.io.atomic import write_text
from pytest_rageval.render.html.environment import policy, rendered, style
from pytest_rageval.render.html.figures import FRAME, Axis, AxisValue
from pytest_rageval.text import NO_VALUE, score_text
from pytest_rageval.tune.sweep.grid import value_text
from pytest_rageval.tune.sweep.outcome import ScoredPoint, Sweep
from pytest_rageval.views.sweep import SCORES, fixed_params, score_cells

SWEEP_PAGE = "sweep.html"
MOST_ROWS = 200
RUN_PAGES = ("report.html", "summary.md")


class Dot(NamedTuple):
    """A point in a plot: its place, text and kind."""

    x: float
    y: float
    text: str
    kind: str
    link: str | None = None


class Plot(NamedTuple):
    """Dots, the line through some of them, labels of the axes, and the height of the default, if it has a score."""

    title: str
    dots: tuple[Dot, ...]
    line: str
    across: tuple[AxisValue, ...]
    up: tuple[AxisValue, ...]
    default: float | None = None


def write_sweep_page(sweep: Sweep, folder: Path, sentence: str, details: Sequence[str]) -> Path:
    """Write the page into the sweep's folder; `sentence` and `details` are the terminal's verdict."""
    runs = folder.parent.parent / "runs"
    links = {point.run: _link(runs, point.run) for point in (*sweep.points, sweep.default) if point.run}
    write_text(folder / SWEEP_PAGE, sweep_html(sweep, folder.name, sentence, details, links))
    return folder / SWEEP_PAGE


def sweep_html(
    sweep: Sweep, sweep_id: str, sentence: str, details: Sequence[str], links: Mapping[str, str | None]
) -> str:
    """Return the page; `links` maps the ids of stored runs to their pages."""
    return rendered(
        "sweep.html",
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
        rows=[_row(point, sweep, links) for point in (sweep.default, *sweep.points[:MOST_ROWS])],
        hidden=max(0, len(sweep.points) - MOST_ROWS),
        plots=[parameter_plot(sweep, name) for name in sweep.varying],
        front=front_plot(sweep, links),
        front_points=[_row(point, sweep, links) for point in sweep.front],
    )


def parameter_plot(sweep: Sweep, name: str) -> Plot:
    """Plot the scores of all points over the values of one parameter; the line is the best score at each value."""
    by_value: dict[str, list[ScoredPoint]] = {}
    for scored in sorted(sweep.points, key=lambda each: _order(each.point.params.get(name))):
        if scored.scores.score is not None:
            by_value.setdefault(value_text(scored.point.params.get(name)), []).append(scored)
    scores = [each.scores.score or 0.0 for group in by_value.values() for each in group]
    default = sweep.default.scores.score
    axis = Axis.over([*scores, *([default] if default is not None else [])])
    step = (FRAME.right - FRAME.left) / max(1, len(by_value))
    places = {value: round(FRAME.left + step * (number + 0.5), 1) for number, value in enumerate(by_value)}
    dots = [
        Dot(places[value], axis.height(each.scores.score or 0.0), _text(each, sweep), _kind(each, sweep))
        for value, group in by_value.items()
        for each in group
    ]
    tops = (
        f"{places[value]:g},{min(axis.height(each.scores.score or 0.0) for each in group):g}"
        for value, group in by_value.items()
    )
    return Plot(
        name,
        _visible_dots(dots),
        " ".join(tops),
        tuple(AxisValue(place, value) for value, place in places.items()),
        axis.labels(axis.height),
        None if default is None else axis.height(default),
    )


def front_plot(sweep: Sweep, links: Mapping[str, str | None]) -> Plot | None:
    """Plot negative accuracy over recall; None without both.

    The line is the front: no point has more of both.
    """
    points = [
        point
        for point in (*sweep.points, sweep.default)
        if point.scores.recall is not None and point.scores.negative_accuracy is not None
    ]
    if not points:
        return None
    across = Axis.over([point.scores.recall or 0.0 for point in points])
    up = Axis.over([point.scores.negative_accuracy or 0.0 for point in points])

    def place(point: ScoredPoint) -> tuple[float, float]:
        return across.across(point.scores.recall or 0.0), up.height(point.scores.negative_accuracy or 0.0)

    dots = [
        Dot(*place(point), _text(point, sweep), _kind(point, sweep), links.get(point.run or "")) for point in points
    ]
    line = " ".join(dict.fromkeys("{:g},{:g}".format(*place(point)) for point in sweep.front))
    ends = across.labels(across.across)
    return Plot("recall against negative accuracy", _visible_dots(dots), line, ends, up.labels(up.height))


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
    scores = point.scores
    name = "default" if point is sweep.default else point.point.of(sweep.varying)
    parts = (("score", scores.score), ("recall", scores.recall), ("negative accuracy", scores.negative_accuracy))
    return f"{name}: " + ", ".join(f"{title} {score_text(value)}" for title, value in parts) + f" ({point.how})"


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
    return next((f"../../runs/{run}/{name}" for name in RUN_PAGES if (runs / run / name).is_file()), None)


def _order(value: object) -> tuple[bool, float, str]:
    """Return a sort key: numbers by value, before all others by text."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (not is_number, float(value) if isinstance(value, int | float) else 0.0, "" if is_number else str(value))
