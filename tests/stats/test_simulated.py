"""Simulations of intervals, tests and p values: a little always, all of it and its tables under torture."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import pytest

from pytest_rageval.stats.intervals import mean_interval

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import paired_tests
from paired_tests import CHOSEN_ON, HELD_BACK, IMPOSSIBLE, KINDS, MEANS, coverage_of_means, simulated

APPENDIX = Path(__file__).parents[2] / "docs" / "appendix.md"
SIZES = (5, 20, 65, 200)
SAMPLES = 4000
LEAST = 0.93

Scale = tuple[float, float]
Draw = Callable[[Random], float]


def high_grades(random: Random) -> float:
    return random.choices((0, 1, 2, 3, 4, 5), (1, 1, 1, 2, 10, 30))[0]


DATA: dict[str, tuple[Draw, float, Scale]] = {
    "uniform": (Random.random, 1 / 2, (0, 1)),
    "skewed: u⁴ of uniform u": (lambda random: random.random() ** 4, 1 / 5, (0, 1)),
    "skewed: beta(5, ½)": (lambda random: random.betavariate(5, 0.5), 10 / 11, (0, 1)),
    "mostly 1: 9 of 10, else uniform": (lambda r: 1.0 if r.random() < 0.9 else r.random(), 0.95, (0, 1)),
    "mostly 1: 99 of 100, else 0": (lambda r: float(r.random() < 0.99), 0.99, (0, 1)),
    "0–5: all alike": (lambda random: random.randint(0, 5), 2.5, (0, 5)),
    "0–5: most are 4 or 5": (high_grades, (1 + 2 + 6 + 40 + 150) / 45, (0, 5)),
}
"""By name how a value is drawn, its true mean, and its scale."""


def coverage(name: str, n: int, samples: int) -> float:
    """The share of samples of n values whose interval holds the true mean."""
    draw, mean, scale = DATA[name]
    random = Random(f"{name} {n}")
    held = 0
    for _ in range(samples):
        low, high = mean_interval([draw(random) for _ in range(n)], scale) or (0.0, 0.0)
        held += low - 1e-9 <= mean <= high + 1e-9
    return held / samples


def table_lines(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, *rows)]
    return [lines[0], "| --- |" + " --- |" * (lines[0].count("|") - 2), *lines[1:]]


@pytest.mark.parametrize("n", [5, 20])
@pytest.mark.parametrize("name", DATA)
def test_a_few_hundred_samples_show_no_method_that_is_broken(name: str, n: int):
    assert coverage(name, n, 300) >= LEAST


@pytest.mark.torture
def test_intervals_hold_as_often_as_the_page_says():
    shares = {name: [coverage(name, n, SAMPLES) for n in SIZES] for name in DATA}
    assert min(min(row) for row in shares.values()) >= LEAST
    rows = ([name, *(f"{100 * share:.1f} %" for share in row)] for name, row in shares.items())
    table = "\n".join(table_lines(["values", *(f"n = {n}" for n in SIZES)], rows))
    assert table in APPENDIX.read_text(encoding="utf-8"), table


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
    tally = simulated(name, n, paired_tests.SAMPLES)
    assert HOLDS[0] - 0.005 <= tally.coverage <= HOLDS[1]
    assert tally.width_ratio <= WIDEST or (tally.width_ratio <= 1.3 and name.startswith("0 or 1: rare"))
    assert max(tally.regressed, tally.false_alarms) / paired_tests.SAMPLES <= MOST_ALARMS
    assert tally.found >= 0.8 * tally.found_by_t


@pytest.mark.torture
def test_the_tables_are_those_of_the_page():
    page = APPENDIX.read_text(encoding="utf-8")
    assert len(KINDS) * len(paired_tests.SIZES) > 100
    for table in paired_tests.tables(paired_tests.SAMPLES):
        assert table in page, table
