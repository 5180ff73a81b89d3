"""The test of a change and its interval: they agree at every level, and have SciPy's p where SciPy has the test."""

from __future__ import annotations

import itertools
import math
from random import Random

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.stats import paired_test as module
from pytest_rageval.stats.paired_test import (
    FlipTest,
    GradedTest,
    PairedTest,
    adjusted,
    level_among,
    normal_quantile,
    paired_test,
    student_quantile,
    student_tail,
)

LEVELS = (0.2, 0.1, 0.05, 0.01, 0.002)
STEPS = [-1.0, -2 / 3, -0.5, -1 / 3, 0.0, 0.2, 1 / 3, 0.5, 1.0]


def flips(rises: int, falls: int, unchanged: int, size: float = 1.0) -> list[float]:
    return [size] * rises + [-size] * falls + [0.0] * unchanged


def some(n: int, seed: int = 0, shift: float = 0.0) -> list[float]:
    """Skewed differences, each of its own size."""
    random = Random(f"{n} {seed}")
    return [random.expovariate(5) - 0.2 + shift for _ in range(n)]


def assert_agreement(test: PairedTest) -> None:
    for level in LEVELS:
        low, high = test.interval(level) or (math.nan, math.nan)
        assert (test.p <= level) == (not low <= 0 <= high), (test, level, test.p, low, high)


@given(st.lists(st.floats(-1, 1, width=32), min_size=5, max_size=40))
def test_an_interval_excludes_0_exactly_if_p_is_at_most_its_level(differences: list[float]):
    assert_agreement(paired_test(differences, 1))


@given(st.lists(st.sampled_from(STEPS), min_size=5, max_size=40))
def test_that_holds_for_steps_and_ties_too(differences: list[float]):
    assert_agreement(paired_test(differences, 1))


def test_that_holds_for_every_number_of_cases_that_flip():
    for rises, falls, unchanged in itertools.product(range(20), range(20), (0, 3, 30, 3000)):
        if rises + falls + unchanged >= 5:
            assert_agreement(paired_test(flips(rises, falls, unchanged), 1))


@pytest.mark.parametrize("n", [5, 9, 20, 200])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("side", [1, -1])
def test_a_limit_is_the_mean_that_the_test_would_just_not_reject(n: int, seed: int, side: module.Side):
    differences = some(n, seed)
    limit = paired_test(differences, 9).limit(side, 0.025)
    shifted = paired_test([each - limit for each in differences], 9)
    assert shifted.p_towards(side) == pytest.approx(max(0.025, 0.5 ** (n + 1)), rel=1e-6)


@pytest.mark.parametrize(("gained", "lost"), [(0, 5), (1, 8), (3, 3), (2, 11), (40, 70), (480, 561), (4000, 4200)])
def test_changes_of_one_size_have_mcnemars_mid_p(gained: int, lost: int):
    coins = scipy.stats.binom(gained + lost, 0.5)
    theirs = min(1, 2 * (coins.cdf(gained) - coins.pmf(gained) / 2))
    for size in (1.0, 0.2):
        test = paired_test(flips(gained, lost, 50, size), 1)
        assert isinstance(test, FlipTest)
        assert test.p == pytest.approx(theirs, rel=1e-9)
    assert paired_test(flips(lost, gained, 50), 1).p == test.p


def test_beyond_what_is_counted_the_limit_takes_over_without_a_jump(monkeypatch):
    exact = paired_test(flips(4000, 4200, 0), 1).p
    monkeypatch.setattr(module, "BINOMIAL", 0)
    assert paired_test(flips(4000, 4200, 0), 1).p == pytest.approx(exact, rel=0.001)


def test_the_interval_of_flips_is_bonett_and_prices():
    # 3 rises and 8 falls of 40: (3 − 8) / 42 ± 1.96 · √((13/42 − (5/42)²) / 42)
    centre, error = -5 / 42, math.sqrt((13 / 42 - (5 / 42) ** 2) / 42)
    expected = (centre - 1.959964 * error, centre + 1.959964 * error)
    assert paired_test(flips(3, 8, 29), 1).interval() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [10, 30, 200])
def test_symmetric_differences_have_the_p_and_interval_of_students_t(n: int):
    half = some(n // 2, 1)
    differences = [0.08 + each for each in half] + [0.08 - each for each in half]
    test, theirs = paired_test(differences, 9), scipy.stats.ttest_1samp(differences, 0)
    assert test.p == pytest.approx(theirs.pvalue, abs=0.002)
    bounds = theirs.confidence_interval(0.95)
    assert test.interval() == pytest.approx((bounds.low, bounds.high), rel=0.003)


@pytest.mark.parametrize("seed", range(5))
def test_skewed_differences_have_halls_p(seed: int):
    differences = some(65, seed, shift=0.04)
    n, skewness = len(differences), float(scipy.stats.skew(differences, bias=False)) * (1 + 8 / 65)
    ratio = float(np.mean(differences) / np.std(differences))
    bent = ratio + skewness * ratio**2 / 3 + skewness**2 * ratio**3 / 27 + skewness / (6 * n)
    halls = scipy.stats.t.sf([-bent * math.sqrt(n - 1), -ratio * math.sqrt(n - 1)], n - 1)
    assert skewness < 0.3 * math.sqrt(n)
    assert paired_test(differences, 9).p_towards(-1) == pytest.approx(max(halls), abs=0.001)


def test_many_small_losses_that_a_large_gain_nearly_makes_up_for_are_less_sure_than_by_students_t():
    differences = [-0.1, -0.12] * 9 + [0.3, 0.4]
    test, mirrored = paired_test(differences, 1), paired_test([-each for each in differences], 1)
    assert test.p > 1.5 * scipy.stats.ttest_1samp(differences, 0).pvalue
    assert mirrored.p == test.p
    low, high = test.interval() or (0, 0)
    assert mirrored.interval() == pytest.approx((-high, -low))


def test_one_outlier_does_not_decide_how_wide_an_interval_is():
    low, high = paired_test([0.01 * number for number in range(-10, 9)] + [9.0], 9).interval() or (0, 0)
    bounds = scipy.stats.ttest_1samp([0.01 * number for number in range(-10, 9)] + [9.0], 0).confidence_interval()
    assert high - low < 1.25 * (bounds.high - bounds.low)


def test_fewer_than_five_changed_cases_show_nothing():
    assert paired_test([-1.0] * 4 + [0.0] * 96, 1).p == 2 / 2**5
    nearly_alike = paired_test([-1.0, -0.99, -0.98, -0.97] + [0.0] * 96, 1)
    assert isinstance(nearly_alike, GradedTest)
    assert nearly_alike.p == 2 / 2**5
    assert (nearly_alike.interval() or (1, 1))[1] == 0
    assert paired_test([-1.0] * 5 + [0.0] * 95, 1).p == 2 / 2**6


def test_unchanged_cases_say_nothing_and_yet_leave_room():
    test = paired_test([0.0] * 20, 5)
    low, high = test.interval() or (0, 0)
    assert test.p == 1
    assert low == -high
    assert 0.4 < high < 0.8


def test_of_fewer_than_five_cases_there_is_no_interval_and_no_significance():
    assert paired_test([-1.0] * 4, 1).interval() is None
    assert paired_test([-1.0] * 4, 1).p > 0.05
    assert paired_test([-1.0, -0.9, -1.0, -0.8], 1).p > 0.05
    assert paired_test([-1.0] * 5, 1).interval() is not None


def test_what_binary_fractions_leave_is_no_difference_of_size():
    assert isinstance(paired_test([0.6 - 0.4, 0.4 - 0.2, 0.0, 0.8 - 1.0, 0.2], 1), FlipTest)


@given(st.lists(st.floats(-1, 1, width=32), min_size=5, max_size=30), st.randoms())
def test_limits_lie_on_the_scale_around_the_mean_whatever_the_order(differences: list[float], random: Random):
    test = paired_test(differences, 1)
    low, high = test.interval() or (0, 0)
    mean = math.fsum(differences) / len(differences)
    assert -1 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 1
    assert low < high
    random.shuffle(differences)
    shuffled = paired_test(differences, 1)
    assert (shuffled.p, shuffled.interval()) == (test.p, test.interval())


# The figures themselves, to the last digit: they are the same on every machine and in every version of Python.
def test_the_same_differences_have_the_same_figures_to_the_last_digit():
    graded = paired_test([0.1, -0.37, -0.52, 0.0, -0.05, -0.6, 0.02, -0.3], 1)
    flipped = paired_test(flips(1, 7, 12), 1)
    assert (graded.p, graded.interval()) == GRADED
    assert (flipped.p, flipped.interval()) == FLIPPED


GRADED = (0.05725840098998337, (-0.5066092348270017, 0.008741435306864609))
FLIPPED = (0.0390625, (-0.5303730217470246, -0.01508152370752086))


P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(P_VALUES)
def test_many_tests_are_adjusted_as_scipy_does(p_values: list[float]):
    found = adjusted({str(number): p for number, p in enumerate(p_values)})
    theirs = scipy.stats.false_discovery_control(p_values)
    assert found == {str(number): pytest.approx(p) for number, p in enumerate(theirs)}


@given(st.lists(st.sampled_from([1e-9, 0.0002, 0.001, 0.004, 0.011, 0.03, 0.04, 0.2, 0.9]), min_size=1, max_size=20))
def test_a_p_is_at_most_the_level_among_them_exactly_if_it_is_significant_adjusted(p_values: list[float]):
    by_name = {str(number): p for number, p in enumerate(p_values)}
    found = adjusted(by_name)
    level = level_among(found)
    assert {name for name, p in by_name.items() if p <= level} == {name for name, p in found.items() if p <= 0.05}


def test_a_single_test_keeps_its_level():
    assert level_among({"mrr": 0.01}) == level_among({"mrr": 0.7}) == level_among({}) == 0.05
    assert level_among({"mrr": 0.02, "ndcg": 0.7}) == 0.025


FREEDOMS = [4, 9, 19, 200]


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("t", [-1.0, 0.0, 0.5, 1.7, 2.1, 4.0])
def test_tails_are_scipys(t: float, freedom: int):
    assert student_tail(t, freedom) == pytest.approx(scipy.stats.t.sf(t, freedom), abs=0.002)


@pytest.mark.parametrize("freedom", [5, 9, 99])
@pytest.mark.parametrize("q", [0.8, 0.975])
def test_quantiles_are_scipys(freedom: int, q: float):
    found = student_quantile(scipy.stats.norm.ppf(q), freedom)
    assert found == pytest.approx(scipy.stats.t.ppf(q, freedom), rel=0.005)


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("tail", [0.4, 0.05, 0.025, 0.0005])
def test_a_quantile_has_its_tail_beyond_it(freedom: int, tail: float):
    z = normal_quantile(tail)
    assert z == pytest.approx(scipy.stats.norm.isf(tail))
    assert student_tail(student_quantile(z, freedom), freedom) == pytest.approx(tail, rel=1e-9)
    assert student_tail(student_quantile(-z, freedom), freedom) == pytest.approx(1 - tail, rel=1e-9)
