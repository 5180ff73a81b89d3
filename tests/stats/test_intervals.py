"""Intervals: against SciPy, against figures worked out by hand, and the same every time."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.stats.intervals import FEW, bootstrap, wilson


@pytest.mark.parametrize("n", [1, 2, 10, 135, 100_000])
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.97, 1])
def test_wilson_is_scipys(share, n):
    successes = round(share * n)
    theirs = scipy.stats.binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes / n, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_wilson_by_hand():
    # z = 1.959964, z² = 3.841459: centre (0.5 + 3.841459/20) / (1 + 3.841459/10) = 0.5,
    # half 1.959964 · sqrt(0.25/10 + 3.841459/400) / 1.3841459 = 0.263407
    assert wilson(0.5, 10) == pytest.approx((0.236593, 0.763407), abs=1e-6)
    assert wilson(1, 4) == pytest.approx((4 / (4 + 3.841459), 1), abs=1e-6)


def test_a_share_of_all_or_none_leaves_room_on_one_side_only():
    assert wilson(0, 30)[0] == 0
    assert wilson(1, 30)[1] == 1
    assert 0 < wilson(0, 30)[1] < 0.12


def skewed(n: int, seed: int = 0) -> list[float]:
    """Scores as they come: many at 0, some anywhere."""
    random = Random(seed)
    return [random.random() ** 2 if random.random() < 0.6 else 0.0 for _ in range(n)]


@pytest.mark.parametrize("n", [10, 30, FEW, FEW + 1, 135, 1000])
def test_the_bootstrap_is_scipys_within_the_noise_of_resampling(n):
    values = skewed(n)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    standard_error = float(np.std(values)) / math.sqrt(n)
    # A quantile of a thousand resamples is off by a tenth of the standard error; the limit by much less.
    near = 0.4 if n <= FEW else 0.1
    assert bootstrap(values, "seed") == pytest.approx((theirs.low, theirs.high), abs=near * standard_error)


def test_the_same_seed_gives_the_same_interval_to_the_last_digit():
    values = skewed(40)
    assert bootstrap(values, "seed") == bootstrap(values, "seed")
    assert bootstrap(values, "seed") != bootstrap(values, "another")
    # Python's generator and hashing of seeds are the same on every machine and in every version.
    assert bootstrap([0.1, 0.37, 0.52, 0.98, 0.05, 0.6], "seed") == pytest.approx(
        (0.18979166666666689, 0.6934583333333333), abs=1e-12
    )


def test_one_value_says_nothing_of_others():
    assert bootstrap([], "seed") is None
    assert bootstrap([0.5], "seed") is None


def test_values_that_are_all_equal_have_no_spread():
    assert bootstrap([0.5, 0.5, 0.5], "seed") == (0.5, 0.5)
    assert bootstrap([0.7] * 500, "seed") == (0.7, 0.7)


@given(st.lists(st.floats(0, 5), min_size=2, max_size=3 * FEW))
def test_an_interval_lies_among_the_values(values):
    low, high = bootstrap(values, "seed") or (math.nan, math.nan)
    assert min(values) <= low <= high <= max(values)


def test_values_that_hardly_differ_are_no_error():
    assert bootstrap([1e-200] * FEW + [2e-200], "seed") is not None


def test_intervals_cover_the_true_mean_about_as_often_as_they_say():
    covered = 0
    for trial in range(300):
        random = Random(trial)
        low, high = bootstrap([random.random() for _ in range(50)], str(trial)) or (math.nan, math.nan)
        covered += low <= 0.5 <= high
    assert 0.90 <= covered / 300 <= 0.98
