"""A run says which stored versions it is made from, and is compared with the run that it is told to."""

from __future__ import annotations

import json

from project import SOME, Project, a_case, a_missed_case, lines_with

ORIGIN = """
[tool.rageval.origin]
agent = "shop-bot"
agent_version = 4
dataset = "products"
dataset_version = 2
source = "connector"
"""


def test_the_versions_that_a_run_is_made_from_stand_in_its_configuration_and_change_nothing(project: Project):
    project.cases(SOME)
    assert project.rageval("run", "--run-id", "plain").ret == 0
    project.configure('target = "bot:answer"', ORIGIN)
    assert project.rageval("run", "--run-id", "web").ret == 0
    plain, web = (
        json.loads((project.path / "reports/runs" / run / "config.json").read_text()) for run in ("plain", "web")
    )
    assert web["origin"] == {
        "agent": "shop-bot", "agent_version": 4, "dataset": "products", "dataset_version": 2, "source": "connector",
    }  # fmt: skip
    assert "origin" not in plain
    assert web["config_hash"] == plain["config_hash"]


def test_a_source_that_does_not_exist_is_named(project: Project):
    project.cases(SOME)
    project.configure('target = "bot:answer"', ORIGIN.replace("connector", "telepathy"))
    result = project.rageval("run")
    assert result.ret == 4
    assert any("origin.source" in line and "uploaded answers" in line for line in lines_with(result, "telepathy"))


def test_a_kept_run_can_stand_for_the_baseline(project: Project):
    project.cases([a_case("a"), a_case("b")])
    assert project.rageval("run", "--run-id", "first").ret == 0
    project.cases([a_case("a"), a_missed_case("b")])
    project.rageval("run", "--run-id", "second", "--baseline", "run:first", "--ignore-invariants")
    comparison = project.metrics()["comparison"]
    assert comparison["baseline_run_id"] == "first"
    wrong = project.rageval("run", "--baseline", "run:fisrt")
    assert wrong.ret == 4
    assert lines_with(wrong, "there is no run 'fisrt'; did you mean 'first'?")


def test_no_baseline_is_compared_with_where_none_is_wanted(project: Project):
    project.cases(SOME)
    assert project.rageval("run", "--update-baseline").ret == 0
    project.cases([a_case("other")])
    assert project.rageval("run", "--baseline", "none").ret == 0
    assert project.metrics()["comparison"] is None
    assert project.rageval("run", "--baseline", "none", "--update-baseline").ret == 4
