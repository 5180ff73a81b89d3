"""Gates on the metrics of assertions: in a run, a comparison, the report, and wherever metrics are listed."""

from __future__ import annotations

import json

import pytest
from project import Project

BOT = "def answer(question):\n    return 'It costs 4 euros.' if 'cost' in question else 'No.'\n"
CASES = [
    {"id": "good", "question": "What does it cost?", "assert": [{"icontains": "4 euros", "metric": "prices"}]},
    {"id": "bad", "question": "How much?", "assert": [{"icontains": "4 euros", "metric": "prices"}, {"contains": "N"}]},
]
LENIENT = ("--rageval-gate", "assertions off")


@pytest.fixture
def shop(project: Project) -> Project:
    project.write("bot.py", BOT)
    project.cases(CASES)
    project.configure('target = "bot:answer"')
    return project


def test_a_gate_on_the_metric_of_assertions_fails_its_case(shop: Project):
    result = shop.run(*LENIENT, "--rageval-gate", "prices >= 1")
    assert shop.outcomes() == {"good": "passed", "bad": "failed"}
    assert any("prices is 0, gate >= 1" in line for line in result.outlines)


def test_gates_of_the_table_and_of_the_run_take_it(shop: Project):
    shop.configure('target = "bot:answer"\n[tool.rageval.gates]\nrun = ["prices >= 0.9"]\ncase = ["prices >= 0"]')
    result = shop.run(*LENIENT)
    assert shop.outcomes() == {"good": "passed", "bad": "passed"}
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*prices*0.5*0.9*"])


def test_the_command_takes_it(shop: Project):
    assert shop.rageval("run", "--gate", "prices >= 1", "--gate", "assertions off").ret == 1
    failed = shop.records()["bad"]["verdict"]["failed_gates"]
    assert [gate["metric"] for gate in failed] == ["prices"]


@pytest.mark.child_process
def test_workers_take_it(shop: Project):
    shop.run_process("-n", "2", *LENIENT, "--rageval-gate", "prices >= 1")
    assert shop.outcomes() == {"good": "passed", "bad": "failed"}


def test_a_metric_that_neither_cases_nor_the_project_have_is_refused_with_the_nearest_name(shop: Project):
    result = shop.run("--rageval-gate", "price >= 1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unknown metric 'price'; did you mean 'prices'?"])
    command = shop.rageval("run", "--gate", "price >= 1")
    assert command.ret == pytest.ExitCode.USAGE_ERROR
    command.stderr.fnmatch_lines(["*unknown metric 'price'; did you mean 'prices'?"])
    assert not shop.runs


def test_a_project_without_cases_is_told_of_the_unknown_metric(shop: Project):
    (shop.path / "evalcases" / "a.jsonl").unlink()
    result = shop.rageval("run", "--gate", "prices >= 1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "unknown metric 'prices'" in result.stderr.str()


def test_a_regression_gate_on_it_fails_a_comparison_and_older_runs_without_it_are_compared(shop: Project):
    shop.configure('target = "bot:answer"\nregression = ["prices drop 0%"]')
    shop.rageval("run", "--gate", "assertions off", "--run-id", "before")
    shop.write("bot.py", "def answer(question):\n    return 'No.'\n")
    shop.rageval("run", "--gate", "assertions off", "--run-id", "after")
    compared = shop.rageval("compare", "before", "after", "--json")
    content = json.loads(compared.stdout.str())
    assert compared.ret == 1
    assert "prices" in json.dumps(content)
    shop.configure('target = "bot:answer"')
    shop.cases([{"id": "good", "question": "What does it cost?"}, {"id": "bad", "question": "How much?"}])
    shop.rageval("run", "--run-id", "without")
    shop.configure('target = "bot:answer"\nregression = ["prices drop 0%"]')
    for pair in (["without", "after"], ["after", "without"]):
        assert shop.rageval("compare", *pair).ret in (0, 1)


def test_stored_runs_are_gated_by_it(shop: Project):
    shop.rageval("run", "--gate", "assertions off")
    gated = shop.rageval("gate", "latest", "--gate", "prices >= 1")
    assert gated.ret == 1, gated.stderr.str()
    assert "prices" in gated.stdout.str()


def test_metrics_and_doctor_know_it(shop: Project):
    shop.configure('target = "bot:answer"\n[tool.rageval.gates]\nrun = ["prices >= 0.9"]')
    listed = shop.rageval("metrics", "--json")
    assert "prices" in {metric["name"] for metric in json.loads(listed.stdout.str())["metrics"]}
    assert "The share of the assertions" in shop.rageval("metrics", "prices").stdout.str()
    assert "unknown metric" not in shop.rageval("doctor").stdout.str()


def test_the_name_of_a_built_in_metric_is_a_problem_of_the_case_file(shop: Project):
    shop.cases([{"id": "x", "question": "q", "assert": [{"contains": "4", "metric": "recall_any"}]}])
    for command in (["run"], ["cases", "validate"]):
        result = shop.rageval(*command)
        assert result.ret in (1, 2)
        said = result.stdout.str() + result.stderr.str()
        assert "a.jsonl:1:1: case 'x': assert: the metric 'recall_any' of an assertion is one of" in said
    assert "is one of the metrics already" in shop.rageval("doctor").stdout.str()
