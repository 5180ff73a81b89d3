"""`rageval run` of case files of which most cases are read again comes to what it comes to when all are held."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from project import Project, a_case, a_missed_case
from run_files import records_of, stable_bytes

from pytest_rageval.cases import long_case_file
from pytest_rageval.targets import answer_files

CASES = [
    *(a_case(f"q{number}", tags=["even"] if number % 2 == 0 else []) for number in range(7)),
    a_missed_case("missed", category="multi_hop"),
    a_case("unknown", "Who won?", answerable=False),
]
CHUNK = {"chunk_id": "c", "rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling"}
ANSWER: Mapping[str, Any] = {
    "answer": "Water boils at 100 degrees at sea level.",
    "debug": {"retrieved_chunks": [CHUNK]},
}


@pytest.fixture
def recorded(project: Project) -> Project:
    """Two files of cases and one of answers."""
    project.cases(CASES)
    project.cases([a_case("boil"), a_case("a-first"), a_case("freeze")], "evalcases/b.jsonl")
    project.cases(
        {"id": case_id, **ANSWER} for case_id in (*(case["id"] for case in CASES), "boil", "a-first", "freeze")
    )
    (project.path / "evalcases/a.jsonl").rename(project.path / "answers.jsonl")
    project.cases(CASES)
    project.configure('target = "answers:answers.jsonl"')
    return project


def few_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_case_file, "HELD", 2)
    monkeypatch.setattr(answer_files, "HELD", 2)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--repeat", "2"],
        ["--shard", "1/2"],
        ["--gate", "mrr >= 1 when tag=even"],
        ["evalcases/b.jsonl"],
        ["--only", "outcome:failed", "--from", "first"],
    ],
    ids=lambda options: options[0] if options else "all",
)
def test_records_metrics_and_exit_code_are_the_same(
    recorded: Project, monkeypatch: pytest.MonkeyPatch, options: list[str]
):
    recorded.rageval("run", "--run-id", "first")
    held = recorded.rageval("run", "--run-id", "held", *options)
    few_held(monkeypatch)
    again = recorded.rageval("run", "--run-id", "again", *options)
    assert held.ret == again.ret == (0 if "evalcases/b.jsonl" in options else 1)
    runs = [recorded.path / "reports/runs" / name for name in ("held", "again")]
    assert records_of(runs[0]) == records_of(runs[1])
    assert stable_bytes(runs[0]) == stable_bytes(runs[1])


def test_what_does_not_fit_the_answers_is_said_alike(recorded: Project, monkeypatch: pytest.MonkeyPatch):
    recorded.cases([*CASES, a_case("new"), a_case("boil")])
    held = recorded.rageval("run")
    few_held(monkeypatch)
    again = recorded.rageval("run")
    assert held.ret == again.ret == 4
    assert held.errlines == again.errlines
    assert len(held.errlines) == 2


def test_a_run_that_was_interrupted_is_finished_from_its_place(recorded: Project, monkeypatch: pytest.MonkeyPatch):
    assert recorded.rageval("run", "--run-id", "whole").ret == 1
    few_held(monkeypatch)
    assert recorded.rageval("run", "--run-id", "begun").ret == 1
    whole, begun = (recorded.path / "reports/runs" / name for name in ("whole", "begun"))
    (begun / "metrics.json").unlink()
    for name in ("results.jsonl", "observations.jsonl"):
        lines = (begun / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (begun / name).write_text("".join(lines[:5]), encoding="utf-8")
    resumed = recorded.rageval("run", "--resume", "begun")
    assert resumed.ret == 1
    assert records_of(begun) == records_of(whole)
    assert stable_bytes(begun) == stable_bytes(whole)


def test_a_case_file_that_changes_while_the_run_goes_on_ends_it_and_the_run_can_be_finished(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    few_held(monkeypatch)
    # One byte in its place: whoever reads meanwhile never meets a file that is cut short.
    spoiler = (
        "import bot\n"
        "def answer(question):\n"
        "    if 'q3' in question:\n"
        "        with open('evalcases/a.jsonl', 'r+b') as file:\n"
        "            file.seek(file.read().index(b'q9'))\n"
        "            file.write(b'Q')\n"
        "    return bot.answer(question)\n"
    )
    project.write("spoiler.py", spoiler)
    project.configure('target = "spoiler:answer"\nconcurrency = 1\nlook_ahead = 2')
    path = project.cases([a_case(f"q{n}", f"q{n}: at what temperature is boiling?") for n in range(12)])
    written = path.read_text()
    result = project.rageval("run", "--run-id", "one", "--json")
    assert result.ret == 1
    result.stderr.fnmatch_lines(
        ["ERROR: evalcases/a.jsonl:10: has changed since the run began; put it back and *--resume`*"]
    )
    recorded = records_of(project.path / "reports/runs/one")
    assert 3 < len(recorded) < 12
    assert json.loads(result.outlines[-1])["next"][0] == "rageval run --resume one"
    Path(path).write_text(written)
    project.write("spoiler.py", "from bot import answer\n")
    assert project.rageval("run", "--resume", "one").ret == 0
    assert project.metrics()["outcomes"]["passed"] == 12
