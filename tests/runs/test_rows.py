"""Rows of a run and the small table of their scores: made from records, put in order, read back, or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored_runs import a_result, a_row, a_run, an_error, change_lines

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.verdict import over_trials
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import CaseResult, EvalCase, Problem, Timings
from pytest_rageval.run.plan import make_plan
from pytest_rageval.runs.columns import SCORES, CaseColumns, read_scores, write_scores
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import NEEDED, WHERE_WRITTEN
from pytest_rageval.runs.records.record_files import row_records
from pytest_rageval.runs.records.result_line import result_record, to_line
from pytest_rageval.runs.row import Row, SharedParts, cases_of, in_order


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


PLAN = make_plan(Settings(), load_registry())


def a_record(number: int, asked_ms: float | None = None, **fields: Any) -> dict[str, Any]:
    """A record as it comes back from its line: no part of it is part of another."""
    case = EvalCase(id=f"q{number}", question="?", category="lab", tags=("a", "b"))
    result = CaseResult(case, "passed", scores={"mrr": 1 / number}, timings=Timings(ask_ms=asked_ms), **fields)
    return json.loads(to_line(result_record(result, PLAN, "hash")))


def test_rows_that_share_their_parts_equal_those_that_do_not():
    records = [a_record(1), a_record(2, asked_ms=3.5), a_record(3), a_record(4, skipped_metrics={"map": "no gold"})]
    shared = SharedParts()
    assert [Row.of(record, shared) for record in records] == [Row.of(record) for record in records]


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    return StoredRun(
        a_run(tmp_path / "reports", "one", a_result("a"), a_result("b", answer="제주"), an_error("c", "no"))
    )


def test_rows_are_made_of_fewer_keys_and_come_out_alike(run: StoredRun):
    whole, slim = list(run.records()), list(row_records(run.path / "results.jsonl"))
    assert [{name: record[name] for name in record if name in (*NEEDED, *WHERE_WRITTEN)} for record in whole] == slim
    assert "retrieved_chunks" not in slim[0]
    assert [Row.of(record) for record in whole] == [Row.of(record) for record in slim]


ROWS = [
    a_row("a.jsonl::둘", mrr=0.5, recall_any_at_5=1.0),
    a_row("a.jsonl::one", mrr=1 / 3),
    a_row("a.jsonl::gone", outcome="error", error_kind="timeout"),
]


def test_what_was_written_comes_back(tmp_path: Path):
    write_scores(tmp_path, CaseColumns.of_rows(ROWS))
    found = read_scores(tmp_path)
    assert found is not None
    assert found == CaseColumns.of_rows(ROWS)
    assert found.categories == {row.key: "a" for row in ROWS}
    assert found.scores["mrr"] == [None, 1 / 3, 0.5]  # in the order of the keys
    assert found["a.jsonl::gone"].error_kind == "timeout"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("0.5", '"0.5"'),
        lambda text: text.replace('"timeout"', "7"),
        lambda text: text.replace('"passed"', '"fine"'),
        lambda text: text.replace('"cases":3', '"cases":4'),
        lambda text: text.replace('"outcome"', '"came"'),
        lambda text: "[" * 100_000,
    ],
)
def test_a_damaged_table_is_refused_with_what_to_do(tmp_path: Path, damage):
    write_scores(tmp_path, CaseColumns.of_rows(ROWS))
    text = (tmp_path / SCORES).read_text(encoding="utf-8")
    (tmp_path / SCORES).write_text(damage(text), encoding="utf-8")
    remedy = "was it changed? remove it, and results.jsonl is read instead"
    with pytest.raises(SettingsError, match=f"scores.jsonl.*{re.escape(remedy)}"):
        read_scores(tmp_path)


def test_a_damaged_column_is_named_by_its_line(tmp_path: Path):
    write_scores(tmp_path, CaseColumns.of_rows(ROWS))
    text = (tmp_path / SCORES).read_text(encoding="utf-8")
    (tmp_path / SCORES).write_text(text.replace('"passed"', '"failed"', 1), encoding="utf-8")
    with pytest.raises(SettingsError, match=r"scores\.jsonl:4: does not match its checksum"):
        read_scores(tmp_path)


@pytest.mark.parametrize(("old", "new"), [("0.5", '"0.5"'), ('"timeout"', "7"), ('"passed"', '"fine"'),
                                          ("::one", "::gone"), ("::gone", "::zone"),
                                          ('"cases":3', '"cases":4'), ('"outcome"', '"came"'),
                                          ('"schema":2', '"schema":1')])  # fmt: skip
def test_columns_that_no_run_writes_are_refused_whatever_their_checksums(tmp_path: Path, old: str, new: str):
    write_scores(tmp_path, CaseColumns.of_rows(ROWS))
    change_lines(tmp_path / SCORES, lambda line: line.replace(old, new))
    with pytest.raises(SettingsError, match=r"not a table of scores; .*results\.jsonl is read instead"):
        read_scores(tmp_path)
