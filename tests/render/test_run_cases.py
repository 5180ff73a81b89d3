"""The list of a page: what moved since another run, texts cut to a line, and how closely long lists are packed."""

from __future__ import annotations

import zlib
from base64 import b64decode
from collections.abc import Mapping

import pytest

from pytest_rageval.comparison.case_filter import all_rounded, rounded
from pytest_rageval.comparison.changes import Scale
from pytest_rageval.render.html.report_page import MANY, level_of, packed
from pytest_rageval.render.html.run_cases import EarlierScores, Flips, on_one_line
from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.runs.row import CaseScores, Row, SharedParts


def a_row(key: str, scores: Mapping[str, float]) -> Row:
    record = {
        "case_key": key, "trial": 0, "outcome": "passed", "content_hash": "h", "category": None, "tags": [],
        "difficulty": None, "domain": None, "answerable": True, "scores": scores, "skipped_metrics": {}, "error": None,
        "verdict": {"passed": True, "gates_held": 1, "failed_gates": []}, "abstention": None, "reason": None,
        "latency": {}, "cost": {}, "judge": None,
    }  # fmt: skip
    return Row.of(record, SharedParts())


@pytest.mark.parametrize(
    ("scores", "moved"),
    [
        ({"recall@2": 1.0, "mrr": 0.5}, []),
        ({"recall@2": 0.0, "mrr": 0.5}, [("recall@2", 1.0, 0.0)]),
        ({"mrr": 0.25, "new": 1.0}, [("mrr", 0.5, 0.25)]),
        ({"new": 1.0}, []),
    ],
)
def test_scores_that_moved_are_those_of_both_sides_by_the_names_of_this_run(
    scores: Mapping[str, float], moved: list[tuple[str, float, float]]
):
    before = CaseColumns.of({"a": CaseScores("h", "passed", {"recall@5": 1.0, "mrr": 0.5, "gone": 1.0})})
    earlier = EarlierScores.of(before, {"recall@5": "recall@2"})
    assert earlier.moved(a_row("a", scores)) == moved
    assert earlier.moved(a_row("b", scores)) == []


def test_without_another_run_nothing_moved():
    assert EarlierScores.of(CaseColumns(), {}).moved(a_row("a", {"mrr": 1.0})) == []


@pytest.mark.parametrize("scale", [Scale(0.0, 1.0, False), Scale(0.0, 1.0, True), Scale(1.0, 4.0, False)])
def test_a_share_is_the_same_however_it_is_taken(scale: Scale):
    assert [scale.to_share(score) for score in (0, 0.3, 1, 1.0)] == [scale.share(score) for score in (0, 0.3, 1, 1.0)]


def test_of_a_case_that_flipped_twice_the_first_counts():
    flips = Flips(worse=frozenset("a"), unmeasured=frozenset("ab"), new=frozenset("bc"))
    assert flips.by_key() == {"a": "worse", "b": "unmeasured", "c": "new"}


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
    assert list(map(repr, all_rounded(scores))) == [repr(rounded(score)) for score in scores]


def test_a_long_list_is_packed_less_closely_and_reads_the_same():
    assert level_of(MANY - 1) > level_of(MANY)
    words = [f"word {number % 97} {number % 89}" for number in range(3000)]
    close, loose = (packed(words, level_of(cases)) for cases in (MANY - 1, MANY))
    assert len(close) < len(loose)
    assert zlib.decompress(b64decode(close)) == zlib.decompress(b64decode(loose))
