"""Many tests at once: SciPy's adjusted p, and a level at which intervals agree with it."""

from __future__ import annotations

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.stats.paired_test import adjusted, level_among

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
