"""The list of a page: what moved since another run, texts cut to a line, and how closely long lists are packed."""

from __future__ import annotations

import zlib
from base64 import b64decode
from collections.abc import Mapping

import pytest

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.case_filter import all_rounded
from pytest_rageval.comparison.case_list import changes_of, list_cases
from pytest_rageval.render.html.environment import on_one_line
from pytest_rageval.render.html.report_page import MANY, level_of, packed
from pytest_rageval.runs.columns import CaseColumns, Scores
from pytest_rageval.runs.row import CaseScores


def a_side(**scores: Mapping[str, float]) -> Side:
    """A run without records, of cases with these scores."""
    described = {"scale": [0, 1], "better": "higher", "layer": "L2"}
    metrics = {"metrics": {"recall@2": described, "mrr": described}, "volatile": {"run_id": "now"}}
    cases = {key: CaseScores("h", "passed", each) for key, each in scores.items()}
    return Side("now", metrics, Scores(CaseColumns.of(cases), {}))


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


def test_a_long_list_is_packed_less_closely_and_reads_the_same():
    assert level_of(MANY - 1) > level_of(MANY)
    words = [f"word {number % 97} {number % 89}" for number in range(3000)]
    close, loose = (packed(words, level_of(cases)) for cases in (MANY - 1, MANY))
    assert len(close) < len(loose)
    assert zlib.decompress(b64decode(close)) == zlib.decompress(b64decode(loose))
