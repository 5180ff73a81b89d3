"""Intervals of means, and of means of means: against SciPy, and the same every time."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.stats.intervals import (
    EXACT,
    FEWEST,
    Interval,
    mean_interval,
    mean_of_means_interval,
    share_interval,
    wilson,
)


@pytest.mark.parametrize("n", [1, 2, 10, 135, 100_000])
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.97, 1])
def test_wilson_is_scipys(share, n):
    successes = round(share * n)
    theirs = scipy.stats.binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes / n, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_of_fewer_than_five_cases_nothing_is_shown():
    assert share_interval(0.5, 4) is None
    assert share_interval(0.6, 5) == wilson(0.6, 5)
    assert mean_interval([], (0, 1)) is None
    assert mean_interval([0.1, 0.2, 0.3, 0.4], (0, 1)) is None
    assert mean_interval([0.1, 0.2, 0.3, 0.4, 0.5], (0, 1)) is not None


def interval(values: list[float], scale: tuple[float, float] = (0, 1)) -> Interval:
    limits = mean_interval(values, scale)
    assert limits is not None
    return limits


def skewed(n: int, seed: int = 0) -> list[float]:
    """Scores as they come: many at 0, some anywhere."""
    random = Random(seed)
    return [random.random() ** 2 if random.random() < 0.6 else 0.0 for _ in range(n)]


@pytest.mark.parametrize("n", [5, 9, EXACT, EXACT + 1, 65, 200])
@pytest.mark.parametrize("share", [0, 0.2, 0.5, 0.9, 1])
def test_of_zeros_and_ones_gaffkes_interval_is_clopper_and_pearsons(n: int, share: float):
    ones = round(share * n)
    theirs = scipy.stats.binomtest(ones, n).proportion_ci(method="exact")
    near = 1e-7 if n <= EXACT else 0.004
    assert interval([1.0] * ones + [0.0] * (n - ones)) == pytest.approx((theirs.low, theirs.high), abs=near)


@pytest.mark.parametrize("n", [5, EXACT, EXACT + 1, 65, 200])
def test_limits_are_quantiles_of_the_mean_under_random_weights(n: int):
    values = skewed(n)
    weights = np.random.default_rng(1).dirichlet([1] * (n + 1), 50_000)
    theirs = (np.quantile(weights @ [*values, 0.0], 0.025), np.quantile(weights @ [*values, 1.0], 0.975))
    assert interval(values) == pytest.approx(theirs, abs=0.005)


def test_with_many_values_the_interval_becomes_that_of_students_t():
    values = skewed(5000)
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert interval(values) == pytest.approx((theirs.low, theirs.high), abs=0.03 * (theirs.high - theirs.low))


def test_equal_values_leave_room_for_what_was_not_seen():
    low, high = interval([1.0] * 20)
    assert (low, high) == (pytest.approx(0.025 ** (1 / 20), abs=0.003), 1.0)
    low, high = interval([0.0] * 40, (-1, 1))
    assert low == -high
    assert 0.05 < high < 0.1


# The figures themselves, to the last digit: they are the same on every machine and in every version of Python.
def test_the_same_values_have_the_same_limits_to_the_last_digit():
    assert interval([0.1, 0.37, 0.52, 0.98, 0.05, 0.6]) == (0.16648350521922115, 0.7646686088293791)
    assert interval([number % 7 / 7 for number in range(50)]) == (0.3327091028581749, 0.5123994078961966)


@given(st.lists(st.floats(0, 5), min_size=FEWEST, max_size=60), st.randoms())
def test_limits_lie_on_the_scale_around_the_mean_whatever_the_order(values: list[float], random: Random):
    low, high = interval(values, (0, 5))
    mean = math.fsum(values) / len(values)
    assert 0 <= low <= mean + 1e-6
    assert mean - 1e-6 <= high <= 5
    assert high - low > 0.05
    random.shuffle(values)
    assert interval(values, (0, 5)) == (low, high)


@pytest.mark.parametrize("n", [EXACT, EXACT + 1])
def test_another_unit_is_another_unit_of_the_limits(n: int):
    shares = skewed(n)
    low, high = interval(shares)
    assert interval([5 * value for value in shares], (0, 5)) == pytest.approx((5 * low, 5 * high), abs=1e-6)
    assert interval([1 - value for value in shares]) == pytest.approx((1 - high, 1 - low), abs=1e-6)


def test_a_scale_without_end_ends_as_far_beyond_the_values_as_they_range():
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert mean_interval(values, (0, math.inf)) == mean_interval(values, (0, 11))
    assert mean_interval(values, (-math.inf, math.inf)) == mean_interval(values, (-4, 11))
    assert mean_interval([2.0] * 9, (-math.inf, math.inf)) is None


def test_values_that_hardly_differ_are_no_error():
    assert interval([1e-200] * 64 + [2e-200])[1] < 0.1


def columns_of(cases: Sequence[Mapping[str, float]]) -> dict[str, list[float | None]]:
    return {name: [case.get(name) for case in cases] for name in sorted({name for case in cases for name in case})}


def test_names_that_say_the_same_of_every_case_have_the_interval_of_one():
    values = [number / 10 for number in range(10)]
    expected = mean_interval(values, (0, 1))
    assert mean_of_means_interval({"a": values}) == pytest.approx(expected)
    assert mean_of_means_interval(dict.fromkeys("abc", values)) == pytest.approx(expected)
    found = [1.0] * 20
    assert mean_of_means_interval(dict.fromkeys("abc", found)) == pytest.approx(mean_interval(found, (0, 1)))


def test_names_of_their_own_are_surer_together_than_one_and_less_sure_than_the_means_of_the_cases_by_a_little():
    chance = random.Random(3)
    cases = [{"a": chance.random(), "b": chance.random()} for _ in range(100)]
    low, high = mean_of_means_interval(columns_of(cases)) or (0, 0)
    one = mean_interval([case["a"] for case in cases], (0, 1)) or (0, 0)
    means = mean_interval([(case["a"] + case["b"]) / 2 for case in cases], (0, 1)) or (0, 0)
    assert 0.95 * (means[1] - means[0]) < high - low < 0.9 * (one[1] - one[0])


def test_of_fewer_than_five_cases_or_none_nothing_is_said():
    assert mean_of_means_interval({"a": [1.0] * 4}) is None
    assert mean_of_means_interval({}) is None


def test_it_holds_the_truth_in_most_samples_where_one_name_is_rare():
    chance = random.Random(7)
    held = 0
    for _ in range(200):
        cases = [
            {"a": float(chance.random() < 0.9)} | ({"b": chance.random()} if chance.random() < 0.4 else {})
            for _ in range(30)
        ]
        low, high = mean_of_means_interval(columns_of(cases)) or (1, 0)
        held += low <= (0.9 + 0.5) / 2 <= high
    assert held >= 185
