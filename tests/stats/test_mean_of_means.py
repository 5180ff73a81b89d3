"""The interval of a mean of means: that of the cases' means where all have all, and wider where a name has few."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from pytest_rageval.stats.intervals import mean_interval, mean_of_means_interval


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
