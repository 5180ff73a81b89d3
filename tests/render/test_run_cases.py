"""Cases of a run in their order, and the words in which two texts differ."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.case_changes import changes_of
from pytest_rageval.comparison.case_filter import all_rounded
from pytest_rageval.comparison.case_list import list_cases
from pytest_rageval.render.html.environment import on_one_line
from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.runs.row import CaseScores
from pytest_rageval.views.text_diff import MOST_WORDS, word_diff, word_set


def a_side(**scores: Mapping[str, float]) -> Side:
    """A run without records, of cases with these scores."""
    described = {"scale": [0, 1], "better": "higher", "layer": "L2"}
    metrics = {"metrics": {"recall@2": described, "mrr": described}, "volatile": {"run_id": "now"}}
    cases = {key: CaseScores("h", "passed", each) for key, each in scores.items()}
    return Side("now", metrics, CaseColumns.of(cases))


@pytest.mark.parametrize(
    ("scores", "drop", "fallen"),
    [
        ({"recall@2": 1.0, "mrr": 0.5}, 0, None),
        ({"recall@2": 0.0, "mrr": 0.5}, -1, "recall@2"),
        ({"recall@2": 0.5, "mrr": 0.0}, -0.5, "mrr"),
        ({"mrr": 1.0, "new": 0.0}, 0, None),
        ({}, 0, None),
    ],
)
def test_a_case_fell_by_its_largest_fall_in_a_metric_of_both_sides(
    scores: Mapping[str, float], drop: float, fallen: str | None
):
    before = CaseColumns.of({"a": CaseScores("h", "passed", {"recall@5": 1.0, "mrr": 0.5, "gone": 1.0})})
    listed = list_cases(a_side(a=scores, b={"mrr": 0.0}), {}, before, {"recall@5": "recall@2"})
    [case] = [case for case in listed.cases if case.key == "a"]
    assert (case.drop, case.fallen) == (drop, fallen)
    assert case.level is None or scores
    assert {fall.number for falls in (listed.falls or {}).values() for fall in falls} == (
        {listed.cases.index(case)} if fallen else set()
    )


def test_the_scores_stand_in_the_order_of_the_list():
    listed = list_cases(a_side(a={"mrr": 1.0}, b={"mrr": 0.25}, c={"mrr": 0.5}))
    assert ([case.key for case in listed.cases], listed.scores["mrr"]) == (["b", "c", "a"], [0.25, 0.5, 1.0])
    assert listed.falls is None


def test_of_a_case_that_changed_in_two_ways_the_first_counts():
    comparison = {
        "flipped_to_fail": ["a"], "unmeasured": [{"case_key": "a"}, {"case_key": "b"}], "only_after": ["b", "c"],
        "changed_cases": ["d"],
    }  # fmt: skip
    assert changes_of(comparison) == {"a": "worse", "b": "unmeasured", "c": "new", "d": "new"}
    assert changes_of({**comparison, "compared": False}) == changes_of(None) == {}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, ""),
        ("", ""),
        ("one\n two", "one two"),
        ("a" * 8, "a" * 8),
        ("a" * 9, "a" * 7 + "…"),
        ("abc def ghi", "abc def…"),
        ("a" + " " * 25 + "b", "a b"),
        ("a" + " " * 40 + "b", "a"),
    ],
)
def test_a_text_is_cut_to_a_line(text: str | None, line: str):
    assert on_one_line(text, 8) == line


def test_scores_are_rounded_alike_one_by_one_and_all_at_once():
    scores = [None, 0.0, 1.0, 1, 0.123456, -0.00004, 4.99999]
    one_by_one = [score if score is None else round(score, 4) for score in scores]
    assert list(map(repr, all_rounded(scores))) == list(map(repr, one_by_one))


def marked(before: str, after: str) -> str:
    marks = {"same": "{}", "gone": "[-{}-]", "new": "[+{}+]"}
    return "".join(marks[piece.kind].format(piece.text) for piece in word_diff(before, after))


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("It is kept here.", "It is kept here.", "It is kept here."),
        ("kept in Japan", "kept in Korea", "kept in [-Japan-][+Korea+]"),
        ("제주 크림은 32,000원", "제주 크림은 28,000원", "제주 크림은 [-32-][+28+],000원"),
        ("카메라는 두 대", "카메라는 세 대", "카메라는 [-두 -][+세 +]대"),
        ("在北京市", "在上海市", "在[-北京-][+上海+]市"),
        ("東京です", "京都です", "[-東-]京[+都+]です"),
        ("one two", "one\ntwo", "one\ntwo"),
        ("", "new", "[+new+]"),
        ("gone", "", "[-gone-]"),
    ],
)
def test_words_that_differ_are_marked(before: str, after: str, shown: str):
    assert marked(before, after) == shown


def test_the_end_of_a_very_long_text_is_compared_as_one():
    before = "word " * (MOST_WORDS + 50)
    assert [piece.kind for piece in word_diff(before, before)] == ["same"]
    assert marked(before, before + "more").endswith("[+" + "word " * 50 + "more+]")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a b c", "a x c"),
        ("a b", "a b b"),
        ("b a", "b b a"),
        ("a a", "a"),
        ("", "a"),
        ("a", ""),
        ("a b c", "a b c"),
        ("x y", "p q"),
    ],
)
def test_both_texts_can_be_read_off_the_difference_whatever_they_share_at_their_ends(before: str, after: str):
    pieces = word_diff(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == after
    words = " ".join(piece.text.strip() for piece in pieces if piece.kind != "new")
    assert words.split() == before.split()
    kinds = [piece.kind for piece in pieces]
    assert all(kind != following for kind, following in itertools.pairwise(kinds))


def test_words_of_plain_text_are_those_that_the_same_text_has_beside_other_letters():
    text = "Kept in A_b, (12.5) at\x1f\tnight: don't; x-Y\n" + "".join(map(chr, range(128)))
    assert word_set(text) == word_set(f"{text} é") - {"é"}
