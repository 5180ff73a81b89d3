"""The same run in one process and in several: same results, nothing lost, crashes said."""

from __future__ import annotations

import json
import sys

import pytest
from project import SOME, Project, a_case, a_missed_case, lines_with

MIXED = [
    *SOME,
    a_missed_case("missed"),
    a_case("broken", "boiling broken"),
    *(a_case(f"more-{n}", category="reasoning" if n % 2 else "factual") for n in range(12)),
]
BREAKING_BOT = """
import bot, os
def answer(question):
    if "broken" in question:
        raise ValueError("the index is gone")
    return bot.answer(question)
"""


@pytest.fixture
def mixed(project: Project) -> Project:
    project.cases(MIXED[:9], "evalcases/a.jsonl")
    project.cases(MIXED[9:], "evalcases/b.jsonl")
    project.write("breaking.py", BREAKING_BOT)
    project.configure('target = "breaking:answer"\n[tool.rageval.gates]\nrun = ["recall_any@5 >= 0.99"]')
    return project


@pytest.mark.parametrize("how", [["-n", "2"], ["-n", "4"], ["-n", "2", "--dist", "loadfile"]])
def test_workers_make_no_difference(mixed: Project, how: list[str]):
    alone = mixed.run()
    alone.assert_outcomes(passed=16, failed=2, errors=1)
    metrics, outcomes = mixed.stable_metrics(), mixed.outcomes()
    mixed.run(*how).assert_outcomes(passed=16, failed=2, errors=1)
    assert mixed.stable_metrics() == metrics
    assert mixed.outcomes() == outcomes


@pytest.mark.child_process
def test_order_makes_no_difference(mixed: Project):
    mixed.run()
    metrics = mixed.stable_metrics()
    mixed.write("conftest.py", "def pytest_collection_modifyitems(items):\n    items.reverse()\n")
    mixed.run()
    assert mixed.stable_metrics() == metrics
    mixed.process(sys.executable, "-m", "pytest", "-p", "randomly", "-p", "no:cov").assert_outcomes(
        passed=16, failed=2, errors=1
    )
    assert mixed.stable_metrics() == metrics


def test_a_failing_bot_is_an_error_of_its_case_in_one_line(mixed: Project):
    result = mixed.run()
    assert mixed.records()["broken"]["error"]["kind"] == "exception"
    assert "the index is gone" in mixed.records()["broken"]["error"]["message"]
    assert len(lines_with(result, "the index is gone")) <= 2
    assert mixed.metrics()["metrics"]["error_rate"]["mean"] == pytest.approx(1 / 18)
    assert mixed.metrics()["metrics"]["recall_any@5"]["n_error"] == 1


@pytest.mark.child_process
def test_a_crashed_worker_costs_one_case_and_is_said(project: Project):
    project.cases([a_case(f"q{n}") for n in range(19)] + [a_case("crash", "boiling crash")])
    project.write(
        "crashing.py",
        "import bot, os\ndef answer(question):\n"
        "    if 'crash' in question: os._exit(1)\n    return bot.answer(question)\n",
    )
    project.configure('target = "crashing:answer"')
    result = project.run("-n", "2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=19, errors=1)
    outcomes = project.outcomes()
    assert outcomes.pop("crash") == "error"
    assert list(outcomes.values()) == ["passed"] * 19
    assert project.records()["crash"]["error"]["kind"] == "crash"


@pytest.mark.child_process
def test_a_users_test_that_ends_the_process_loses_no_case(project: Project):
    project.cases([a_case(f"q{n}") for n in range(10)])
    project.write("test_exit.py", "import os\ndef test_exit():\n    os._exit(3)\n")
    result = project.run("-n", "2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(project.outcomes()) == 10


@pytest.mark.parametrize("how", [[], ["-n", "1"]])
def test_a_lone_surrogate_in_an_answer_fails_the_run(project: Project, how: list[str]):
    project.cases([a_case("boil"), a_case("odd")])
    project.write("odd.py", "def answer(question):\n    return 'water \\ud800 boils'\n")
    project.configure('target = "odd:answer"')
    result = project.run(*how)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(errors=2)
    assert project.records()["odd"]["error"]["kind"] == "invalid_response"


@pytest.mark.parametrize("how", [[], ["-n", "1"]])
def test_a_lone_surrogate_in_a_message_of_the_users_own_is_not_lost(project: Project, how: list[str]):
    project.cases([a_case("boil")])
    project.write(
        "conftest.py",
        "import pytest\n@pytest.fixture(autouse=True)\ndef odd():\n    raise ValueError('odd \\ud800 text')\n",
    )
    result = project.run(*how)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(errors=1)
    assert project.outcomes() == {"boil": "error"}


@pytest.mark.child_process
def test_every_line_on_disk_is_strict_json(mixed: Project):
    mixed.run("-n", "2")
    for name in ("results.jsonl", "observations.jsonl"):
        lines = (mixed.runs[-1] / name).read_bytes().decode("utf-8").splitlines()
        assert len(lines) == 18
        for line in lines:
            json.loads(line, parse_constant=pytest.fail)
