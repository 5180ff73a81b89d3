"""The limit that serves best: found where it is, and not taken for better where it only fits the noise."""

from __future__ import annotations

import random

import pytest

from pytest_rageval.stats.agreement import LabelPair
from pytest_rageval.stats.thresholds import Aim, Threshold, best_threshold

SCALE = (0.0, 5.0)


def found(pairs: list[LabelPair], present: float = 3.5, aim: Aim = "youden") -> Threshold:
    best = best_threshold(pairs, SCALE, lambda score: score >= present, present, aim)
    assert isinstance(best, Threshold)
    return best


def two_kinds(seed: int, border: float, n: int = 200, noise: float = 0.4) -> list[LabelPair]:
    """Answers that pass above the border, the judge's scores being off by some noise."""
    generator = random.Random(seed)
    truth = [generator.uniform(0, 5) for _ in range(n)]
    return [LabelPair(one >= border, min(5, max(0, one + generator.gauss(0, noise)))) for one in truth]


@pytest.mark.parametrize("aim", ["youden", "agreement"])
def test_a_judge_that_is_too_strict_gets_a_lower_limit(aim: Aim):
    best = found(two_kinds(1, border=2.0), aim=aim)
    assert best.limit == pytest.approx(2.0, abs=0.35)
    assert best.is_clearly_better
    assert best.held_out > best.present
    assert best.gain == pytest.approx(best.held_out - best.present)
    assert best.gain_interval[0] <= best.gain <= best.gain_interval[1]
    assert best.chosen[0] <= best.limit <= best.chosen[1]


def test_the_present_limit_stays_where_it_serves_as_well_as_any():
    pairs = [LabelPair(True, 5.0)] * 30 + [LabelPair(False, 1.0)] * 30
    best = found(pairs)
    assert best.limit == 3.5
    assert best.value == best.held_out == best.present == 1
    assert best.is_present
    assert not best.is_clearly_better


def test_a_limit_lies_half_way_between_the_scores_that_it_parts():
    pairs = [*[LabelPair(True, 5.0)] * 30, *[LabelPair(False, 4.0)] * 30, *[LabelPair(False, 1.0)] * 5]
    best = found(pairs)
    assert best.limit == 4.5
    assert not best.is_present


def test_scores_that_say_nothing_seldom_give_a_limit_that_passes_for_better():
    better = 0
    for seed in range(100):
        generator = random.Random(seed)
        pairs = [LabelPair(generator.random() < 0.5, generator.uniform(0, 5)) for _ in range(120)]
        if min(sum(pair.passes for pair in pairs), sum(not pair.passes for pair in pairs)) >= 20:
            better += found(pairs).is_clearly_better
    assert better <= 6


def test_too_few_labels_of_a_kind_are_said():
    pairs = [LabelPair(True, 4.0)] * 100 + [LabelPair(False, 1.0)] * 19
    said = best_threshold(pairs, SCALE, lambda score: score >= 3.5, 3.5, "youden")
    assert said == "too few labels: 100 pass and 19 fail, at least 20 of each are needed"


def test_a_judge_with_one_score_for_all_has_no_limit():
    pairs = [LabelPair(bool(number % 2), 3.0) for number in range(80)]
    said = best_threshold(pairs, SCALE, lambda score: score >= 3.5, 3.5, "agreement")
    assert said == "the judge gives all answers much the same score"


def test_limits_are_written_with_few_digits_on_any_scale():
    pairs = [LabelPair(pair.passes, pair.score / 5) for pair in two_kinds(2, border=3.0)]
    best = best_threshold(pairs, (0.0, 1.0), lambda score: score >= 0.7, 0.7, "youden")
    assert isinstance(best, Threshold)
    assert len(f"{best.limit:.12g}") <= 4
