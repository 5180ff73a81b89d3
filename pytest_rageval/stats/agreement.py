"""Agreement of judges and people: the confusion matrix at the gate, kappa over the scale, AUROC and ranks.

*Positive* means: fails the gate. People are taken as right; the judge is evaluated.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

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
        return cls(count[False, False], count[False, True], count[True, False], count[True, True])

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
        return Estimate(value, (max(-1.0, min(value, centre - half)), min(1.0, max(value, centre + half))))


def _share(part: int, total: int) -> float | None:
    return part / total if total else None


def _kappa(cells: Sequence[Sequence[float]]) -> float | None:
    n = math.fsum(map(math.fsum, cells))
    if not n:
        return None
    by_row = [math.fsum(row) / n for row in cells]
    by_column = [math.fsum(column) / n for column in zip(*cells, strict=True)]
    same = math.fsum(cells[at][at] for at in range(len(cells))) / n
    chance = math.fsum(row * column for row, column in zip(by_row, by_column, strict=True))
    return None if chance >= 1 else (same - chance) / (1 - chance)


def kappa_error(cells: Sequence[Sequence[float]]) -> float:
    """Return the standard error of kappa from counts by two raters (rows and columns), both with several values.

    Source: Fleiss, Cohen and Everitt 1969, for large samples.
    """
    n = math.fsum(map(math.fsum, cells))
    share = [[count / n for count in row] for row in cells]
    by_row = [math.fsum(row) for row in share]
    by_column = [math.fsum(column) for column in zip(*share, strict=True)]
    size = range(len(cells))
    chance = math.fsum(by_row[at] * by_column[at] for at in size)
    kappa = (math.fsum(share[at][at] for at in size) - chance) / (1 - chance)
    same = math.fsum(share[at][at] * (1 - (by_row[at] + by_column[at]) * (1 - kappa)) ** 2 for at in size)
    other = math.fsum(share[i][j] * (by_column[i] + by_row[j]) ** 2 for i in size for j in size if i != j)
    variance = same + (1 - kappa) ** 2 * other - (kappa - chance * (1 - kappa)) ** 2
    return math.sqrt(max(0.0, variance) / n) / (1 - chance)


def in_words(kappa: float) -> str:
    """Return the name of a kappa's size. Source: Landis and Koch 1977; the borders are their convention."""
    rounded = round(kappa, 2)  # their classes are written with two digits: 0.61 to 0.80
    if rounded < 0:
        return "poor"
    names = ((0.8, "almost perfect"), (0.6, "substantial"), (0.4, "moderate"), (0.2, "fair"))
    return next((name for above, name in names if rounded > above), "slight")


# ── over the scale ────────────────────────────────────────────────────────────────────────────────────────────


def step_of(scale: tuple[float, float]) -> float:
    """Return the step to which scores are rounded for weighted kappa: 1, or a tenth of a scale shorter than 2."""
    return 1.0 if scale[1] - scale[0] >= 2 else (scale[1] - scale[0]) / 10


def weighted_kappa(
    pairs: Sequence[tuple[float, float]], scale: tuple[float, float], *, squared: bool = False
) -> float | None:
    """Return agreement beyond chance over the steps of a scale, with near misses weighing less than far ones.

    Scores are rounded to `step_of(scale)`, halves upwards. The weight of a difference is its size, or its square. None
    without pairs, or if both have one and the same value throughout. Source: Cohen 1968.
    """
    low, step, power = scale[0], step_of(scale), 2 if squared else 1
    steps = [tuple(math.floor((score - low) / step + 0.5 + 1e-9) for score in pair) for pair in pairs]
    if not steps:
        return None
    ours, theirs = Counter(our_step for our_step, _ in steps), Counter(their_step for _, their_step in steps)
    seen = math.fsum(abs(our_step - their_step) ** power for our_step, their_step in steps) / len(steps)
    by_chance = math.fsum(
        n * m * abs(our_step - their_step) ** power for our_step, n in ours.items() for their_step, m in theirs.items()
    ) / (len(steps) ** 2)
    return None if not by_chance else 1 - seen / by_chance


# ── ranks ─────────────────────────────────────────────────────────────────────────────────────────────────────


def spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the correlation of ranks (-1 to 1), ties with their mean rank; None if all values of a side are equal."""
    ours, theirs = [our_score for our_score, _ in pairs], [their_score for _, their_score in pairs]
    if len(set(ours)) < 2 or len(set(theirs)) < 2:
        return None
    return max(-1.0, min(1.0, _correlation(_ranks(ours), _ranks(theirs))))


def _correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return Pearson's correlation of unequal values; `statistics` gives another last digit since Python 3.12."""
    x_mean, y_mean = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    products = math.fsum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    x_squares, y_squares = math.fsum((x - x_mean) ** 2 for x in xs), math.fsum((y - y_mean) ** 2 for y in ys)
    return products / math.sqrt(x_squares * y_squares)


def _ranks(values: Sequence[float]) -> list[float]:
    """Return 1-based ranks; equal values get their mean rank."""
    ranks = [0.0] * len(values)
    before = 0
    for _, group in groupby(sorted(range(len(values)), key=values.__getitem__), key=values.__getitem__):
        tied = list(group)
        for position in tied:
            ranks[position] = before + (len(tied) + 1) / 2
        before += len(tied)
    return ranks


def auroc(pairs: Sequence[LabelPair]) -> Estimate | None:
    """Return the chance that the judge scores a passing answer higher than a failing one, with ties counting half.

    0 to 1, 0.5 for guessing; None without answers of both kinds. The interval is that of DeLong, DeLong and
    Clarke-Pearson 1988 on the logit scale (Qin and Hotilovac 2008); if its variance is 0, as for kinds that do not
    overlap, Newcombe's 2006 (method 5); None with fewer than two of a kind.
    """
    good = [pair.score for pair in pairs if pair.passes]
    bad = [pair.score for pair in pairs if not pair.passes]
    if not good or not bad:
        return None
    among_all = _ranks([*good, *bad])
    # For each answer, the share of the other kind that it is ranked correctly against.
    beaten = [(total - own) / len(bad) for total, own in zip(among_all, _ranks(good), strict=False)]
    beaten_by = [1 - (total - own) / len(good) for total, own in zip(among_all[len(good) :], _ranks(bad), strict=True)]
    area = math.fsum(beaten) / len(beaten)
    if len(good) < 2 or len(bad) < 2:
        return Estimate(area, None)
    variance = _variance(beaten) / len(good) + _variance(beaten_by) / len(bad)
    if variance <= 1e-12 or not 0 < area < 1:
        return Estimate(area, _newcombe(area, len(good), len(bad)))
    half = Z * math.sqrt(variance) / (area * (1 - area))
    centre = math.log(area / (1 - area))
    return Estimate(area, (_logistic(centre - half), _logistic(centre + half)))


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))


def _newcombe(area: float, n_good: int, n_bad: int) -> Interval:
    """Return the areas that lie Z of their own standard errors from the observed one."""

    def bound(outer: float) -> float:
        inner = area
        for _ in range(60):
            middle = (inner + outer) / 2
            spread = (1 - middle) / (2 - middle) + middle / (1 + middle)
            variance = middle * (1 - middle) * (1 + ((n_good + n_bad) / 2 - 1) * spread) / (n_good * n_bad)
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
    good, bad = sum(pair.passes for pair in pairs), sum(not pair.passes for pair in pairs)
    if not good or not bad:
        return []
    points, x, y = [(0.0, 0.0)], 0, 0
    for _, group in groupby(sorted(pairs, key=lambda pair: pair.score), key=lambda pair: pair.score):
        for pair in group:
            x, y = x + pair.passes, y + (not pair.passes)
        points.append((x / good, y / bad))
    # Leave out points in the middle of a straight line.
    inner = [
        here
        for (before, here), (_, after) in zip(pairwise(points), pairwise(points[1:]), strict=False)
        if not _is_between(before, here, after)
    ]
    return [points[0], *inner, points[-1]]


def _is_between(before: tuple[float, float], here: tuple[float, float], after: tuple[float, float]) -> bool:
    return before[0] == here[0] == after[0] or before[1] == here[1] == after[1]
