"""What intervals and p values of a comparison are worth: a little of the simulation always, all of it under torture."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import paired_tests
from paired_tests import CHOSEN_ON, HELD_BACK, IMPOSSIBLE, KINDS, MEANS, SAMPLES, SIZES, coverage_of_means, simulated

COMPARE_PAGE = Path(__file__).parents[2] / "docs" / "compare.md"
BOUNDED = [*CHOSEN_ON, *HELD_BACK]
HOLDS = (0.93, 0.985)  # where few cases flip, more than 97 % hold: p of so few cases take few values
WIDEST = 1.2
MOST_ALARMS = 0.07
FEW = 400
NOISE = 0.025  # two standard errors of a share of 400


@pytest.mark.parametrize("name", BOUNDED)
def test_a_few_hundred_samples_of_20_hold_what_the_page_says(name: str):
    tally = simulated(name, 20, FEW)
    assert tally.coverage >= HOLDS[0] - NOISE
    assert tally.width_ratio <= WIDEST + 0.1
    assert tally.regressed / FEW <= MOST_ALARMS + NOISE
    assert tally.disagreed == 0


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_no_test_can_know_is_no_contradiction_either(name: str):
    assert simulated(name, 20, FEW).disagreed == 0


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("n", [20, 65])
def test_the_interval_of_a_mean_of_means_holds_it_where_a_metric_is_rare(name: str, n: int):
    assert coverage_of_means(name, n, 200) >= 0.93


@pytest.mark.torture
@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("n", [20, 65, 200])
def test_intervals_hold_and_are_no_wider_than_needed(name: str, n: int):
    tally = simulated(name, n, SAMPLES)
    assert HOLDS[0] - 0.005 <= tally.coverage <= HOLDS[1]
    assert tally.width_ratio <= WIDEST or (tally.width_ratio <= 1.3 and name.startswith("0 or 1: rare"))
    assert max(tally.regressed, tally.false_alarms) / SAMPLES <= MOST_ALARMS
    assert tally.found >= 0.8 * tally.found_by_t


@pytest.mark.torture
def test_the_tables_are_those_of_the_page():
    page = COMPARE_PAGE.read_text(encoding="utf-8")
    assert len(KINDS) * len(SIZES) > 100
    for table in paired_tests.tables(SAMPLES):
        assert table in page, table
