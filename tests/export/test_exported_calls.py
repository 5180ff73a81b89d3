"""Tool calls in the flat exports: names, number and JSON, and never a formula."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from project import Project

BOT = """
def answer(question):
    if "plain" in question:
        return {"answer": "4 euros"}
    calls = [
        {"name": "=HYPERLINK(1)", "arguments": {"query": "@SUM(1)", "page": 2}, "result": "r" * 5000},
        {"name": "get_order", "arguments": {}, "error": "no such order"},
    ]
    return {"answer": "4 euros", "tool_calls": calls if "many" in question else []}
"""


@pytest.fixture
def agent(project: Project) -> Project:
    project.write("bot.py", BOT)
    project.cases([{"id": word, "question": word} for word in ("many", "none", "plain")])
    project.configure('target = "bot:answer"')
    project.rageval("run")
    return project


def rows(project: Project, *options: str) -> dict[str, dict[str, str]]:
    written = project.rageval("export", "latest", "--format", "csv", "--output", "-", *options).stdout.str()
    return {row["test_case_id"]: row for row in csv.DictReader(io.StringIO(written))}


def test_calls_have_columns_that_no_spreadsheet_runs(agent: Project):
    table = rows(agent)
    many = table["many"]
    assert (many["tool_names"], many["tool_call_count"]) == ("'=HYPERLINK(1), get_order", "2")
    first, second = json.loads(many["tool_calls_json"])
    assert first["arguments"] == {"query": "@SUM(1)", "page": 2}
    assert len(first["result"]) <= 201
    assert second == {"name": "get_order", "arguments": {}, "error": "no such order"}
    assert (table["none"]["tool_names"], table["none"]["tool_call_count"], table["none"]["tool_calls_json"]) == (
        "", "0", "[]",
    )  # fmt: skip
    assert {table["plain"][name] for name in ("tool_names", "tool_call_count", "tool_calls_json")} == {""}


def test_full_text_has_whole_results_and_a_run_without_observations_the_lines_of_its_records(agent: Project):
    assert json.loads(rows(agent, "--full-text")["many"]["tool_calls_json"])[0]["result"] == "r" * 5000
    (agent.runs[-1] / "observations.jsonl").unlink()
    many = rows(agent)["many"]
    assert many["tool_names"] == many["tool_call_count"] == ""
    assert json.loads(many["tool_calls_json"])[1].startswith("2 get_order()")


def test_typed_tables_have_the_same_columns(agent: Project):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'parquet'")
    assert agent.rageval("export", "latest", "--format", "parquet", "--output", "run.parquet").ret == 0
    table: list[dict[str, Any]] = parquet.read_table(agent.path / "run.parquet").to_pylist()
    many = next(row for row in table if row["test_case_id"] == "many")
    assert (many["tool_names"], many["tool_call_count"]) == ("=HYPERLINK(1), get_order", 2)
