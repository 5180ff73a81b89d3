"""The win rate, its interval and its sign test."""

from __future__ import annotations

from math import comb
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import rounds

from pytest_rageval.stats.win_rate import WinRate, win_rate

LEAST_COVERAGE = 0.93
MOST_FALSE_ALARMS = 0.09
"""Of 400 rounds; 0.05 is the level, and its standard error is 0.011."""


def of_singles(*points: float) -> WinRate:
    return win_rate(points, range(len(points)))


def test_ties_count_half():
    assert of_singles(1, 1, 0.5, 0).rate == 0.625


def test_all_ties_are_half_with_an_interval_around_it():
    found = of_singles(*[0.5] * 20)
    assert (found.rate, found.p) == (0.5, 1)
    assert found.interval is not None
    low, high = found.interval
    assert low < 0.5 < high
    assert low == pytest.approx(1 - high)


def test_fewer_than_five_have_no_interval():
    assert of_singles(1, 1, 1, 1).interval is None
    assert win_rate([1] * 8, [1, 1, 2, 2, 3, 3, 4, 4]).interval is None


def test_p_is_that_of_the_sign_test_with_half_of_the_observed_count():
    """9 wins and 2 losses: of 11 coins, 9 or more heads, with 9 counted half, on either side."""
    tail = sum(comb(11, heads) for heads in (10, 11)) + comb(11, 9) / 2
    assert of_singles(*[1] * 9, *[0] * 2).p == pytest.approx(2 * tail / 2**11)
    assert of_singles(*[1] * 9, *[0] * 2, *[0.5] * 30).p == pytest.approx(2 * tail / 2**11), "ties change nothing"


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 12)), min_size=1, max_size=60))
def test_the_interval_excludes_a_half_exactly_if_p_is_significant(cases):
    found = win_rate([point for point, _ in cases], [cluster for _, cluster in cases])
    if found.interval is not None:
        low, high = found.interval
        assert 0 <= low <= found.rate + 1e-9
        assert found.rate - 1e-9 <= high <= 1
        assert (low > 0.5 or high < 0.5) == (found.p <= 0.05)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_intervals_cover_and_false_alarms_are_rare_where_turns_agree(correlation: float):
    """Neither system is better, but the turns of one conversation have the same winner more often than not."""
    random = Random(7)
    alarms = 0
    covered = 0
    times = rounds(4000, 400)
    for _ in range(times):
        points: list[float] = []
        clusters: list[int] = []
        for conversation in range(25):
            favourite = random.choice([0.0, 1.0])
            for _ in range(random.randint(2, 6)):
                point = favourite if random.random() < correlation else random.choice([0.0, 0.5, 1.0])
                points.append(point)
                clusters.append(conversation)
        found = win_rate(points, clusters)
        assert found.interval is not None
        alarms += found.p <= 0.05
        covered += found.interval[0] <= 0.5 <= found.interval[1]
    assert alarms / times <= MOST_FALSE_ALARMS
    assert covered / times >= LEAST_COVERAGE
