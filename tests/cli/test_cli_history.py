"""`rageval history`: the table, what a chart is drawn from, and what is passed over."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len
from stored_runs import a_result, a_run, at

from pytest_rageval.cli.main import rageval
from pytest_rageval.errors import RagevalError

REPORTS = Path("reports")


pytestmark = pytest.mark.usefixtures("here")


def history(*arguments: str, columns: int = 100) -> Result:
    return CliRunner().invoke(rageval, ["history", *arguments], env={"COLUMNS": str(columns)})


def test_the_table_has_a_line_a_run_and_below_it_what_was_changed():
    a_run(REPORTS, "20260301_010000", a_result(recall=0.0, outcome="failed"), ended=at(1))
    a_run(REPORTS, "20260301_020000", ended=at(2), k=7, params={"chunk_max_tokens": 400})
    result = history("--metric", "mrr", "--metric", "recall_any@5")
    assert result.exit_code == 0
    head, names, first, second, changed, way = result.output.splitlines()
    assert head.endswith(": 2 runs")
    assert names.split() == ["run", "passed", "failed", "error", "overall", "mrr", "recall_any@5"]
    assert first.split() == ["20260301_010000", "0", "1", "0", "0.250", "0.500", "0.000"]
    assert second.split()[:4] == ["20260301_020000", "1", "0", "0"]
    assert changed.strip() == "k 5→7; params.chunk_max_tokens –→400"
    assert way.split()[-2:] == ["=", "–"]


def test_three_complete_runs_and_more_are_drawn():
    for hour, recall in enumerate([0.5, 0.0, 1.0, 1.0], start=1):
        a_run(REPORTS, f"20260301_0{hour}0000", a_result(recall=recall), ended=at(hour))
    *_, way, chart = history("--metric", "recall_any@5", "--metric", "mrr").output.splitlines()
    assert way.split()[-2:] == ["+0.500", "="]
    assert chart.split("  ")[0] == "last 4 runs"
    assert chart.split()[-2:] == ["▅▁██", "▅▅▅▅"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_table_is_wider_than_the_terminal(width: int):
    for hour in (1, 2, 3):
        a_run(REPORTS, f"서울-카페-{hour}", a_result(outcome="xfailed"), ended=at(hour))
    metrics = ("--metric", "recall_any@5", "--metric", "mrr", "--metric", "error_rate")
    lines = history(*metrics, columns=width).output.splitlines()
    assert [line for line in lines if cell_len(line) > width] == []
    assert (sum("서울-카페-1" in line for line in lines) == 1) is (width == 120)


def test_a_partial_run_is_marked_and_counts_for_no_trend():
    a_run(REPORTS, "a", a_result(recall=0.0), ended=at(1))
    a_run(REPORTS, "b", a_result(recall=0.5), ended=at(2))
    a_run(REPORTS, "c", a_result(recall=1.0), ended=at(3), missing=["x"])
    *_, last, note, way = history("--metric", "recall_any").output.splitlines()
    assert (last.split()[-1], note.strip(), way.split()[-1]) == ("1.000", "partial", "+0.500")


def test_runs_of_other_cases_stand_in_a_table_of_their_own():
    a_run(REPORTS, "a", a_result("q1"), ended=at(1))
    a_run(REPORTS, "b", a_result("q2"), ended=at(2))
    lines = history().output.splitlines()
    assert [line.partition(":")[2] for line in lines if line.startswith("cases of version")] == [" 1 run", " 1 run"]
    assert any(line.strip().startswith("dataset ") and "→" in line for line in lines)


def test_without_a_choice_as_many_metrics_are_shown_as_have_room():
    a_run(REPORTS, "20260301_010000", ended=at(1))
    assert history().output.splitlines()[1].split()[5:] == ["recall_any@k", "mrr", "error_rate"]
    assert history(columns=70).output.splitlines()[1].split()[5:] == ["recall_any@k", "mrr"]


def test_the_table_has_the_last_twenty_runs_unless_more_are_asked_for():
    for number in range(22):
        a_run(REPORTS, f"r{number:02}", ended=f"2026-03-01T01:00:{number:02}+00:00")
    lines = history("--metric", "mrr").output.splitlines()
    assert next(line.split()[0] for line in lines if line.startswith("r") and line[1].isdigit()) == "r02"
    assert lines[-1] == "2 earlier runs; --last 22 shows all"
    assert "r00" in history("--metric", "mrr", "--last", "22").output
    assert len(json.loads(history("--json").output)["runs"]) == 22


def test_json_has_what_a_chart_is_drawn_from():
    a_run(REPORTS, "a", ended=at(1), missing=["x"])
    whole = json.loads(history("--format", "json").output)
    assert whole["schema"] == 1
    assert whole["skipped"] == []
    (run,) = whole["runs"]
    assert [*run] == [
        "run_id", "timestamp", "description", "dataset_version", "dataset_hash", "partial", "k", "total_tests",
        "outcomes", "flaky", "overall_score", "metrics", "changes"
    ]  # fmt: skip
    assert (run["timestamp"], run["partial"], run["metrics"]["mrr"], run["metrics"]["groundedness"]) == (
        at(1), True, 0.5, None
    )  # fmt: skip
    assert [*json.loads(history("--json", "--metric", "mrr").output)["runs"][0]["metrics"]] == ["mrr"]


def test_csv_has_a_row_a_run_and_nothing_in_it_is_run():
    a_run(REPORTS, "=a", ended=at(1), description="=cmd()")
    (row,) = csv.DictReader(history("--format", "csv").output.splitlines())
    assert (row["run_id"], row["description"], row["mrr"], row["groundedness"]) == ("'=a", "'=cmd()", "0.5", "")
    assert (row["partial"], row["passed"], row["changes"]) == ("false", "1", "")


def test_what_is_passed_over_is_a_line_beside_the_table_and_a_list_in_json():
    a_run(REPORTS, "a")
    a_run(REPORTS, "dead", is_finished=False)
    result = history("--json")
    assert result.stderr == "left out: dead: not finished: it has no metrics.json\n"
    assert json.loads(result.stdout)["skipped"] == [
        {"run_id": "dead", "reason": "not finished: it has no metrics.json"}
    ]
    assert result.exit_code == 0


def test_a_metric_that_no_run_has_is_a_usage_error():
    a_run(REPORTS, "a")
    result = history("--metric", "mmr")
    assert isinstance(result.exception, RagevalError)
    assert result.exception.problems == ("--metric: no run has 'mmr'; did you mean 'mrr'?",)


def test_where_there_are_no_runs_that_is_said():
    result = history()
    assert result.output.endswith("reports/runs holds no finished runs\n")
    assert (result.exit_code, json.loads(history("--json").output)["runs"]) == (0, [])
