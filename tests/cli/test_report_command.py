"""`report.html` at the end of a run, and `rageval report`: what is written where, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project import SOME, Project, a_case, a_missed_case

from pytest_rageval.render.html import report_writer


def page_of(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def title(folder: Path) -> str:
    return page_of(folder).partition("<title>")[2].partition("</title>")[0]


def test_a_run_ends_with_its_report(project: Project):
    project.cases(SOME)
    result = project.run()
    folder = project.runs[-1]
    result.stdout.fnmatch_lines([f"report:  reports/runs/{folder.name}/report.html"])
    assert title(folder) == f"○ No baseline · {folder.name}"


def test_a_table_turns_it_off(project: Project):
    project.cases(SOME)
    project.configure('target = "bot:answer"\nreport = false')
    result = project.run()
    result.stdout.no_fnmatch_line("report:*")
    assert not (project.runs[-1] / "report.html").exists()


def test_the_command_writes_the_same_page_again(project: Project):
    project.cases([a_case("one"), a_missed_case("two")])
    project.run("--rageval-run-id", "one")
    path = project.runs[-1] / "report.html"
    before = path.read_bytes()
    path.unlink()
    result = project.rageval("report", "latest")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["report: *reports/runs/one/report.html"])
    assert path.read_bytes() == before


def test_another_run_can_be_compared_with_and_it_is_the_page_of_compare(project: Project):
    project.cases([a_case("one"), a_case("two")])
    project.run("--rageval-run-id", "a")
    project.cases([a_case("one"), a_case("two")])
    project.run("--rageval-run-id", "b")
    assert project.rageval("report", "b", "--compare", "a", "--output", "b.html").ret == 0
    assert project.rageval("compare", "a", "b", "--format", "html", "--output", "c.html").ret == 0
    assert (project.path / "b.html").read_bytes() == (project.path / "c.html").read_bytes()
    assert "compared with a" in (project.path / "b.html").read_text(encoding="utf-8")


def test_a_page_may_be_held_small(project: Project):
    project.cases([a_case(f"case-{number}") for number in range(240)])
    project.run("--rageval-run-id", "one")
    assert (project.runs[-1] / "report.html").stat().st_size > 130_000
    assert project.rageval("report", "one", "--max-mb", "0.13").ret == 0
    assert (project.runs[-1] / "report.html").stat().st_size <= 130_000
    assert "of them with their page in this file" in page_of(project.runs[-1])
    assert project.rageval("report", "one", "--max-mb", "0.1").ret == 0
    assert (project.runs[-1] / "report.html").stat().st_size <= 100_000


def test_an_interrupted_or_damaged_run_has_a_page_that_says_what_is_missing_or_wrong(project: Project):
    project.cases(SOME)
    project.run("--rageval-run-id", "one")
    path = project.runs[-1] / "results.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"\n", b"\n[", 1))
    assert project.rageval("report", "one").ret == 0
    for said in ("This run cannot be read:", "results.jsonl:2: does not match its checksum"):
        assert said in page_of(project.runs[-1])
    path.write_bytes(whole)
    (project.runs[-1] / "metrics.json").unlink()
    assert project.rageval("report", "one").ret == 0
    for said in ("This run is interrupted:", "metrics.json</code></td><td>✘ missing", "pytest --rageval-resume one"):
        assert said in page_of(project.runs[-1])


def test_a_report_that_cannot_be_written_is_a_line_and_no_more(project: Project, monkeypatch: pytest.MonkeyPatch):
    def broken(*args: object, **named: object) -> str:
        raise ValueError("a fault of ours")

    monkeypatch.setattr(report_writer, "report_parts", broken)
    project.cases(SOME)
    result = project.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["report: not written: ValueError: a fault of ours; `rageval report * tries again"])


def test_a_bad_answer_becomes_a_draft_once(project: Project):
    project.cases([a_missed_case("one", question="What is the boiling point of milk?"), a_case("two")])
    project.run("--rageval-run-id", "now")
    result = project.rageval("cases", "draft", "now", "one")
    result.stdout.fnmatch_lines(
        ["*/evalcases/a.drafts.jsonl: a new draft, draft-*; no run asks it before it is labelled"]
    )
    (line,) = (project.path / "evalcases" / "a.drafts.jsonl").read_text(encoding="utf-8").splitlines()
    draft = json.loads(line)
    assert draft["question"] == "What is the boiling point of milk?"
    assert draft["metadata"]["draft"]["case"] == "evalcases/a.jsonl::one"
    assert draft["metadata"]["draft"]["answer"] == project.records()["one"]["answer"]
    assert "gold" not in draft
    again = project.rageval("cases", "draft", "now", "evalcases/a.jsonl::one")
    again.stdout.fnmatch_lines(["*: nothing new"])
    assert project.rageval("cases", "validate", "evalcases/a.drafts.jsonl").ret == 0
