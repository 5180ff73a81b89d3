"""Agreement of judges and people: the confusion matrix at the gate, kappa over the scale, AUROC and ranks.

*Positive* means: fails the gate. People are taken as right; the judge is evaluated.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, mul
from typing import NamedTuple

from pytest_rageval.stats.design_effect import Effect, independent, widened
from pytest_rageval.stats.intervals import Interval, Z, wilson


class LabelPair(NamedTuple):
    """One answer: whether it passes by a person's label, and the judge's score."""

    passes: bool
    score: float


class Estimate(NamedTuple):
    """A value with its 95 % interval; None if the data give no interval."""

    value: float
    interval: Interval | None


# ── at the gate ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Confusion:
    """Answers by the decisions of judge and people; positive: fails the gate.

    tp  both fail it            fp  only the judge fails it
    fn  only people fail it     tn  both pass it
    """

    tp: int
    fp: int
    fn: int
    tn: int

    @classmethod
    def of(cls, decided: Iterable[tuple[bool, bool]]) -> Confusion:
        """Count pairs (passes by the judge, passes by people)."""
        count = Counter((bool(judge), bool(human)) for judge, human in decided)
        return cls(
            tp=count[False, False],
            fp=count[False, True],
            fn=count[True, False],
            tn=count[True, True],
        )

    @property
    def n(self) -> int:
        return self.tp + self.fp + self.fn + self.tn

    @property
    def agreement(self) -> Estimate | None:
        """Return the share of answers decided alike by both, with Wilson's interval; None without answers."""
        if not self.n:
            return None
        share = (self.tp + self.tn) / self.n
        return Estimate(share, wilson(share, self.n))

    @property
    def precision(self) -> float | None:
        """Return the share that people fail, of the answers that the judge fails."""
        return _share(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """Return the share that the judge fails, of the answers that people fail."""
        return _share(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> float | None:
        """Return the share that the judge passes, of the answers that people pass."""
        return _share(self.tn, self.tn + self.fp)

    @property
    def youden(self) -> float | None:
        """Return recall + specificity - 1: 1 at best, 0 for guessing. Source: Youden 1950."""
        if self.recall is None or self.specificity is None:
            return None
        return self.recall + self.specificity - 1

    @property
    def kappa(self) -> Estimate | None:
        """Return agreement beyond chance: 1 at best, 0 for chance. None if both decide all answers in the same way.

        Source: Cohen 1960. The interval is that of Fleiss, Cohen and Everitt 1969 with half an answer added to each of
        the four cells, so that perfect agreement on a few answers does not appear certain.
        """
        value = _kappa([[self.tp, self.fp], [self.fn, self.tn]])
        if value is None:
            return None
        cells = [[self.tp + 0.5, self.fp + 0.5], [self.fn + 0.5, self.tn + 0.5]]
        centre = _kappa(cells)
        assert centre is not None  # no margin of these cells is empty
        half = Z * kappa_error(cells)
        # The half answers draw the centre towards 0; the interval holds the value all the same.
        low = min(value, centre - half)
        high = max(value, centre + half)
        return Estimate(value, (max(-1.0, low), min(1.0, high)))


def _share(part: int, total: int) -> float | None:
    return part / total if total else None


def _kappa(cells: Sequence[Sequence[float]]) -> float | None:
    """Return kappa from counts by two raters (rows and columns); None if chance alone would make them agree."""
    n = math.fsum(map(math.fsum, cells))
    if not n:
        return None
    by_row = [math.fsum(row) / n for row in cells]
    by_column = [math.fsum(column) / n for column in zip(*cells, strict=True)]
    agreed = math.fsum(cells[at][at] for at in range(len(cells))) / n
    chance = math.fsum(map(mul, by_row, by_column))
    if chance >= 1:
        return None
    return (agreed - chance) / (1 - chance)


def kappa_error(cells: Sequence[Sequence[float]]) -> float:
    """Return the standard error of kappa from counts by two raters (rows and columns), both with several values.

    Source: Fleiss, Cohen and Everitt 1969, for large samples.
    """
    n = math.fsum(map(math.fsum, cells))
    share = [[count / n for count in row] for row in cells]
    by_row = [math.fsum(row) for row in share]
    by_column = [math.fsum(column) for column in zip(*share, strict=True)]
    values = range(len(cells))
    agreed = math.fsum(share[value][value] for value in values)
    chance = math.fsum(map(mul, by_row, by_column))
    kappa = (agreed - chance) / (1 - chance)
    on_diagonal: list[float] = []
    beside_it: list[float] = []
    for row in values:
        for column in values:
            if row == column:
                factor = 1 - (by_row[row] + by_column[column]) * (1 - kappa)
                on_diagonal.append(share[row][column] * factor**2)
            else:
                # Crosswise, as in the source: the row's value in the other rater's margin.
                factor = by_column[row] + by_row[column]
                beside_it.append(share[row][column] * factor**2)
    expected = kappa - chance * (1 - kappa)
    variance = math.fsum(on_diagonal) + (1 - kappa) ** 2 * math.fsum(beside_it) - expected**2
    # Rounding may leave a variance of 0 just below it.
    return math.sqrt(max(0.0, variance) / n) / (1 - chance)


def in_words(kappa: float) -> str:
    """Return the name of a kappa's size. Source: Landis and Koch 1977; the borders are their convention."""
    rounded = round(kappa, 2)  # their classes are written with two digits: 0.61 to 0.80
    if rounded < 0:
        return "poor"
    names = ((0.8, "almost perfect"), (0.6, "substantial"), (0.4, "moderate"), (0.2, "fair"))
    for above, name in names:
        if rounded > above:
            return name
    return "slight"


# ── over the scale ────────────────────────────────────────────────────────────────────────────────────────────


def step_of(scale: tuple[float, float]) -> float:
    """Return the step to which scores are rounded for weighted kappa: 1, or a tenth of a scale shorter than 2."""
    low, high = scale
    if high - low >= 2:
        return 1.0
    return (high - low) / 10


def weighted_kappa(
    pairs: Sequence[tuple[float, float]], scale: tuple[float, float], *, squared: bool = False
) -> float | None:
    """Return agreement beyond chance over the steps of a scale, with near misses weighing less than far ones.

    Scores are rounded to `step_of(scale)`, halves upwards. The weight of a difference is its size, or its square. None
    without pairs, or if both have one and the same value throughout. Source: Cohen 1968.
    """
    if not pairs:
        return None
    power = 2 if squared else 1
    our_steps = [_rounded_to_step(ours, scale) for ours, _ in pairs]
    their_steps = [_rounded_to_step(theirs, scale) for _, theirs in pairs]
    n = len(pairs)
    weights = [abs(ours - theirs) ** power for ours, theirs in zip(our_steps, their_steps, strict=True)]
    observed = math.fsum(weights) / n
    # By chance, each step of ours meets each of theirs as often as both are frequent.
    weights_by_chance: list[int] = []
    their_counts = Counter(their_steps)
    for ours, our_count in Counter(our_steps).items():
        for theirs, their_count in their_counts.items():
            weights_by_chance.append(our_count * their_count * abs(ours - theirs) ** power)
    by_chance = math.fsum(weights_by_chance) / n**2
    if not by_chance:
        return None
    return 1 - observed / by_chance


def _rounded_to_step(score: float, scale: tuple[float, float]) -> int:
    """Return the number of steps from the low end, halves upwards."""
    steps = (score - scale[0]) / step_of(scale)
    # A half may lie a rounding error below itself: 0.35 is 3.4999999999999996 tenths.
    return math.floor(steps + 0.5 + 1e-9)


# ── ranks ─────────────────────────────────────────────────────────────────────────────────────────────────────


def spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the correlation of ranks (-1 to 1), ties with their mean rank; None if all values of a side are equal."""
    ours = [our_score for our_score, _ in pairs]
    theirs = [their_score for _, their_score in pairs]
    if len(set(ours)) < 2 or len(set(theirs)) < 2:
        return None
    correlation = _correlation(_ranks(ours), _ranks(theirs))
    # Rounding may carry a perfect correlation beyond 1.
    return max(-1.0, min(1.0, correlation))


def _correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return Pearson's correlation of unequal values; `statistics` gives another last digit since Python 3.12."""
    x_mean = math.fsum(xs) / len(xs)
    y_mean = math.fsum(ys) / len(ys)
    x_offsets = [x - x_mean for x in xs]
    y_offsets = [y - y_mean for y in ys]
    products = math.fsum(map(mul, x_offsets, y_offsets))
    x_squares = math.fsum(offset**2 for offset in x_offsets)
    y_squares = math.fsum(offset**2 for offset in y_offsets)
    return products / math.sqrt(x_squares * y_squares)


def _ranks(values: Sequence[float]) -> list[float]:
    """Return 1-based ranks; equal values get their mean rank."""
    ranks = [0.0] * len(values)
    before = 0
    ascending = sorted(range(len(values)), key=values.__getitem__)
    for _, group in groupby(ascending, key=values.__getitem__):
        tied = list(group)
        for position in tied:
            ranks[position] = before + (len(tied) + 1) / 2
        before += len(tied)
    return ranks


def auroc(pairs: Sequence[LabelPair], effect_of: Effect = independent) -> Estimate | None:
    """Return the chance that the judge scores a passing answer higher than a failing one, with ties counting half.

    0 to 1, 0.5 for guessing; None without answers of both kinds. The interval is that of DeLong, DeLong and
    Clarke-Pearson 1988 on the logit scale (Qin and Hotilovac 2008); if its variance is 0, as for kinds that do not
    overlap, Newcombe's 2006 (method 5); None with fewer than two of a kind. If answers depend on each other, the
    variance has the design effect of what each adds to the area, as in Obuchowski 1997.
    """
    good = [pair.score for pair in pairs if pair.passes]
    bad = [pair.score for pair in pairs if not pair.passes]
    if not good or not bad:
        return None
    n_good = len(good)
    n_bad = len(bad)
    among_all = _ranks([*good, *bad])
    good_among_all = among_all[:n_good]
    bad_among_all = among_all[n_good:]
    # For each answer, the share of the other kind that it is ranked correctly against: its rank among all counts those
    # below it, its rank among its own kind those of its own kind.
    beaten = [(total - own) / n_bad for total, own in zip(good_among_all, _ranks(good), strict=True)]
    beaten_by = [1 - (total - own) / n_good for total, own in zip(bad_among_all, _ranks(bad), strict=True)]
    area = math.fsum(beaten) / n_good
    # One answer has no variance.
    if n_good < 2 or n_bad < 2:
        return Estimate(area, None)
    by_good = [(share - area) / n_good for share in beaten]
    by_bad = [(share - area) / n_bad for share in beaten_by]
    effect = effect_of(_in_order(pairs, by_good, by_bad))
    if effect is None:
        return Estimate(area, None)
    variance = effect * (_variance(beaten) / n_good + _variance(beaten_by) / n_bad)
    # A variance of 0 would claim certainty, and the logit of 0 or 1 is infinite.
    if variance <= 1e-12 or not 0 < area < 1:
        return Estimate(area, widened(area, _newcombe(area, n_good, n_bad), effect, (0.0, 1.0)))
    centre = math.log(area / (1 - area))
    half = Z * math.sqrt(variance) / (area * (1 - area))
    return Estimate(area, (_logistic(centre - half), _logistic(centre + half)))


def _in_order(pairs: Sequence[LabelPair], good: Iterable[float], bad: Iterable[float]) -> list[float]:
    """Return the values of passing and failing answers in the order of the pairs."""
    of_good = iter(good)
    of_bad = iter(bad)
    return [next(of_good if pair.passes else of_bad) for pair in pairs]


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _logistic(value: float) -> float:
    # The power of a large positive number would overflow.
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    power = math.exp(value)
    return power / (1 + power)


def _newcombe(area: float, n_good: int, n_bad: int) -> Interval:
    """Return the areas that lie Z of their own standard errors from the observed one."""

    def bound(outer: float) -> float:
        inner = area
        # Halved to the last digit of a float.
        for _ in range(60):
            middle = (inner + outer) / 2
            spread = (1 - middle) / (2 - middle) + middle / (1 + middle)
            inflation = 1 + ((n_good + n_bad) / 2 - 1) * spread
            variance = middle * (1 - middle) * inflation / (n_good * n_bad)
            if abs(middle - area) < Z * math.sqrt(variance):
                inner = middle
            else:
                outer = middle
        return outer

    return (bound(0.0), bound(1.0))


def roc(pairs: Sequence[LabelPair]) -> list[tuple[float, float]]:
    """Return the curve from (0, 0) to (1, 1): the shares of passing and of failing answers below rising limits.

    x is 1 - specificity and y recall of *fails*; empty without answers of both kinds.
    """
    n_good = sum(pair.passes for pair in pairs)
    n_bad = len(pairs) - n_good
    if not n_good or not n_bad:
        return []
    points = [(0.0, 0.0)]
    good_below = 0
    bad_below = 0
    ascending = sorted(pairs, key=attrgetter("score"))
    for _, group in groupby(ascending, key=attrgetter("score")):
        for pair in group:
            if pair.passes:
                good_below += 1
            else:
                bad_below += 1
        points.append((good_below / n_good, bad_below / n_bad))
    return _corners(points)


def _corners(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points without those in the middle of a horizontal or vertical line."""
    corners = [points[0]]
    for before, here, after in zip(points, points[1:], points[2:], strict=False):
        is_vertical = before[0] == here[0] == after[0]
        is_horizontal = before[1] == here[1] == after[1]
        if not is_vertical and not is_horizontal:
            corners.append(here)
    corners.append(points[-1])
    return corners
