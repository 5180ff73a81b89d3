"""The result of a sweep: its points with their scores, the best and the default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_rageval.config.files import OWN_FILE, SHARED_FILE
from pytest_rageval.tune.sweep.grid import Point
from pytest_rageval.tune.sweep.ranking import CaseParts, Gain, PointScores


@dataclass(frozen=True)
class ScoredPoint:
    """A point with its scores over the cases that choose.

    run      the stored run of a measured point; None for a derived one
    asked    for a derived point, how many cases were asked all the same
    errors   cases that could not be asked, with the reason
    answers  equal for points at which all cases retrieve the same
    """

    point: Point
    scores: PointScores
    cases: Mapping[str, CaseParts] = field(repr=False)
    run: str | None = None
    asked: int = 0
    errors: Mapping[str, str] = field(default_factory=dict)
    rank: int = 0
    answers: int = 0

    @property
    def how(self) -> str:
        return "derived" if self.run is None else "measured"


class Sweep(NamedTuple):
    """The result of a sweep.

    points           best first
    best_scores, default_scores, difference
                     of the best point and the default, on the cases that decide the verdict
    is_confirmed     these are not the cases that chose
    notes            how points were scored
    varying          the parameters in which points differ
    configured_in    the file that configures the project
    """

    points: tuple[ScoredPoint, ...]
    default: ScoredPoint
    best_scores: PointScores
    default_scores: PointScores
    difference: Gain
    is_confirmed: bool
    calls: int
    calls_of_all: int
    indexings: int
    notes: tuple[str, ...]
    choosing: int
    confirming: int
    varying: tuple[str, ...]
    configured_in: str = SHARED_FILE

    @property
    def best(self) -> ScoredPoint:
        return self.points[0]

    @property
    def toml(self) -> str:
        """Return lines for the project's configuration that make the best point the default."""
        return self.best.point.toml(is_own_file=self.configured_in == OWN_FILE)

    @property
    def saved(self) -> int:
        return max(0, self.calls_of_all - self.calls)

    @property
    def is_better(self) -> bool:
        return self.difference.is_distinguishable and self.difference.delta > 0

    @property
    def front(self) -> tuple[ScoredPoint, ...]:
        """Return the points that no other beats in both recall and negative accuracy, by recall; of equals the best."""
        best_of: dict[tuple[float, float], ScoredPoint] = {}
        for point in self.points:  # best first
            best_of.setdefault(_axes(point), point)
        unbeaten = [axes for axes in best_of if not _is_beaten(axes, best_of)]
        return tuple(best_of[axes] for axes in sorted(unbeaten))


def _axes(point: ScoredPoint) -> tuple[float, float]:
    return point.scores.recall or 0.0, point.scores.negative_accuracy or 0.0


def _is_beaten(axes: tuple[float, float], others: Iterable[tuple[float, float]]) -> bool:
    """Return True if another point is better in one of both, and not worse in the other one."""
    recall, negative = axes
    for other in others:
        other_recall, other_negative = other
        if other != axes and other_recall >= recall and other_negative >= negative:
            return True
    return False
