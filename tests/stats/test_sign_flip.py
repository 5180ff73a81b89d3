"""p values: SciPy's where it has them, every sign by hand where there are few, near the truth where there are many."""

from __future__ import annotations

import itertools
import math
from random import Random

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.stats import sign_flip
from pytest_rageval.stats.sign_flip import adjusted, binomial_tail, sign_flip_p

RANKS = [0.0, *(1 / rank for rank in range(1, 11))]


def by_enumeration(differences: list[float]) -> float:
    """The definition: every sign of every difference, and which share of the means is as far from 0."""
    seen = abs(math.fsum(differences))
    sums = [
        abs(math.fsum(sign * difference for sign, difference in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    return sum(one >= seen - 1e-12 for one in sums) / len(sums)


def by_scipy(differences: list[float], resamples: float = np.inf) -> float:
    data, random = (np.array(differences),), np.random.default_rng(1)
    found = scipy.stats.permutation_test(data, np.mean, permutation_type="samples", n_resamples=resamples, rng=random)
    return float(found.pvalue)


def some(n: int, values: list[float], seed: int = 0, shift: float = 0.0) -> list[float]:
    """Differences of two runs' scores from the same values; a share of `shift` of them got worse only."""
    random = Random(seed)
    pairs = [(random.choice(values), random.choice(values)) for _ in range(n)]
    return [min(a, b) - max(a, b) if random.random() < shift else a - b for a, b in pairs]


@pytest.mark.parametrize("n", [2, 5, 9, 12])
@pytest.mark.parametrize("values", [[0.0, 1.0], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0], RANKS], ids=["0/1", "fifths", "ranks"])
@pytest.mark.parametrize("shift", [0, 0.7])
def test_few_differences_have_scipys_exact_p(n: int, values: list[float], shift: float):
    differences = some(n, values, seed=n, shift=shift)
    assert sign_flip_p(differences) == pytest.approx(by_scipy(differences), abs=1e-12)


@pytest.mark.parametrize(("gained", "lost"), [(0, 6), (1, 8), (3, 3), (2, 11), (40, 70), (480, 561), (4000, 4200)])
def test_of_a_share_it_is_mcnemars_exact_test(gained: int, lost: int):
    differences = [1.0] * gained + [-1.0] * lost + [0.0] * 50
    theirs = scipy.stats.binomtest(gained, gained + lost).pvalue
    assert sign_flip_p(differences) == pytest.approx(theirs, rel=1e-9)


@given(st.lists(st.sampled_from([-1.0, -2 / 3, -0.5, -1 / 3, 0.0, 0.2, 1 / 3, 0.5, 1.0]), min_size=1, max_size=9))
def test_multiples_of_a_common_step_are_counted_exactly(differences):
    assert sign_flip_p(differences) == pytest.approx(by_enumeration(differences), abs=1e-12)


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=9), st.randoms())
def test_any_differences_have_a_p_that_their_order_does_not_change(differences, random):
    p = sign_flip_p(differences)
    random.shuffle(differences)
    assert sign_flip_p(differences) == p
    assert sign_flip_p([-one for one in differences]) == p
    assert p is not None
    assert 0 < p <= 1


@pytest.mark.parametrize("n", [8, 12])
def test_differences_without_a_common_step_are_counted_nearly_exactly(n: int):
    random = Random(n)
    differences = [random.gauss(-0.2, 0.3) for _ in range(n)]
    assert sign_flip_p(differences) == pytest.approx(by_enumeration(differences), abs=2 / 2**n)


@pytest.mark.parametrize("n", [40, 130, 400])
def test_many_differences_have_scipys_p_within_the_noise_of_resampling(n: int):
    random = Random(n)
    differences = [random.gauss(-0.6 / math.sqrt(n), 0.3) if random.random() < 0.5 else 0.0 for _ in range(n)]
    theirs = by_scipy(differences, 9999)
    assert sign_flip_p(differences) == pytest.approx(theirs, abs=4 * math.sqrt(theirs / 9999) + 0.002)


@pytest.mark.parametrize("n", [100, 200, 400])
@pytest.mark.parametrize("values", [RANKS, [float(n) for n in range(6)]], ids=["ranks", "0 to 5"])
def test_beyond_what_can_be_counted_the_limit_takes_over_without_a_jump(n, values, monkeypatch):
    differences = some(n, values, seed=n, shift=1.2 / math.sqrt(n))
    monkeypatch.setattr(sign_flip, "COUNTED", 1e12)
    exact = sign_flip_p(differences)
    monkeypatch.setattr(sign_flip, "COUNTED", 0)
    assert sign_flip_p(differences) == pytest.approx(exact, rel=0.03)


def test_the_limit_of_mcnemars_test_takes_over_without_a_jump(monkeypatch):
    differences = [1.0] * 4000 + [-1.0] * 4200
    exact = sign_flip_p(differences)
    monkeypatch.setattr(sign_flip, "BINOMIAL", 0)
    monkeypatch.setattr(sign_flip, "COUNTED", 0)
    assert sign_flip_p(differences) == pytest.approx(exact, rel=0.001)


def test_a_few_large_changes_among_many_small_ones_are_not_taken_for_many():
    # Chance gives four of one sign in 2 of 16 runs, and half of those exceed them by their noise; a normal
    # distribution of the same width would say 0.046.
    differences = [-1.0] * 4 + [0.001, -0.001] * 5000
    assert sign_flip_p(differences) == pytest.approx(1 / 16, abs=0.001)


def test_unchanged_cases_say_nothing_and_no_cases_have_no_p():
    assert sign_flip_p([]) is None
    assert sign_flip_p([0.0] * 10) == 1
    assert sign_flip_p([0.0] * 90 + [-1.0] * 6) == sign_flip_p([-1.0] * 6) == 2 / 2**6
    assert sign_flip_p([0.5]) == 1


def test_what_binary_fractions_leave_is_no_difference():
    assert sign_flip_p([0.3 - 0.1 - 0.2] * 8 + [-1.0] * 2) == 0.5


@pytest.mark.parametrize(("n", "k"), [(1, 0), (7, 3), (100, 41), (5000, 2400), (5000, 0)])
def test_tails_of_fair_coins_are_scipys(n: int, k: int):
    assert binomial_tail(n, k) == pytest.approx(scipy.stats.binom.cdf(k, n, 0.5), rel=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_many_tests_are_adjusted_as_scipy_does(p_values):
    found = adjusted({str(number): p for number, p in enumerate(p_values)})
    theirs = scipy.stats.false_discovery_control(p_values)
    assert found == {str(number): pytest.approx(p) for number, p in enumerate(theirs)}
