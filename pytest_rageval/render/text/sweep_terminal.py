"""A sweep as lines for a terminal: the points in a table, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_rageval.io.suggestions import and_more
from pytest_rageval.numbers import change, score_text
from pytest_rageval.render.text.columns import aligned, shortened
from pytest_rageval.text import counted
from pytest_rageval.tools.sweep.sweep import ScoredPoint, Sweep

MOST_POINTS = 20
HEADINGS = ("rank", "score", "recall", "negative", "MRR", "how")


def sweep_lines(sweep: Sweep, *, width: int = 100, most: int = MOST_POINTS) -> Iterator[str]:
    """The table of points, best first, the default below it, and what follows from it."""
    fixed = [name for name in sweep.best.point.params if name not in sweep.varying]
    if fixed and sweep.varying:
        yield f"all points at {sweep.best.point.of(fixed)}"
    if sweep.varying:
        yield f"points by {', '.join(sweep.varying)}"
    yield from _table(sweep.points[:most], sweep, width)
    if len(sweep.points) > most:
        yield and_more(len(sweep.points) - most, "points")
    yield ""
    yield from verdict_lines(sweep)
    if sweep.calls > sweep.calls_of_all:
        extra = sweep.calls - sweep.calls_of_all
        yield f"asked {counted(sweep.calls, 'question')}, {extra:,} more than the points have: the default, and probes"
    else:
        yield f"asked {sweep.calls:,} of {counted(sweep.calls_of_all, 'question')}: {sweep.saved:,} saved"
    yield from (f"note: {note}" for note in sweep.notes)


def verdict_lines(sweep: Sweep) -> Iterator[str]:
    """The recommended point, and whether it can be told from the default."""
    yield f"best: {sweep.best.point}"
    yield difference_sentence(sweep)
    yield from caveats(sweep)


def caveats(sweep: Sweep) -> list[str]:
    """What the difference does not say by itself."""
    if sweep.confirmation.is_other_half:
        return []
    return ["chosen and compared on the same cases, which flatters the best: --confirm compares on the other half"]


def difference_sentence(sweep: Sweep) -> str:
    """The difference of the best point to the default in one sentence."""
    confirmation, difference = sweep.confirmation, sweep.confirmation.difference
    interval = "" if difference.ci is None else f" [{difference.ci[0]:+.3f}, {difference.ci[1]:+.3f}]"
    scores = f"{score_text(confirmation.default.score)} → {score_text(confirmation.best.score)}"
    where = f"{'the other half, ' if confirmation.is_other_half else ''}{counted(difference.n, 'case')}"
    figures = f"{scores}, {change(difference.delta)}{interval}, {where}"
    if not difference.is_distinguishable:
        return f"not distinguishable from the default: {figures}"
    return f"{'better' if difference.delta > 0 else 'worse'} than the default: {figures}"


def _table(points: Sequence[ScoredPoint], sweep: Sweep, width: int) -> Iterator[str]:
    rows = [_row(str(point.rank), point) for point in points] + [_row("–", sweep.default)]
    titles = [*(point.point.values(sweep.varying) for point in points), "default (as configured)"]
    lines = aligned([HEADINGS, *rows])
    room = max(12, width - max(map(len, lines)) - 2)
    for line, title in zip(lines, ["point", *titles], strict=True):
        yield f"{line.ljust(max(map(len, lines)))}  {shortened(title, room)}"


def _row(rank: str, point: ScoredPoint) -> tuple[str, ...]:
    scores = point.scores
    how = point.how + (f" ({counted(len(point.errors), 'error')})" if point.errors else "")
    return (rank, *map(score_text, (scores.score, scores.recall, scores.negative_accuracy, scores.mrr)), how)
