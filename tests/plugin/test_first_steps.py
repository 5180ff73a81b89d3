"""What a person stumbles over in the first hour: names of runs, limits, folders, and figures of a run that broke."""

from __future__ import annotations

import pytest
from judge_server import JudgeServer
from project import SOME, Project, a_case, rageval


def test_the_latest_run_is_the_one_begun_last_whatever_its_name(project: Project):
    project.cases(SOME[:1])
    for name in ("zebra", "apple"):
        project.run("--rageval-run-id", name).assert_outcomes(passed=1)
    assert "apple" in rageval(project.path, "runs", "show", "latest").stdout.splitlines()[0]
    assert "zebra" in rageval(project.path, "runs", "show", "latest~1").stdout.splitlines()[0]


def test_a_gate_that_cannot_be_read_is_not_called_a_wrong_list(project: Project):
    project.cases(SOME)
    project.configure('target = "bot:answer"', '[tool.rageval.gates]\ncases = []\ncase = ["mrr >= 0.1"]')
    result = project.run()
    result.stderr.fnmatch_lines(["*gates.cases is not a known key; did you mean 'case'?*"])
    assert "valid tuple" not in "\n".join(result.errlines)


def test_a_project_without_a_case_file_is_told_where_they_are_looked_for(project: Project):
    result = project.run()
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["rageval: no file holds cases: nothing matches evalcases/[*][*]/[*].jsonl, *"])


def test_the_overall_score_of_a_broken_run_says_what_it_is_of(project: Project):
    project.write("breaking.py", "import bot\ndef answer(q):\n    assert 'boil' not in q\n    return bot.answer(q)\n")
    project.configure('target = "breaking:answer"')
    project.cases(SOME)
    project.run().stdout.fnmatch_lines(["4 cases: 3 passed, 1 error · overall * of the 3 without errors"])


def test_an_explained_judge_error_still_shows_what_was_asked_and_came(project: Project):
    project.cases([a_case("boil")])
    with JudgeServer("5 out of 5!") as server:
        project.run("--rageval-judge", f"openai:judge@{server.url}").assert_outcomes(errors=1)
    shown = rageval(project.path, "explain", "latest", "boil").stdout
    assert "What is the boiling point of water?" in shown
    assert "Water boils at 100 degrees at sea level." in shown
    assert "notes/water.md > # Water > ## Boiling" in shown


def test_a_run_that_is_resumed_says_what_it_had(project: Project):
    project.cases(SOME)
    project.run("-k", "boil", "--rageval-run-id", "half")
    result = project.run("--rageval-resume", "half")
    result.stdout.fnmatch_lines(["resumed half: 1 results were there already"])
