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
from pytest_rageval.gates.verdict import over_trials
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import CaseResult, EvalCase, Problem, Timings
from pytest_rageval.plan import make_plan
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records import result_record, to_line
from pytest_rageval.runs.row import NEEDED, WHERE_WRITTEN, Row, SharedParts, cases_of, in_order

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
