"""Commands as evaluation scripts usually have them: they work, and say once what an option is called here."""

from __future__ import annotations

import json

import pytest
from judge_server import JudgeServer
from project import SOME, Project, a_case


def judged(project: Project) -> object:
    return json.loads((project.runs[-1] / "config.json").read_text(encoding="utf-8"))["judge"]


def test_a_script_of_old_runs_the_cases_of_a_file_outside_the_globs(project: Project):
    project.configure("")
    project.cases(SOME[:2], "eval/eval_set.jsonl")
    result = project.rageval(
        "run", "--eval-set", "eval/eval_set.jsonl", "--api-url=bot:answer", "--judge-model", "stub:0.9", "--use-judge",
        "--run-id", "first", "--output-dir", "out",
    )  # fmt: skip
    assert result.ret == 0, result.errlines
    assert (project.path / "out/runs/first/metrics.json").is_file()
    names = {"eval-set": "PATHS", "api-url": "--target", "judge-model": "--judge", "output-dir": "--reports"}
    for earlier, now in {**names, "use-judge": "not needed"}.items():
        assert result.errlines.count(f"--{earlier} is {now} here") == 1
    assert not [line for line in project.rageval("run", "--help").outlines if "--eval-set" in line]


@pytest.mark.parametrize("verb", ["score", "abstention", "judge"])
def test_a_stored_run_may_be_named_by_an_option(project: Project, verb: str):
    project.cases(SOME)
    project.run("--rageval-run-id", "one").assert_outcomes(passed=4)
    result = project.rageval(verb, "--run-id", "one")
    assert (result.ret, "--run-id is RUN here" in result.errlines) == (0, True)


def test_a_folder_that_is_named_is_searched_whole_where_no_glob_finds_a_case_in_it(project: Project):
    project.cases(SOME[:1], "eval/deep/eval_set.jsonl")
    project.write("eval/answers.jsonl", '{"id": "x", "answer": "no case"}\n')
    assert project.rageval("run", "eval").ret == 0
    assert [*project.records()] == [SOME[0]["id"]]


def test_aggregates_alone_follow_new_labels_and_leave_every_score(project: Project):
    project.cases([a_case("boil", category="old")])
    project.run().assert_outcomes(passed=1)
    before = project.records()["boil"]
    elsewhere = [{"rel_path": "notes/elsewhere.md", "heading_path": ""}]
    project.cases([a_case("boil", category="new", gold_supports=elsewhere)], "labels/a.jsonl")
    assert project.rageval("score", "latest", "--cases", "labels", "--aggregate-only").ret == 0
    after = project.records()["boil"]
    assert (after["category"], after["scores"], after["verdict"]) == ("new", before["scores"], before["verdict"])
    assert [*project.metrics()["by_category"]] == ["new"]
    project.rageval("score", "latest")
    assert project.records()["boil"]["scores"]["recall_any@5"] == 0, "what is scored later goes by the labels too"


def test_a_run_that_is_judged_again_keeps_what_is_known_of_its_judge(project: Project):
    project.cases([a_case("boil")])
    with JudgeServer() as server:
        project.run("--rageval-judge", f"openai:judge-2026-01-01@{server.url}").assert_outcomes(passed=1)
        before = judged(project)
        result = project.rageval("judge", "latest", "--judge-cache", "refresh")
    assert judged(project) == before
    assert "named to be scored" not in "\n".join([*result.outlines, *result.errlines])
