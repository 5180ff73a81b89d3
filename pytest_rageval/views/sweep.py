"""A sweep: its points in a table, the best first, and whether the best is distinguishable from the default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_rageval.io.suggestions import and_more
from pytest_rageval.text import NO_VALUE, change, counted, score_text
from pytest_rageval.tune.sweep.outcome import ScoredPoint, Sweep
from pytest_rageval.views.parts import Block, FigureTable, Line, Section, TableRow

MOST_POINTS = 20
FLATTERING = ["chosen and compared on the same cases, which flatters the best: --confirm compares on the other half"]
SCORES = ("score", "recall", "negative", "MRR")
"""The heads of a point's scores, in every face."""


@dataclass(frozen=True, slots=True)
class SweepView:
    """A sweep on a terminal."""

    points: Section
    verdict: Section


def sweep_view(sweep: Sweep) -> SweepView:
    """Return the view of a sweep."""
    return SweepView(tuple(_points(sweep)), tuple(map(Line, _verdict(sweep))))


def _points(sweep: Sweep) -> Iterator[Block]:
    """Yield the points, best first, and the default below them."""
    if fixed := fixed_params(sweep):
        yield Line(f"all points at {fixed}")
    if sweep.varying:
        yield Line(f"points by {', '.join(sweep.varying)}")
    rows = [_row(str(point.rank), point, point.point.values(sweep.varying)) for point in sweep.points[:MOST_POINTS]]
    rows.append(_row(NO_VALUE, sweep.default, "default (as configured)"))
    yield FigureTable(("rank", *SCORES, "how", ""), tuple(rows), has_verdicts=True)
    if (hidden := len(sweep.points) - MOST_POINTS) > 0:
        yield Line(and_more(hidden, "points"))


def fixed_params(sweep: Sweep) -> str:
    """Return the parameters that all points share, '' if none is."""
    fixed = [name for name in sweep.best.point.params if name not in sweep.varying]
    return sweep.best.point.of(fixed) if fixed and sweep.varying else ""


def _row(rank: str, point: ScoredPoint, name: str) -> TableRow:
    how = point.how + (f" ({counted(len(point.errors), 'error')})" if point.errors else "")
    return TableRow((rank, *score_cells(point), how, name))


def score_cells(point: ScoredPoint) -> tuple[str, ...]:
    """Return the scores of a point, in the order of `SCORES`."""
    scores = point.scores
    return tuple(map(score_text, (scores.score, scores.recall, scores.negative_accuracy, scores.mrr)))


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
    yield from (f"note: {note}" for note in sweep.notes)


def caveats(sweep: Sweep) -> list[str]:
    """Return the limits of the comparison with the default."""
    higher = ["the default scored higher: keep what you have"] * (sweep.difference.delta < 0)
    return higher + FLATTERING * (not sweep.is_confirmed)


def difference_sentence(sweep: Sweep) -> str:
    """Return the difference between the best point and the default in one sentence."""
    difference = sweep.difference
    interval = "" if difference.ci is None else f" [{difference.ci[0]:+.3f}, {difference.ci[1]:+.3f}]"
    scores = f"{score_text(sweep.default_scores.score)} → {score_text(sweep.best_scores.score)}"
    where = f"{'the other half, ' if sweep.is_confirmed else ''}{counted(difference.n, 'case')}"
    figures = f"{scores}, {change(difference.delta)}{interval}, {where}"
    if not difference.is_distinguishable:
        return f"not distinguishable from the default: {figures}"
    return f"{'better' if difference.delta > 0 else 'worse'} than the default: {figures}"
