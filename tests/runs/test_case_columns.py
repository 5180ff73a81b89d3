"""Cases held by column: each is what it was, in the order of the keys, and shared ones are found on both sides."""

from __future__ import annotations

from dataclasses import replace

from stored_runs import a_row

from pytest_rageval.runs.columns import CaseColumns, shared_cases, values_at
from pytest_rageval.runs.row import CaseScores

CASES = {
    "b": CaseScores("h2", "failed", {"mrr": 0.5}, decision_hash="d2"),
    "a": CaseScores("h1", "passed", {"mrr": 1.0, "map": 0.25}),
    "c": CaseScores("h3", "error", {}, error_kind="timeout"),
}


def test_each_case_comes_back_as_it_was_in_the_order_of_the_keys():
    columns = CaseColumns.of(CASES)
    assert columns == CASES
    assert list(columns) == ["a", "b", "c"]
    assert columns.scores["map"] == [0.25, None, None]
    assert CaseColumns.of(columns) is columns
    assert "d" not in columns
    assert columns.get("d") is None


def test_a_row_gives_what_is_compared_of_it():
    row = replace(a_row("q", mrr=0.5, outcome="error", error_kind="reset"), decision_hash="d")
    columns = CaseColumns.of({"q": row})
    assert columns["q"] == CaseScores("hash", "error", {"mrr": 0.5}, "reset", "d")


def test_cases_without_any_score_are_found_among_all_metrics():
    assert list(CaseColumns.of(CASES).places_without_score()) == [2]
    assert list(CaseColumns.of({key: case for key, case in CASES.items() if key != "c"}).places_without_score()) == []
    assert list(CaseColumns(["a"], ["h"], ["error"], ["reset"], [None]).places_without_score()) == [0]


def test_shared_cases_stand_at_their_places_in_both_runs():
    before = CaseColumns.of(CASES)
    after = CaseColumns.of({"b": CASES["b"], "c": CASES["a"], "d": CASES["c"]})
    shared = shared_cases(before, after)
    assert list(shared.keys) == ["b", "c"]
    assert values_at(before.outcomes, shared.before) == ["failed", "error"]
    assert values_at(after.outcomes, shared.after) == ["failed", "passed"]
    same = shared_cases(before, before)
    assert (list(same.keys), list(same.before), list(same.after)) == (["a", "b", "c"], [0, 1, 2], [0, 1, 2])
    assert values_at(before.outcomes, same.before) is before.outcomes


def test_what_is_left_after_cases_were_taken_out_are_the_others():
    columns = CaseColumns.of(CASES)
    assert columns.without(["a"]) == {key: case for key, case in CASES.items() if key != "a"}
    assert columns.without(()) is columns
