"""Means and changes over turns of conversations: as many independent observations as there are conversations."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import rounds

from pytest_rageval.model import ConversationScores, RunFacts
from pytest_rageval.runs.conversation_intervals import decay_interval
from pytest_rageval.stats.clusters import cluster_interval, cluster_values, clustered_columns, clustered_test
from pytest_rageval.stats.intervals import mean_interval, mean_of_means_interval
from pytest_rageval.stats.paired_test import paired_test
from pytest_rageval.stats.power import detectable_in_clusters, detectable_share

LEAST_COVERAGE = 0.93
MOST_FALSE_ALARMS = 0.09
"""Of 400 rounds; 0.05 is the level, and its standard error is 0.011."""
CORRELATIONS = (0.0, 0.3, 0.8)


def test_values_of_one_each_stay_as_they_are():
    values = [0.2, 1.0, 0.4]
    assert cluster_values(values, ["a", "b", "c"]) is values


def test_two_conversations_of_one_length_are_two_means():
    assert cluster_values([1, 0, 1, 1], ["a", "a", "b", "b"]) == pytest.approx([0.5, 1.0])


def test_a_long_conversation_moves_the_mean_more():
    values = [1.0, 1.0, 1.0, 0.0]
    long, short = cluster_values(values, ["long", "long", "long", "short"])
    assert long == pytest.approx(0.75 + 0.75 * 2 / 4)
    assert short == pytest.approx(0.75 - 0.75 * 2 / 4)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5)), min_size=1, max_size=40))
def test_the_mean_stays(pairs):
    values = [value for value, _ in pairs]
    of_clusters = cluster_values(values, [cluster for _, cluster in pairs])
    assert np.mean(of_clusters) == pytest.approx(np.mean(values), abs=1e-9)


def test_their_variance_is_that_of_a_ratio_of_sums():
    """Cochran's formula for the mean of unequal clusters, in NumPy."""
    random = Random(3)
    sizes = [random.randint(1, 9) for _ in range(30)]
    of_clusters = [[random.random() for _ in range(size)] for size in sizes]
    values = [value for cluster in of_clusters for value in cluster]
    clusters = np.repeat(range(30), sizes).tolist()
    sums = np.array([sum(cluster) for cluster in of_clusters])
    residuals = sums - np.mean(values) * np.array(sizes)
    theirs = np.sum(residuals**2) / np.mean(sizes) ** 2 / 30
    assert np.var(cluster_values(values, clusters)) == pytest.approx(theirs)


def conversations(random: Random, n: int, correlation: float, share: float) -> tuple[list[float], list[int]]:
    """Turns that pass or fail, of conversations of 2 to 8 turns, some of which are harder than others."""
    values: list[float] = []
    clusters: list[int] = []
    for cluster in range(n):
        chance = share
        if correlation:
            # A share drawn from a beta distribution gives the outcomes 1 / (a + b + 1) as their correlation.
            strength = 1 / correlation - 1
            chance = random.betavariate(share * strength, (1 - share) * strength)
        for _ in range(random.randint(2, 8)):
            values.append(float(random.random() < chance))
            clusters.append(cluster)
    return values, clusters


@pytest.mark.parametrize("n", [8, 40])
@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_intervals_over_conversations_hold_the_mean(correlation: float, n: int):
    random = Random(f"{correlation} {n}")
    samples = rounds(1000, 100)
    held = 0
    for _ in range(samples):
        values, clusters = conversations(random, n, correlation, 0.7)
        low, high = mean_interval(cluster_values(values, clusters), (0, 1)) or (0.0, 0.0)
        held += low <= 0.7 <= high
    assert held / samples >= LEAST_COVERAGE


@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_a_change_by_chance_is_seldom_significant(correlation: float):
    random = Random(f"change {correlation}")
    samples = rounds(2000, 400)
    alarms = 0
    for _ in range(samples):
        before, clusters = conversations(random, 20, correlation, 0.6)
        # Which conversations get better and which get worse is as correlated as their outcomes.
        signs = [random.choice((1, -1)) for _ in range(20)]
        changes = [value * signs[cluster] for value, cluster in zip(before, clusters, strict=True)]
        alarms += paired_test(cluster_values(changes, clusters), 1.0).p <= 0.05
    assert alarms / samples <= MOST_FALSE_ALARMS


def test_turns_taken_as_independent_would_promise_too_much():
    random = Random(1)
    held = 0
    for _ in range(200):
        values, _ = conversations(random, 15, 0.8, 0.7)
        low, high = mean_interval(values, (0, 1)) or (0.0, 0.0)
        held += low <= 0.7 <= high
    assert held / 200 < 0.8


def test_an_interval_of_clusters_stays_on_the_scale():
    values = [1.0] * 40 + [1.0, 0.0, 1.0, 1.0]
    clusters = ["long"] * 40 + ["a", "b", "c", "d"]
    low, high = cluster_interval(values, clusters, (0, 1)) or (2, -1)
    assert 0 <= low < 43 / 44 < high <= 1
    assert cluster_interval(values, ["long"] * 40 + ["a"] * 4, (0, 1)) is None


def test_conversations_without_a_change_are_not_counted_as_changed():
    """Of uneven conversations, each has a value of its own: four that changed are still too few."""
    changes = [-0.5] * 3 + [-0.25] * 4 + [-0.4, -0.3] + [0.0] * 50
    clusters = ["a"] * 3 + ["b"] * 4 + ["c", "d"] + [f"e{number // (1 + number % 4)}" for number in range(50)]
    assert clustered_test(changes, clusters, 1.0).p > 0.05
    assert detectable_in_clusters(changes, clusters, 1.0, are_flips=False) is None
    flips = [-1.0, *[0.0] * 58]
    independent = len(set(clusters))
    assert detectable_in_clusters(flips, clusters, 1.0, are_flips=True) == detectable_share(independent, 1)


def test_a_mean_of_means_counts_conversations():
    values = [1.0] * 20 + [0.0] * 20
    clusters = [number // 5 for number in range(40)]
    gaps = [None if number % 5 == 4 else value for number, value in enumerate(values)]
    columns: dict[str, Sequence[float | None]] = {"recall": values, "mrr": gaps}
    low, high = mean_of_means_interval(columns) or (0, 0)
    low_clustered, high_clustered = mean_of_means_interval(clustered_columns(columns, clusters)) or (0, 0)
    assert high_clustered - low_clustered > 1.5 * (high - low)
    alone = clustered_columns(columns, range(40))
    assert alone == columns


def decayed(random: Random, n: int, correlation: float) -> tuple[ConversationScores, ...]:
    """Conversations whose first turns pass with 0.8, and later ones with 0.5."""
    made: list[ConversationScores] = []
    for _ in range(n):
        shift = random.choice((-correlation, correlation)) * 0.2
        first = float(random.random() < 0.8 + shift)
        later = [float(random.random() < 0.5 + shift) for _ in range(random.randint(1, 7))]
        made.append(ConversationScores(True, {"mrr": [first]}, {"mrr": later}))
    return tuple(made)


@pytest.mark.parametrize("n", [8, 40])
@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_intervals_of_the_decay_hold_it(correlation: float, n: int):
    random = Random(f"decay {correlation} {n}")
    samples = rounds(1000, 100)
    held = 0
    for _ in range(samples):
        facts = RunFacts(n, 0, 0, 0, conversations=decayed(random, n, correlation))
        low, high = decay_interval("mrr", facts, (-1, 1)) or (0.0, 0.0)
        held += low <= -0.3 <= high
    assert held / samples >= LEAST_COVERAGE
