"""A known failure that fails one more gate is a new failure, in every face and in the exit codes."""

from __future__ import annotations

import pytest
from project import Project

from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.config.settings import Settings
from pytest_rageval.render.html.case_view import case_views
from pytest_rageval.render.html.first_screen import first_screen
from pytest_rageval.render.html.page_run import PageRun, compared_side, read_page
from pytest_rageval.runs.reader import StoredRun

BOT = '''
import os


def answer(question):
    """Miss the gold place from the beginning; answer wrongly as well once WRONG is set."""
    text = "It boils when it is hot." if os.environ.get("WRONG") else "It boils at 100 degrees."
    return {"answer": text, "retrieved_chunks": [{"chunk_id": "other", "text": "Ice melts."}]}
'''
CASE = {"id": "known", "question": "When does water boil?", "gold": {"answer": "100 degrees", "chunk_ids": ["water"]}}
TABLE = """
target = "bot:answer"
known_failures = "ratchet"
[tool.rageval.gates]
case = ["gold_in_answer >= 0.5", "recall_any >= 1"]
"""


@pytest.fixture
def known_failure(project: Project) -> Project:
    project.write("bot.py", BOT)
    project.cases([CASE])
    project.configure(TABLE)
    project.rageval("run", "--update-baseline")
    return project


def test_it_passes_as_long_as_it_fails_the_same_gates(known_failure: Project):
    result = known_failure.rageval("run")
    assert result.ret == 0
    assert "Passes: nothing got worse. 0 of 1 case passes, was 0" in result.stdout.str()


@pytest.mark.parametrize("face", ["run", "pytest"])
def test_one_more_gate_fails_the_build(known_failure: Project, monkeypatch: pytest.MonkeyPatch, face: str):
    monkeypatch.setenv("WRONG", "1")
    result = known_failure.rageval("run") if face == "run" else known_failure.run()
    assert result.ret == 1
    assert "Fails the build: 1 known failure fails a new gate. " in result.stdout.str()
    assert known_failure.metrics()["comparison"]["fails_new_gate"] == ["evalcases/a.jsonl::known"]
    result.stdout.fnmatch_lines(
        ["*fails a gate that did not fail in the baseline:", "  known (gold_in_answer, token_f1)"]
    )
    compared = known_failure.rageval("compare", "baseline", "latest")
    assert compared.ret == 1
    assert "Fails the build: 1 known failure fails a new gate. " in compared.stdout.str()


def test_its_cause_is_that_of_the_new_gate(known_failure: Project, monkeypatch: pytest.MonkeyPatch):
    """Nothing about the gold place changed: it was missed before as well."""
    monkeypatch.setenv("WRONG", "1")
    result = known_failure.rageval("run")
    cause = "not what the gold answer says"
    assert f"1 × {cause}" in result.stdout.str()
    folder = known_failure.runs[-1]
    assert [each["text"] for each in known_failure.metrics()["causes"]] == [cause]
    assert f"**1 × {cause}**" in (folder / "summary.md").read_text("utf-8")
    assert f"1 × {cause}" in known_failure.rageval("compare", "baseline", "latest").stdout.str()
    assert f"{cause}" in known_failure.rageval("explain", "latest", "known", "--format", "markdown").stdout.str()
    only = known_failure.rageval("run", "--only", "cause:wrong_answer")
    assert "1 case: 1 failed" in only.stdout.str()


def test_explain_marks_a_gate_that_was_added_and_would_have_failed_before_as_known(known_failure: Project):
    """The gates of now decide about both runs: one that the baseline had not, but fails too, is no new failure."""
    known_failure.configure(TABLE.replace('"recall_any >= 1"]', '"recall_any >= 1", "mrr >= 0.5"]'))
    assert known_failure.rageval("run").ret == 0
    assert "mrr is 0, gate >= 0.5" in known_failure.rageval("explain", "latest", "known").stdout.str()
    assert "it did not fail before" not in known_failure.rageval("explain", "latest", "known").stdout.str()


def test_its_page_says_that_it_failed_before(known_failure: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WRONG", "1")
    known_failure.rageval("run")
    page = read_page_of(known_failure)
    [view] = case_views(page, page.cases)
    assert view is not None
    assert view.head.change == "failed before, and fails a new gate now"
    new_gates = {gate.metric for gate in view.failure.failed if gate.is_new}
    assert new_gates == {"token_f1", "gold_in_answer"}
    assert first_screen(page).news.first[0].note == "fails a new gate"


def read_page_of(project: Project) -> PageRun:
    run = StoredRun(project.runs[-1])
    baseline = project.path / "reports" / "baseline.json"
    return read_page(side_of_run(run), compared_side(run, project.path / "reports", baseline), Settings())
