"""Agreement of a judge with people: against scipy, against scikit-learn's and statsmodels' figures, by definition."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import rounds
from scipy.stats import mannwhitneyu, spearmanr

from pytest_rageval.stats.agreement import (
    Confusion,
    Estimate,
    LabelPair,
    auroc,
    in_words,
    kappa_error,
    roc,
    spearman,
    weighted_kappa,
)

PEOPLE = [int(one) for one in "213500402404100330104304015540443010412314042451044512045040"]
JUDGE = [int(one) for one in "414500523404000531205323025440541022412525131450045512025032"]
BOTH = list(zip(map(float, PEOPLE), map(float, JUDGE), strict=True))
AT_FOUR = [LabelPair(human >= 4, judge) for human, judge in BOTH]


def ends(estimate: Estimate | None) -> tuple[float, float]:
    assert estimate is not None
    assert estimate.interval is not None
    return estimate.interval


def test_failing_the_gate_is_what_is_looked_for():
    found = Confusion.of([(False, False)] * 6 + [(False, True)] * 2 + [(True, False)] * 1 + [(True, True)] * 11)
    assert (found.tp, found.fp, found.fn, found.tn) == (6, 2, 1, 11)
    assert found.precision == 6 / 8
    assert found.recall == 6 / 7
    assert found.specificity == 11 / 13
    assert found.youden == pytest.approx(6 / 7 + 11 / 13 - 1)
    assert found.agreement.value == 17 / 20


def test_what_has_no_denominator_has_no_value():
    nothing = Confusion(0, 0, 0, 0)
    assert (nothing.agreement, nothing.kappa, nothing.precision, nothing.recall) == (None, None, None, None)
    assert Confusion(0, 0, 0, 5).kappa is None
    assert Confusion(0, 0, 2, 5).precision is None
    assert Confusion(0, 3, 0, 5).youden is None


def test_kappa_is_that_of_scikit_learn():
    found = Confusion.of((judge >= 4, human >= 4) for human, judge in BOTH).kappa
    assert found.value == pytest.approx(0.7129186602870814)  # cohen_kappa_score, scikit-learn


@pytest.mark.parametrize(
    ("cells", "error"),
    # cohens_kappa(cells).std_kappa of statsmodels; the second table is that of Fleiss, Cohen and Everitt 1969
    [([[20, 5], [10, 15]], 0.12699606293110033), ([[88, 14, 18], [10, 40, 10], [2, 6, 12]], 0.05100181557607786)],
)
def test_the_error_of_kappa_is_that_of_statsmodels(cells: list[list[float]], error: float):
    assert kappa_error(cells) == pytest.approx(error)


def test_perfect_agreement_on_a_few_answers_is_no_certainty():
    few, many = Confusion(5, 0, 0, 5).kappa, Confusion(500, 0, 0, 500).kappa
    assert few.value == many.value == 1
    assert ends(few)[0] < 0.6 < 0.98 < ends(many)[0]
    assert ends(few)[1] == 1


@pytest.mark.parametrize(
    ("kappa", "words"),
    [(-0.1, "poor"), (0, "slight"), (0.2, "slight"), (0.21, "fair"), (0.604, "moderate"), (0.61, "substantial"),
     (0.8, "substantial"), (0.81, "almost perfect"), (1, "almost perfect")],
)  # fmt: skip
def test_agreement_has_the_names_of_landis_and_koch(kappa: float, words: str):
    assert in_words(kappa) == words


def test_weighted_kappas_are_those_of_scikit_learn():
    # cohen_kappa_score(PEOPLE, JUDGE, weights=…), scikit-learn
    assert weighted_kappa(BOTH, (0, 5)) == pytest.approx(0.6984924623115578)
    assert weighted_kappa(BOTH, (0, 5), squared=True) == pytest.approx(0.8641106527541859)


def test_scores_are_rounded_to_steps_halves_upwards():
    rounded = [(2.0, 3.0), (4.0, 4.0), (0.0, 1.0), (5.0, 5.0)]
    assert weighted_kappa([(2.0, 2.5), (4.4, 3.9), (0.2, 0.5), (5.0, 4.6)], (0, 5)) == weighted_kappa(rounded, (0, 5))
    tenths = [(human / 5, judge / 5) for human, judge in rounded]
    assert weighted_kappa(tenths, (0, 1)) == pytest.approx(weighted_kappa(rounded, (0, 5)))


def test_spearman_is_that_of_scipy_ties_included():
    assert spearman(BOTH) == pytest.approx(spearmanr(PEOPLE, JUDGE).statistic)


def test_the_area_is_that_of_scikit_learn():
    found = auroc(AT_FOUR)
    assert found.value == pytest.approx(0.9252392344497609)  # roc_auc_score, scikit-learn


scores = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.5, 3.0, 4.75, 5.0]), min_size=2, max_size=25)


@given(good=scores, bad=scores)
@settings(deadline=None, max_examples=rounds(60, 20))
def test_the_area_is_mann_whitneys_u_and_its_interval_holds_it(good: list[float], bad: list[float]):
    found = auroc([*(LabelPair(True, score) for score in good), *(LabelPair(False, score) for score in bad)])
    assert found.value == pytest.approx(mannwhitneyu(good, bad).statistic / len(good) / len(bad))
    low, high = ends(found)
    assert 0 <= low <= found.value + 1e-9
    assert found.value - 1e-9 <= high <= 1
    assert low < high


def test_the_interval_of_the_area_is_that_of_delong_by_definition():
    good = [pair.score for pair in AT_FOUR if pair.passes]
    bad = [pair.score for pair in AT_FOUR if not pair.passes]

    def above(one: float, other: float) -> float:
        return 1.0 if one > other else 0.5 if one == other else 0.0

    area = sum(above(one, other) for one, other in itertools.product(good, bad)) / len(good) / len(bad)
    by_good = [sum(above(one, other) for other in bad) / len(bad) for one in good]
    by_bad = [sum(above(one, other) for one in good) / len(good) for other in bad]
    variance = sum((part - area) ** 2 for part in by_good) / (len(good) - 1) / len(good)
    variance += sum((part - area) ** 2 for part in by_bad) / (len(bad) - 1) / len(bad)
    half = 1.959963984540054 * math.sqrt(variance) / (area * (1 - area))
    found = auroc(AT_FOUR)
    expected = [1 / (1 + math.exp(-(math.log(area / (1 - area)) + sign * half))) for sign in (-1, 1)]
    assert found.interval == pytest.approx(expected)


def test_without_both_kinds_there_is_no_area_and_no_curve():
    assert auroc([LabelPair(True, 1.0), LabelPair(True, 2.0)]) is None
    assert auroc([]) is None
    assert roc([LabelPair(False, 1.0)]) == []
    single = auroc([LabelPair(True, 1.0), LabelPair(False, 2.0)])
    assert single == (0.0, None)


def test_the_curve_goes_from_corner_to_corner_and_the_area_under_it_is_the_area():
    points = roc(AT_FOUR)
    assert points[0] == (0, 0)
    assert points[-1] == (1, 1)
    area = sum((x2 - x1) * (y1 + y2) / 2 for (x1, y1), (x2, y2) in itertools.pairwise(points))
    found = auroc(AT_FOUR)
    assert area == pytest.approx(found.value)
