"""The corrected pass rate: right where the judge is wrong, and its interval as wide as it must be."""

from __future__ import annotations

import random

import pytest

from pytest_rageval.stats.agreement import Estimate
from pytest_rageval.stats.pass_rate import corrected_pass_rate, paired_difference


def ends(estimate: Estimate | None) -> tuple[float, float]:
    assert estimate is not None
    assert estimate.interval is not None
    return estimate.interval


def test_what_the_judge_lets_through_is_taken_off_and_what_it_misses_put_on():
    labelled = [(True, True)] * 6 + [(True, False)] * 3 + [(False, True)] * 1
    found = corrected_pass_rate(labelled, [1.0] * 80 + [0.0] * 20)
    assert found.value == pytest.approx(0.8 + (1 - 3) / 10)


def test_without_labels_or_without_a_run_there_is_no_estimate():
    assert corrected_pass_rate([], [1.0]) is None
    assert corrected_pass_rate([(True, True)], []) is None


def test_a_share_stays_a_share():
    found = corrected_pass_rate([(False, True)] * 2 + [(True, True)] * 8, [1.0] * 50)
    assert found.value == 1
    assert 0.5 < ends(found)[0] < ends(found)[1] == 1


def test_labels_that_cannot_be_a_sample_of_the_others_give_no_interval():
    assert corrected_pass_rate([(False, True)] * 50, [1.0] * 500) == (1, None)
    assert corrected_pass_rate([(True, False)] * 50, [0.0] * 500) == (0, None)


def test_many_labels_give_the_textbook_interval():
    labelled = [(True, True)] * 5000 + [(True, False)] * 1000 + [(False, True)] * 500 + [(False, False)] * 3500
    found = corrected_pass_rate(labelled, [1.0] * 60_000 + [0.0] * 40_000)
    off = (0.15 - 0.05**2) / 10_000  # variance of people - judge
    half = 1.959963984540054 * (off + 0.6 * 0.4 / 100_000) ** 0.5
    assert found.value == pytest.approx(0.55)
    assert found.interval == pytest.approx((0.55 - half, 0.55 + half), abs=1e-4)


def test_the_paired_difference_is_that_of_bonett_and_price():
    # By hand from their formula: 8 and 2 of 50 give 9/52 and 3/52.
    low, high = paired_difference(8, 2, 50).interval()
    p, q = 9 / 52, 3 / 52
    half = 1.959963984540054 * ((p + q - (p - q) ** 2) / 52) ** 0.5
    assert (low, high) == pytest.approx((p - q - half, p - q + half))


@pytest.mark.parametrize(
    ("passing", "let_through", "missed", "n", "more"),
    [
        (0.8, 0.3, 0.1, 100, 1000),
        (0.8, 0.3, 0.1, 30, 300),
        (0.5, 0.02, 0.02, 40, 2000),  # a judge so good that few labels hold a disagreement
        (0.95, 0.5, 0.02, 50, 400),
        (0.3, 1.0, 0.0, 60, 600),  # passes everything
    ],
)
def test_the_interval_covers_what_people_would_say_nineteen_times_in_twenty(
    passing: float, let_through: float, missed: float, n: int, more: int
):
    generator, covered, rounds = random.Random(f"{passing} {n}"), 0, 400

    def one() -> tuple[bool, bool]:
        human = generator.random() < passing
        return (generator.random() >= missed if human else generator.random() < let_through), human

    for _ in range(rounds):
        found = corrected_pass_rate([one() for _ in range(n)], [float(one()[0]) for _ in range(more)])
        covered += ends(found)[0] <= passing <= ends(found)[1]
    assert covered / rounds >= 0.93
