"""Rows and columns of a run: made from records, shared, put in order, and found again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored_runs import a_result, a_row, a_run, an_error

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.verdict import over_trials
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import CaseResult, EvalCase, Problem, Timings
from pytest_rageval.plan import make_plan
from pytest_rageval.runs.columns import CaseColumns, shared_cases, values_at
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records import result_record, to_line
from pytest_rageval.runs.row import NEEDED, WHERE_WRITTEN, CaseScores, Row, SharedParts, cases_of, in_order

# ── trials ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("trials", "errors", "scores"),
    [
        ([{"mrr": 1.0}], [], {"mrr": 1.0}),
        ([{"mrr": 1.0}, {"mrr": 0.5}, {"mrr": 0.0}], [], {"mrr": 0.5}),
        ([{"mrr": 1.0, "map": 0.5}, {"mrr": 0.0}], [], {"mrr": 0.5, "map": 0.5}),
        ([{}, {"mrr": 0.25}], [], {"mrr": 0.25}),
        ([{"mrr": 1.0}, {}], [1], {}),
        ([{"mrr": 1.0}, {"map": 0.5}, {}], [1, 2], {"map": 0.5}),
    ],
)
def test_a_run_and_its_records_agree_on_what_trials_come_to(
    trials: Sequence[Mapping[str, float]], errors: Sequence[int], scores: Mapping[str, float]
):
    results = [
        replace(a_result(trial=number, error=Problem("timeout", "late") if number in errors else None), scores=of_trial)
        for number, of_trial in enumerate(trials)
    ]
    rows = [
        a_row("q", trial=number, error_kind="timeout" if number in errors else None, **of_trial)
        for number, of_trial in enumerate(trials)
    ]
    stands, of_run = over_trials(results, lambda result: result.error is not None)
    (row,) = cases_of(rows)
    assert of_run == row.scores == scores
    assert stands.trial == row.trial == (errors[0] if errors else 0)


def test_a_mean_over_trials_does_not_depend_on_their_order():
    def is_error(row: Row) -> bool:
        return row.error_kind is not None

    rows = [a_row("q", trial=number, mrr=score) for number, score in enumerate([0.1, 0.2, 0.3, 0.7])]
    assert over_trials(rows, lambda row: False)[1] == over_trials(rows[::-1], lambda row: False)[1]


def test_rows_come_by_case_and_trial_and_of_one_recorded_twice_the_last():
    recorded = [a_row("b", 1), a_row("a", 0, mrr=0.0), a_row("b", 0), a_row("a", 0, mrr=1.0), a_row("c", 0)]
    rows = in_order(recorded)
    assert [(row.key, row.trial) for row in rows] == [("a", 0), ("b", 0), ("b", 1), ("c", 0)]
    assert rows[0].scores == {"mrr": 1.0}
    assert in_order(rows) == rows
    assert in_order([]) == []


# ── shared parts ─────────────────────────────────────────────────────────────────────────────────────────────────────


PLAN = make_plan(Settings(), load_registry())


def a_record(number: int, asked_ms: float | None = None, **fields: Any) -> dict[str, Any]:
    """A record as it comes back from its line: no part of it is part of another."""
    case = EvalCase(id=f"q{number}", question="?", category="lab", tags=("a", "b"))
    result = CaseResult(case, "passed", scores={"mrr": 1 / number}, timings=Timings(ask_ms=asked_ms), **fields)
    record: dict[str, Any] = json.loads(to_line(result_record(result, PLAN, "hash")))
    return record


def test_rows_that_share_their_parts_equal_those_that_do_not():
    records = [a_record(1), a_record(2, asked_ms=3.5), a_record(3), a_record(4, skipped_metrics={"map": "no gold"})]
    shared = SharedParts()
    assert [Row.of(record, shared) for record in records] == [Row.of(record) for record in records]


def test_what_is_equal_in_two_rows_is_held_once():
    shared = SharedParts()
    one, other = (Row.of(a_record(number), shared) for number in (1, 2))
    assert one.groups is other.groups
    assert one.cost is other.cost
    assert one.not_applicable is other.not_applicable
    assert next(iter(one.scores)) is next(iter(other.scores))


def test_of_times_a_row_holds_those_that_were_measured():
    shared = SharedParts()
    rows = [Row.of(a_record(number, asked_ms), shared) for number, asked_ms in ((1, 3.5), (2, None))]
    assert [row.latency for row in rows] == [{"total_ms": 3.5}, {}]


def test_costs_that_differ_are_those_of_their_rows():
    shared = SharedParts()
    records = [a_record(number) for number in (1, 2, 3)]
    records[1]["cost"]["judge_tokens"] = 7
    assert [Row.of(record, shared).cost["judge_tokens"] for record in records] == [None, 7, None]


# ── records as rows need them ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    return StoredRun(
        a_run(tmp_path / "reports", "one", a_result("a"), a_result("b", answer="제주"), an_error("c", "no"))
    )


def test_rows_are_made_of_fewer_keys_and_come_out_alike(run: StoredRun):
    whole, slim = list(run.records()), list(run.row_records())
    assert [{name: record[name] for name in record if name in (*NEEDED, *WHERE_WRITTEN)} for record in whole] == slim
    assert "retrieved_chunks" not in slim[0]
    assert [Row.of(record) for record in whole] == [Row.of(record) for record in slim]


@pytest.mark.parametrize("damage", ["changed", "other", "newer"])
def test_a_damaged_line_is_named_as_a_whole_reading_names_it(run: StoredRun, damage: str):
    results = run.path / "results.jsonl"
    lines = results.read_text(encoding="utf-8").splitlines()
    lines[1] = {"changed": lines[1].replace("제주", "서울"), "other": "[]", "newer": '{"schema": 99}'}[damage]
    results.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(SettingsError) as whole:
        list(run.records())
    with pytest.raises(SettingsError) as slim:
        list(run.row_records())
    assert slim.value.problems == whole.value.problems
    assert f"{results}:2" in slim.value.problems[0]


def test_a_last_line_that_was_cut_off_is_left_out(run: StoredRun):
    results = run.path / "results.jsonl"
    results.write_bytes(results.read_bytes()[:-20])
    assert len(list(run.row_records())) == len(list(run.records())) == 2


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


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
