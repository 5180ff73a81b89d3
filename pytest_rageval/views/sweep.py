"""A sweep: its points in a table, the best first, and whether the best is distinguishable from the default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_rageval.io.suggestions import and_more
from pytest_rageval.text import NO_VALUE, change, counted, score_text
from pytest_rageval.tune.sweep.outcome import ScoredPoint, Sweep
from pytest_rageval.views.parts import Block, FigureTable, Line, Section, TableRow

MOST_POINTS = 20
FLATTERING = "chosen and compared on the same cases, which flatters the best: --confirm compares on the other half"
SCORES = ("score", "recall", "negative", "MRR")
"""The heads of a point's scores, in every face."""


@dataclass(frozen=True, slots=True)
class SweepView:
    """A sweep on a terminal."""

    points: Section
    """The points in a table, best first, and the default below them."""
    verdict: Section
    """The best point, its difference from the default, and the number of questions."""


def sweep_view(sweep: Sweep) -> SweepView:
    """Return the view of a sweep."""
    return SweepView(tuple(_points(sweep)), tuple(map(Line, _verdict(sweep))))


def _points(sweep: Sweep) -> Iterator[Block]:
    """Yield the points, best first, and the default below them."""
    fixed = fixed_params(sweep)
    if fixed:
        yield Line(f"all points at {fixed}")
    if sweep.varying:
        yield Line(f"points by {', '.join(sweep.varying)}")
    shown = sweep.points[:MOST_POINTS]
    rows = [_row(str(point.rank), point, point.point.values(sweep.varying)) for point in shown]
    rows.append(_row(NO_VALUE, sweep.default, "default (as configured)"))
    yield FigureTable(("rank", *SCORES, "how", ""), tuple(rows), has_verdicts=True)
    hidden = len(sweep.points) - MOST_POINTS
    if hidden > 0:
        yield Line(and_more(hidden, "points"))


def fixed_params(sweep: Sweep) -> str:
    """Return the parameters that all points share, '' if none is."""
    fixed = [name for name in sweep.best.point.params if name not in sweep.varying]
    if not fixed or not sweep.varying:
        return ""
    return sweep.best.point.of(fixed)


def _row(rank: str, point: ScoredPoint, name: str) -> TableRow:
    how = point.how
    if point.errors:
        how += f" ({counted(len(point.errors), 'error')})"
    return TableRow((rank, *score_cells(point), how, name))


def score_cells(point: ScoredPoint) -> tuple[str, ...]:
    """Return the scores of a point, in the order of `SCORES`."""
    scores = point.scores
    values = (scores.score, scores.recall, scores.negative_accuracy, scores.mrr)
    return tuple(map(score_text, values))


def _verdict(sweep: Sweep) -> Iterator[str]:
    """Yield the best point, whether it is distinguishable from the default, and the number of questions."""
    yield f"best: {sweep.best.point}"
    yield difference_sentence(sweep)
    yield from caveats(sweep)
    if sweep.calls > sweep.calls_of_all:
        extra = sweep.calls - sweep.calls_of_all
        yield f"asked {counted(sweep.calls, 'question')}, {extra:,} more than the points have: the default, and probes"
    else:
        yield f"asked {sweep.calls:,} of {counted(sweep.calls_of_all, 'question')}: {sweep.saved:,} saved"
    for note in sweep.notes:
        yield f"note: {note}"


def caveats(sweep: Sweep) -> list[str]:
    """Return the limits of the comparison with the default."""
    limits = []
    if sweep.difference.delta < 0:
        limits.append("the default scored higher: keep what you have")
    if not sweep.is_confirmed:
        limits.append(FLATTERING)
    return limits


def difference_sentence(sweep: Sweep) -> str:
    """Return the difference between the best point and the default in one sentence."""
    difference = sweep.difference
    interval = ""
    if difference.ci is not None:
        low, high = difference.ci
        interval = f" [{low:+.3f}, {high:+.3f}]"
    scores = f"{score_text(sweep.default_scores.score)} → {score_text(sweep.best_scores.score)}"
    cases = counted(difference.n, "case")
    if sweep.is_confirmed:
        cases = f"the other half, {cases}"
    figures = f"{scores}, {change(difference.delta)}{interval}, {cases}"
    if not difference.is_distinguishable:
        return f"not distinguishable from the default: {figures}"
    direction = "better" if difference.delta > 0 else "worse"
    return f"{direction} than the default: {figures}"
