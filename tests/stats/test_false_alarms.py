"""What significance is worth: runs without a change are seldom called worse, runs with a detectable one mostly are."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest
from processes import rounds

from pytest_rageval.comparison.changes import Change, Pairs, paired_change, with_adjusted_p
from pytest_rageval.stats.paired_test import LEVEL

PAIRS = rounds(2000, 400)
Score = Callable[[Random, float], tuple[float, float]]
"""A case before and after, where the mean drops by so much."""


def share(random: Random, drop: float) -> tuple[float, float]:
    """Found or not; a fifth of the cases flip, one way or the other, unless the drop takes more."""
    flip, changing = random.random(), max(0.2, drop)
    if flip < (changing + drop) / 2:
        return 1.0, 0.0
    if flip < changing:
        return 0.0, 1.0
    return (1.0, 1.0) if random.random() < 0.8 else (0.0, 0.0)


def fifths(random: Random, drop: float) -> tuple[float, float]:
    """Precision of five chunks: a third of the cases change, by a chunk or two."""
    before = random.choice((0.4, 0.6))
    return before, before + (random.choice((-0.4, -0.2, 0.2, 0.4)) if random.random() < 1 / 3 else 0.0)


def graded(random: Random, drop: float) -> tuple[float, float]:
    """Anything, and every case changes a little."""
    before = random.uniform(0.4, 0.6)
    return before, before - drop + random.uniform(-0.2, 0.2)


def changes(score: Score, n: int, drop: float, pairs: int) -> list[Change]:
    """What is found in so many pairs of runs of n cases."""
    found = []
    for seed in range(pairs):
        random = Random(f"{score.__name__} {n} {drop} {seed}")
        befores, afters = zip(*(score(random, drop) for _ in range(n)), strict=True)
        found.append(with_adjusted_p({"m": paired_change(Pairs(befores, afters, ()), (0, 1))})["m"])
    return found


def is_regressed(change: Change) -> bool:
    """Would a gate fail that asks for significance and tolerates nothing?"""
    return change.is_significant and (change.delta or 0) < 0


def error_of(rate: float, pairs: int) -> float:
    """Three standard errors."""
    return 3 * math.sqrt(rate * (1 - rate) / pairs)


@pytest.mark.parametrize(("score", "n"), [(share, 20), (share, 300), (fifths, 30), (graded, 10), (graded, 200)])
def test_without_a_change_a_metric_is_called_worse_no_more_often_than_its_level(score: Score, n: int):
    found = changes(score, n, 0.0, PAIRS)
    assert sum(map(is_regressed, found)) <= LEVEL * PAIRS
    assert sum(change.is_significant for change in found) / PAIRS <= LEVEL + error_of(LEVEL, PAIRS)


@pytest.mark.parametrize(("score", "n"), [(share, 30), (share, 300), (graded, 20), (graded, 200)])
def test_a_drop_of_the_size_said_to_be_detectable_is_called_worse_four_times_in_five(score: Score, n: int):
    pairs = rounds(400, 100)
    said = [change.detectable or math.nan for change in changes(score, n, 0.0, rounds(100, 30))]
    drop = math.fsum(said) / len(said)
    regressed = sum(map(is_regressed, changes(score, n, drop, pairs)))
    assert regressed / pairs == pytest.approx(0.8, abs=error_of(0.8, pairs))


def test_of_twenty_metrics_that_did_not_change_seldom_even_one_is_called_significant():
    runs = rounds(300, 60)
    found = changes(share, 100, 0.0, 20 * runs)
    families = [found[start : start + 20] for start in range(0, 20 * runs, 20)]
    together = [with_adjusted_p({str(number): one for number, one in enumerate(family)}) for family in families]
    alarmed = sum(any(change.is_significant for change in family.values()) for family in together)
    assert alarmed / runs <= LEVEL + error_of(LEVEL, runs)
