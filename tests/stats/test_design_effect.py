"""Intervals over answers that depend on each other: the design effect against the true value, by simulation."""

from __future__ import annotations

import math
import random
from functools import partial
from statistics import NormalDist

import pytest

from pytest_rageval.stats.agreement import Confusion, LabelPair, auroc
from pytest_rageval.stats.clusters import cluster_interval
from pytest_rageval.stats.design_effect import design_effect, kappa_influences, widened
from pytest_rageval.stats.intervals import wilson

ROUNDS = 300
CONVERSATIONS = 20
TURNS = 6


def draw(draws: random.Random) -> tuple[list[LabelPair], list[int]]:
    """Answers of conversations of one to eleven turns: what is right in one turn is mostly right in the others."""
    pairs: list[LabelPair] = []
    units: list[int] = []
    for conversation in range(CONVERSATIONS):
        shared = draws.gauss(0, 1)
        for _ in range(draws.randint(1, 2 * TURNS - 1)):
            quality = 0.8 * shared + 0.6 * draws.gauss(0, 1)
            pairs.append(LabelPair(quality > 0, quality + draws.gauss(0, 1)))
            units.append(conversation)
    return pairs, units


TRUE_AGREEMENT = 0.75
"""P(X > 0 and X + E > 0 or neither) of two normals with a correlation of 1/sqrt 2: 1/2 + asin(r)/pi."""


def test_the_true_values_lie_in_95_of_100_intervals():
    draws = random.Random(3)
    reference = [draws.gauss(0, 1) for _ in range(4000)]
    scores = [LabelPair(quality > 0, quality + draws.gauss(0, 1)) for quality in reference]
    area = auroc(scores)
    assert area is not None
    held = {"agreement": 0, "kappa": 0, "auroc": 0, "as if alone": 0}
    for _ in range(ROUNDS):
        pairs, units = draw(draws)
        decided = [(pair.score > 0, pair.passes) for pair in pairs]
        values = [float(judge == people) for judge, people in decided]
        mean = math.fsum(values) / len(values)
        effect = design_effect(values, units)
        assert effect is not None
        low, high = wilson(mean, len(values) / effect)
        held["agreement"] += low <= TRUE_AGREEMENT <= high
        kappa = Confusion.of(decided).kappa
        assert kappa is not None
        interval = widened(kappa.value, kappa.interval, design_effect(kappa_influences(decided), units), (-1, 1))
        assert interval is not None
        held["kappa"] += interval[0] <= 2 * TRUE_AGREEMENT - 1 <= interval[1]
        clustered = auroc(pairs, partial(design_effect, clusters=units))
        alone = auroc(pairs)
        assert clustered is not None
        assert clustered.interval is not None
        assert alone is not None
        assert alone.interval is not None
        held["auroc"] += clustered.interval[0] <= area.value <= clustered.interval[1]
        held["as if alone"] += alone.interval[0] <= area.value <= alone.interval[1]
    shares = {name: count / ROUNDS for name, count in held.items()}
    assert all(0.92 <= shares[name] <= 1 for name in ("agreement", "kappa", "auroc")), shares
    assert shares["as if alone"] < 0.92, "the simulation would not notice intervals that are too narrow"


def test_the_effect_is_that_of_the_interval_for_clustered_means():
    draws = random.Random(5)
    units = [number // 5 for number in range(400)]
    values = [min(1.0, max(0.0, 0.5 + 0.3 * math.sin(unit) + draws.gauss(0, 0.05))) for unit in units]
    effect = design_effect(values, units)
    clustered = cluster_interval(values, units, (0, 1))
    assert effect is not None
    assert clustered is not None
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    half = NormalDist().inv_cdf(0.975) * spread * math.sqrt(effect / len(values))
    assert 2 * half == pytest.approx(clustered[1] - clustered[0], rel=0.15)


@pytest.mark.parametrize(
    ("values", "units", "effect"),
    [
        ([1, 0, 1, 1, 0], [1, 2, 3, 4, 5], 1),
        ([1] * 8, [1, 1, 2, 2, 3, 3, 4, 4], None),
        ([], [], 1),
        ([1, 0] * 50, [number // 2 for number in range(100)], 1),
    ],
)
def test_the_ends(values: list[float], units: list[int], effect: float | None):
    found = design_effect(values, units)
    assert found == effect if effect is None else found == pytest.approx(effect)


def test_equal_values_count_once_a_cluster():
    effect = design_effect([1.0] * 60, [number // 6 for number in range(60)])
    assert effect is not None
    assert 60 / effect < 10
