"""Records as rows need them: those that a whole reading gives, less what rows leave out, and the same complaints."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_runs import a_result, a_run, an_error

from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.row import NEEDED, WHERE_WRITTEN, Row


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
