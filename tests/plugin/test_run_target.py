"""A target that is an earlier run: named as everywhere, and by its id in config.json."""

from __future__ import annotations

import json

import pytest
from project import SOME, Project, lines_with


@pytest.mark.parametrize(("reference", "how"), [("latest", []), ("latest", ["-n", "2"]), ("reports/runs/first", [])])
def test_an_earlier_run_is_the_target_by_any_of_its_names(project: Project, reference: str, how: list[str]):
    project.cases(SOME)
    project.run("--rageval-run-id", "first")
    project.run("--rageval-target", f"run:{reference}", "--rageval-run-id", "again", *how)
    again = json.loads((project.path / "reports/runs/again/config.json").read_text(encoding="utf-8"))
    assert again["target"] == "run:first"
    assert project.metrics()["volatile"]["run_id"] == "again"
    assert project.metrics()["outcomes"]["passed"] == len(SOME)


def test_a_run_that_is_not_there_comes_with_what_was_probably_meant(project: Project):
    project.cases(SOME)
    project.run("--rageval-run-id", "first")
    result = project.run("--rageval-target", "run:fist")
    assert lines_with(result, "target run:fist: there is no run 'fist'; did you mean 'first'?")


@pytest.mark.parametrize("how", [[], ["-n", "2"]], ids=["one process", "workers"])
def test_a_torn_line_of_the_run_that_answers_is_said_once_at_the_end(project: Project, how: list[str]):
    project.cases(SOME)
    project.run("--rageval-run-id", "first")
    with (project.path / "reports/runs/first/observations.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"schema": 2, "case_')
    result = project.run("--rageval-target", "run:first", *how)
    assert len(lines_with(result, "dropped, the line was cut off while it was written")) == 1
