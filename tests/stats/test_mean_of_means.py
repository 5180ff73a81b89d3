"""The interval of a mean of means: that of the cases' means where all have all, and wider where a name has few."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from pytest_rageval.stats.intervals import mean_interval
from pytest_rageval.stats.mean_of_means import mean_of_means_interval


def columns_of(cases: Sequence[Mapping[str, float]]) -> dict[str, list[float | None]]:
    return {name: [case.get(name) for case in cases] for name in sorted({name for case in cases for name in case})}


def test_where_every_case_has_every_name_it_is_the_interval_of_the_cases_means():
    cases = [{"a": number / 10, "b": (number % 3) / 2} for number in range(10)]
    means = [(case["a"] + case["b"]) / 2 for case in cases]
    assert mean_of_means_interval(columns_of(cases)) == pytest.approx(mean_interval(means, (0, 1)))


def test_it_lies_around_the_mean_of_means_within_the_scale():
    cases = [{"a": 1.0} for _ in range(20)] + [{"a": 1.0, "b": float(number % 2)} for number in range(6)]
    interval = mean_of_means_interval(columns_of(cases))
    assert interval is not None
    assert 0 <= interval[0] < (1.0 + 0.5) / 2 < interval[1] <= 1


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
        interval = mean_of_means_interval(columns_of(cases))
        assert interval is not None
        held += interval[0] <= (0.9 + 0.5) / 2 <= interval[1]
    assert held >= 185
