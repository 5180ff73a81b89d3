"""The p of a change: near the test that holds, and false alarms on differences around zero of many kinds."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.stats import change_test
from pytest_rageval.stats.change_test import change_p
from pytest_rageval.stats.sign_flip import sign_flip_p

GATES_PAGE = Path(__file__).parents[2] / "docs" / "gates.md"
CASES = 20
SAMPLES = 4000
MOST = 0.07
Draw = Callable[[Random], float]


def one_of(*values: float, weights: tuple[float, ...]) -> Draw:
    return lambda random: random.choices(values, weights)[0]


AROUND_ZERO: dict[str, Draw] = {
    "normal": lambda random: random.gauss(0, 0.2),
    "uniform": lambda random: random.uniform(-0.3, 0.3),
    "double exponential": lambda random: random.expovariate(10) * random.choice((-1, 1)),
    "fifths, half of the cases unchanged": one_of(-0.4, -0.2, 0.0, 0.2, 0.4, weights=(1, 2, 6, 2, 1)),
    "0 or 1, a third of the cases flips": one_of(-1.0, 0.0, 1.0, weights=(1, 4, 1)),
    "skewed: few large gains (triangular)": lambda random: 1 - math.sqrt(random.random()) - 1 / 3,
    "skewed: few large losses (triangular)": lambda random: 1 / 3 - 1 + math.sqrt(random.random()),
    "skewed: few large gains (exponential)": lambda random: random.expovariate(5) - 0.2,
    "skewed: few large losses (exponential)": lambda random: 0.2 - random.expovariate(5),
    "rare and large: ±1 in a tenth of the cases": one_of(-1.0, 0.0, 1.0, weights=(1, 18, 1)),
    "rare and large: the same, and noise": lambda r: r.gauss(0, 0.05) + r.choices((-1, 0, 1), (1, 18, 1))[0],
    "rare losses of 1 in a tenth of the cases": one_of(-1.0, 1 / 9, weights=(1, 9)),
    "rare losses of 1 in a twentieth": one_of(-1.0, 1 / 19, weights=(1, 19)),
}
"""Differences with a mean of 0, by name."""
FEW_LARGE_GAINS: dict[str, Draw] = {
    "rare gains of 1 in a tenth of the cases": one_of(1.0, -1 / 9, weights=(1, 9)),
    "rare gains of 1 in a twentieth": one_of(1.0, -1 / 19, weights=(1, 19)),
    "skewed: few very large gains (log-normal)": lambda r: 0.1 * (math.exp(r.gauss(0, 1)) - math.exp(0.5)),
    "skewed: few large gains, half of the cases unchanged": lambda r: r.choice((0, 1)) * (r.expovariate(5) - 0.2),
}
"""In many samples of 20 none of the gains is seen, or too few of them, that make up for the losses."""


def share_regressed(name: str, samples: int) -> float:
    """The share of samples called worse, one-sided at 0.05: half of p, where the mean fell."""
    draw, random = (AROUND_ZERO | FEW_LARGE_GAINS)[name], Random(name)
    drawn = ([draw(random) for _ in range(CASES)] for _ in range(samples))
    return sum(math.fsum(sample) < 0 and (change_p(sample) or 1) / 2 <= 0.05 for sample in drawn) / samples


@pytest.mark.parametrize("name", AROUND_ZERO)
def test_a_few_hundred_samples_without_a_change_show_no_test_that_is_broken(name: str):
    assert share_regressed(name, 500) <= MOST + 0.02  # two standard errors of a share of 500


@pytest.mark.torture
def test_false_alarms_are_as_often_as_the_page_says():
    alarms = {name: share_regressed(name, SAMPLES) for name in AROUND_ZERO | FEW_LARGE_GAINS}
    assert max(alarms[name] for name in AROUND_ZERO) <= MOST
    rows = [f"| {name} | {100 * alarms[name]:.1f} % |" for name in alarms]
    table = "\n".join(["| differences around zero | called *regressed* |", "| --- | --- |", *rows])
    assert table in GATES_PAGE.read_text(encoding="utf-8"), table


@pytest.mark.parametrize("freedom", [4, 9, 19, 200])
@pytest.mark.parametrize("t", [-1.0, 0.0, 0.5, 1.7, 2.1, 4.0])
def test_tails_of_t_are_scipys(t: float, freedom: int):
    assert change_test._student_tail(t, freedom) == pytest.approx(scipy.stats.t.sf(t, freedom), abs=0.002)


def test_changes_of_one_size_have_mcnemars_p():
    flips = [-1.0] * 9 + [1.0] * 2 + [0.0] * 30
    assert change_p(flips) == sign_flip_p(flips)
    assert change_p([-0.2] * 20) == sign_flip_p([-0.2] * 20)
    assert change_p([0.0] * 9) == 1
    assert change_p([]) is None


def test_symmetric_differences_have_nearly_the_p_of_the_sign_flip_test():
    random = Random(1)
    half = [random.gauss(0.1, 0.2) for _ in range(30)]
    differences = [0.1 + one for one in half] + [0.1 - one for one in half]
    assert change_p(differences) == pytest.approx(sign_flip_p(differences) or 0, rel=0.3)


def test_many_small_losses_that_a_large_gain_nearly_makes_up_for_are_less_sure_than_their_signs():
    differences = [-0.1, -0.12] * 9 + [0.5, 0.7]
    mirrored = [-one for one in differences]
    assert (change_p(differences) or 0) > 1.1 * (sign_flip_p(differences) or 1)
    assert change_p(mirrored) == change_p(differences)
    few_large_losses = [0.01, 0.02] * 5 + [-0.5, -0.6, -0.7, -0.4, -0.3, -0.6, -0.7, -0.8]
    assert change_p(few_large_losses) == sign_flip_p(few_large_losses)


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=30), st.randoms())
def test_any_differences_have_a_p_that_their_order_does_not_change(differences: list[float], random: Random):
    p = change_p(differences)
    assert p is not None
    assert (sign_flip_p(differences) or 0) <= p <= 1
    random.shuffle(differences)
    assert change_p(differences) == p
