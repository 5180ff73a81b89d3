"""Detectable changes: against figures of SciPy's distributions, and silent where nothing can be said."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
import scipy.stats

from pytest_rageval.stats import power
from pytest_rageval.stats.power import detectable_mean, detectable_share


def exact_power(n: int, changed: int, drop: float | None) -> float:
    """The power of McNemar's mid-p test at 0.05, by SciPy: the sum over all ways to gain and lose cases."""
    assert drop is not None
    changing = max(changed / n, drop)
    better, worse = (changing - drop) / 2, (changing + drop) / 2
    gained, lost = np.meshgrid(np.arange(n + 1), np.arange(n + 1))
    coins = scipy.stats.binom(gained + lost, 0.5)
    p = 2 * coins.cdf(gained) - coins.pmf(gained)
    seen = (gained + lost <= n) & (gained < lost) & (p <= 0.05)
    outcomes = np.stack([gained[seen], lost[seen], n - gained[seen] - lost[seen]], axis=-1)
    return float(scipy.stats.multinomial(n, [better, worse, 1 - better - worse]).pmf(outcomes).sum())


@pytest.mark.parametrize(
    ("n", "changed", "near"),
    [(6, 0, 0.005), (10, 3, 0.005), (30, 0, 0.005), (30, 12, 0.005), (60, 60, 0.005), (150, 5, 0.005),
     (150, 40, 0.005), (100, 70, 0.02), (150, 61, 0.02), (200, 150, 0.02)],
)  # fmt: skip
def test_a_share_drops_by_what_mcnemars_test_shows_four_times_in_five(n: int, changed: int, near: float):
    """Many changed cases have the limit of the test."""
    assert exact_power(n, changed, detectable_share(n, changed)) == pytest.approx(0.8, abs=near)


def test_the_limit_takes_over_without_a_jump():
    exact = detectable_share(5000, power.COUNTED)
    assert detectable_share(5000, power.COUNTED + 1) == pytest.approx(exact, rel=0.03)


def test_of_cases_that_never_changed_seven_in_n_must():
    # 0.8 = P(five or more), of a Poisson distribution of mean 6.7
    assert detectable_share(100_000, 0) == pytest.approx(6.721 / 100_000, abs=1e-7)


def test_fewer_than_five_changed_cases_can_show_nothing():
    assert detectable_share(4, 2) is None
    assert detectable_mean([-0.1, 0.2, 0.3, -0.1, 0.0, 0.0, 0.0], widest=1) is None
    assert detectable_mean([-0.1, 0.2, 0.3, -0.1, 0.2, 0.0, 0.0], widest=1) is not None


def some(n: int) -> list[float]:
    random = Random(n)
    return [random.gauss(0, 0.1) for _ in range(n)]


@pytest.mark.parametrize("n", [10, 30, 1000])
def test_a_mean_moves_by_what_a_paired_t_test_shows_four_times_in_five(n: int):
    differences = some(n)
    deviation, freedom = float(np.std(differences, ddof=1)), n - 1
    found = detectable_mean(differences, widest=1)
    assert found is not None
    needed = scipy.stats.t.ppf(0.975, freedom)
    shown = scipy.stats.nct.sf(needed, freedom, found / deviation * math.sqrt(n))
    assert shown == pytest.approx(0.8, abs=0.02)


def test_where_all_cases_moved_alike_or_not_at_all_nothing_can_be_said():
    assert detectable_mean([0.0] * 50, widest=1) is None
    assert detectable_mean([-0.25] * 50, widest=1) is None


def test_a_change_wider_than_the_scale_is_none():
    differences = [1.0, -1.0, 1.0, -1.0, 0.9, -0.9]
    assert detectable_mean(differences, widest=1) is None
    assert (detectable_mean(differences, widest=5) or 0) > 1
