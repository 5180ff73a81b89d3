"""report.json: what every run leaves for programs, as the command writes it, and bounded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import SOME, Project, a_missed_case, lines_with

from pytest_rageval.export import report_json
from pytest_rageval.runs.flat_aggregates import with_aliases


def report(project: Project) -> dict[str, Any]:
    written: dict[str, Any] = json.loads((project.runs[-1] / "report.json").read_text(encoding="utf-8"))
    return written


def test_every_run_leaves_what_export_writes(project: Project):
    project.cases([*SOME, a_missed_case("missed")])
    project.run("-q", "--rageval-run-id", "one")
    written = (project.runs[-1] / "report.json").read_bytes()
    whole = report(project)
    assert whole["configuration"] == json.loads((project.runs[-1] / "config.json").read_text())
    assert whole["aggregates"] == with_aliases(project.metrics())
    assert [case["case_key"] for case in whole["cases"]] == sorted(case["case_key"] for case in whole["cases"])
    records = {
        id: {key: record[key] for key in record if key != "checksum"} for id, record in project.records().items()
    }
    assert {case["test_case_id"]: case for case in whole["cases"]} == records
    assert all("trace" in case for case in whole["cases"])
    for again in (["export", "one", "--format", "report"], ["export", "one", "--format", "json"], ["score", "one"]):
        (project.runs[-1] / "report.json").unlink()
        project.rageval(*again)
        assert (project.runs[-1] / "report.json").read_bytes() == written


def test_it_can_be_turned_off(project: Project):
    project.cases(SOME)
    project.configure('target = "bot:answer"\nreport_json = false')
    project.run("-q")
    assert not (project.runs[-1] / "report.json").exists()
    assert (project.runs[-1] / "summary.md").exists()


def test_a_large_run_writes_none_and_the_command_writes_all_cases(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(report_json, "MOST_CASES", 2)
    project.cases([*SOME, a_missed_case("missed")])
    project.run("-q", "--rageval-run-id", "one", "--rageval-repeat", "2")
    path = project.runs[-1] / "report.json"
    assert not path.exists()
    project.rageval("export", "one", "--format", "report")
    assert len(report(project)["cases"]) == 10
    path.write_text("out of date")
    project.rageval("score", "one")
    assert len(report(project)["cases"]) == 10, "an exported one is kept up to date"


def test_where_it_cannot_be_written_the_run_ends_all_the_same(project: Project, monkeypatch: pytest.MonkeyPatch):
    def full(path: Path, lines: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report_json, "write_lines", full)
    project.cases(SOME)
    result = project.run("-q", "--rageval-run-id", "one")
    assert result.ret == 0
    assert lines_with(result, "report.json cannot be written: No space left on device; `rageval export one")
