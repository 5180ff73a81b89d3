"""Student's t: tails and quantiles near SciPy's, and each the inverse of the other."""

from __future__ import annotations

import pytest
import scipy.stats

from pytest_rageval.stats.paired_test import normal_quantile, student_quantile, student_tail

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
