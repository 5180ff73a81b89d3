"""The best limit for a gate, chosen by cross-validation and compared with the present one on held-out answers."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple

from pytest_rageval.stats.agreement import Confusion, LabelPair
from pytest_rageval.stats.intervals import Interval
from pytest_rageval.stats.pass_rate import IntervalPart, paired_difference

Aim = Literal["youden", "agreement"]
FEWEST = 20
"""The fewest passing and failing answers for a suggestion: with fewer, a single one shifts the limit too far."""
FOLDS = 10
"""Limits are chosen on nine tenths of the answers and judged on the tenth left out."""
STEPS = 100


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit that scores must reach, chosen for one aim.

    value     the aim on the answers that it was chosen on, and therefore optimistic
    held_out  the aim of limits chosen on nine tenths of the answers, on the tenth left out
    present   the aim of the present limit
    gain      held_out - present, and its 95 % interval
    chosen    the lowest and the highest of the limits chosen on nine tenths
    """

    aim: Aim
    limit: float
    value: float
    held_out: float
    present: float
    gain: float
    gain_interval: Interval
    chosen: Interval
    is_present: bool

    @property
    def is_clearly_better(self) -> bool:
        """Return True if even the lower end of the interval is better than the present limit."""
        return self.gain_interval[0] > 0


def best_threshold(
    pairs: Sequence[LabelPair],
    scale: Interval,
    holds: Callable[[float], bool],
    present: float,
    aim: Aim,
    effect: float = 1.0,
) -> Threshold | str:
    """Return the best limit for `score >= limit`, or a line that says why there is none.

    pairs    people's labels and the judge's scores
    scale    of the scores: limits are tried in steps of a hundredth of it
    holds    the present gate, `present` its limit; of equally good limits the nearest is chosen
    aim      'youden': recall + specificity - 1, which does not depend on how many answers fail (Youden 1950);
             'agreement': the share of answers decided correctly
    effect   the design effect on right decisions, if answers depend on each other; folds are of single answers

    Limits that fail or pass all answers are skipped. Held-out figures come from ten-fold cross-validation with folds
    drawn by a fixed seed, each with its share of passing and of failing answers. The gain's interval comes from
    paired differences (Bonett and Price 2012), as if folds were independent.
    """
    n_good = sum(pair.passes for pair in pairs)
    n_bad = len(pairs) - n_good
    if min(n_good, n_bad) < FEWEST:
        return f"too few labels: {n_good} pass and {n_bad} fail, at least {FEWEST} of each are needed"
    best = _best(pairs, scale, present, aim)
    if best is None:
        return "the judge gives all answers much the same score"
    decided: list[tuple[LabelPair, bool]] = []
    limits: list[float] = []
    for chosen_on, left_out in _folds(pairs):
        choice = _best(chosen_on, scale, present, aim)
        limit = present if choice is None else choice.limit
        limits.append(limit)
        decided += [(pair, pair.score >= limit) for pair in left_out]
    with_choices = Confusion.of((judge, pair.passes) for pair, judge in decided)
    with_present = Confusion.of((holds(pair.score), pair.passes) for pair in pairs)
    held_out = _reached(with_choices, aim)
    reached_now = _reached(with_present, aim)
    return Threshold(
        aim=aim,
        limit=best.limit,
        value=best.value,
        held_out=held_out,
        present=reached_now,
        gain=held_out - reached_now,
        gain_interval=_gain_interval(decided, holds, aim, effect),
        chosen=(min(limits), max(limits)),
        is_present=best.limit == present,
    )


def _reached(confusion: Confusion, aim: Aim) -> float:
    if aim == "youden":
        assert confusion.youden is not None  # there are answers of both kinds
        return confusion.youden
    return (confusion.tp + confusion.tn) / confusion.n


class _Choice(NamedTuple):
    limit: float
    value: float


def _best(pairs: Sequence[LabelPair], scale: Interval, present: float, aim: Aim) -> _Choice | None:
    """Return the best limit, the one nearest to the present among equals; None if no limit divides the answers.

    Among limits with the same division it is the present one, else the middle one, the furthest from either score.
    """
    good = sorted(pair.score for pair in pairs if pair.passes)
    bad = sorted(pair.score for pair in pairs if not pair.passes)

    def failing_below(limit: float) -> tuple[int, int]:
        return bisect_left(good, limit), bisect_left(bad, limit)

    best: _Choice | None = None
    best_rank: tuple[float, float] | None = None
    for (false_alarms, caught), group in groupby(_limits(scale), key=failing_below):
        if not 0 < false_alarms + caught < len(pairs):
            continue
        alike = list(group)
        limit = alike[(len(alike) - 1) // 2]
        if alike[0] <= present <= alike[-1]:
            limit = present
        confusion = Confusion(
            tp=caught,
            fp=false_alarms,
            fn=len(bad) - caught,
            tn=len(good) - false_alarms,
        )
        value = _reached(confusion, aim)
        # Rounded: of values that differ by a rounding error only, the limit nearest to the present one is best.
        rank = (round(value, 12), -abs(limit - present))
        if best_rank is None or rank > best_rank:
            best = _Choice(limit, value)
            best_rank = rank
    return best


def _limits(scale: Interval) -> Iterator[float]:
    low, high = scale
    for step in range(1, STEPS + 1):
        # Rounded, so that a limit is shown, and compared with the present one, as 0.7 and not 0.7000000000000001.
        yield round(low + (high - low) * step / STEPS, 9)


def _folds(pairs: Sequence[LabelPair]) -> Iterator[tuple[list[LabelPair], list[LabelPair]]]:
    """Yield ten times nine tenths of the pairs and the tenth left out."""
    generator = random.Random(FOLDS)  # noqa: S311 because the same folds are wanted again, not secret ones
    fold_of: dict[int, int] = {}
    for kind in (True, False):
        places = [place for place, pair in enumerate(pairs) if pair.passes is kind]
        # Each kind apart, so that every fold has its share of the rare one.
        generator.shuffle(places)
        fold_of |= {place: number % FOLDS for number, place in enumerate(places)}
    for fold in range(FOLDS):
        chosen_on: list[LabelPair] = []
        left_out: list[LabelPair] = []
        for place, pair in enumerate(pairs):
            if fold_of[place] == fold:
                left_out.append(pair)
            else:
                chosen_on.append(pair)
        yield chosen_on, left_out


def _gain_interval(
    decided: Sequence[tuple[LabelPair, bool]], holds: Callable[[float], bool], aim: Aim, effect: float
) -> Interval:
    """Return the interval over all answers; for Youden's J the sum of those over each kind."""
    if aim == "agreement":
        return _gain(decided, holds).times(effect).interval()
    good = [(pair, judge) for pair, judge in decided if pair.passes]
    bad = [(pair, judge) for pair, judge in decided if not pair.passes]
    return _gain(good, holds).plus(_gain(bad, holds)).times(effect).interval()


def _gain(decided: Sequence[tuple[LabelPair, bool]], holds: Callable[[float], bool]) -> IntervalPart:
    """Return the gain in right decisions over the present gate."""
    mended = 0
    spoilt = 0
    for pair, judge in decided:
        is_right = judge == pair.passes
        was_right = holds(pair.score) == pair.passes
        if is_right and not was_right:
            mended += 1
        if was_right and not is_right:
            spoilt += 1
    return paired_difference(mended, spoilt, len(decided))
