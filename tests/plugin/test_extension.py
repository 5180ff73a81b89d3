"""What a project adds of its own: fixtures, tests over cases, metrics, hooks, a bot behind HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fault_server import Connection, FaultServer
from project import BOT, SOME, Project, a_case, a_missed_case, lines_with


@pytest.fixture
def bot_server() -> Iterator[FaultServer]:
    """The project's bot behind real HTTP."""
    bot: dict[str, Any] = {}
    exec(BOT, bot)

    async def answers(connection: Connection) -> None:
        await connection.reply(200, json.dumps(bot["answer"](connection.request.json["question"])).encode())

    with FaultServer(answers) as server:
        yield server


@pytest.mark.parametrize("how", [[], ["-n", "2"]])
def test_a_bot_behind_http_is_asked_once_a_case(project: Project, bot_server: FaultServer, how: list[str]):
    project.cases(SOME)
    project.run("--rageval-target", bot_server.url, "--rageval-param", "min_score=0.5", *how).assert_outcomes(passed=4)
    asked = [request.json for request in bot_server.requests]
    assert sorted(one["question"] for one in asked) == sorted(case["question"] for case in SOME)
    assert {request.path for request in bot_server.requests} == {"/api/v1/ask?debug=true"}
    assert all(one["min_score"] == 0.5 and one["k"] == 5 and "folder_mode" not in one for one in asked)


@pytest.mark.parametrize(
    "override",
    [
        "return lambda question: bot.answer(question)",
        "import httpx\n    with httpx.Client(base_url='{url}') as client:\n        yield client",
        pytest.param("import httpx\n    return httpx.AsyncClient(base_url='{url}')", marks=pytest.mark.child_process),
    ],
)
def test_a_conftest_gives_the_client(project: Project, bot_server: FaultServer, override: str):
    project.configure("")
    project.cases(SOME)
    project.write(
        "conftest.py",
        "import pytest, bot\n@pytest.fixture(scope='session')\ndef rag_client():\n    "
        + override.format(url=bot_server.url),
    )
    # An asynchronous client is never closed here, of which a session in this process would complain.
    (project.run_process if "Async" in override else project.run)().assert_outcomes(passed=4)


def test_a_sub_folder_may_have_another_client(project: Project):
    project.cases([a_case("one"), a_case("two")], "evalcases/a.jsonl")
    project.cases([a_case("one"), a_case("two")], "evalcases/other/b.jsonl")
    project.write(
        "evalcases/other/conftest.py",
        "import pytest\n@pytest.fixture(scope='session')\ndef rag_client():\n    return lambda question: 'nothing'\n",
    )
    project.run().assert_outcomes(passed=2, failed=2)


def test_a_hook_of_a_folder_that_is_collected_later_does_not_see_cases_of_others(project: Project):
    project.cases([a_case("one"), a_case("two")], "evalcases/a.jsonl")
    project.cases([a_case("one")], "evalcases/later/b.jsonl")
    hook = "def pytest_rageval_result(item, result):\n    raise ValueError('not mine')\n"
    project.write("evalcases/later/conftest.py", hook)
    result = project.run()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["FAILED evalcases/later/b.jsonl::one - pytest_rageval_result: ValueError:*"])


def test_a_function_scoped_client_is_asked_on_demand(project: Project):
    project.cases(SOME)
    project.write("conftest.py", "import pytest, bot\n@pytest.fixture\ndef rag_client():\n    return bot.answer\n")
    project.run().assert_outcomes(passed=4)


def test_tests_of_the_users_own_run_over_a_file(project: Project):
    project.cases([*SOME, a_missed_case("missed")], "mine/own.jsonl")
    body = "result = rageval.evaluate(eval_case)\nassert result.scores['mrr'] >= 0\nresult.assert_gates()"
    project.own_test("own.jsonl", body, "mine/test_own.py", select="not unanswerable")
    result = project.run()
    result.assert_outcomes(passed=3, failed=1)
    assert lines_with(result, "FAILED mine/test_own.py::test_own[missed] - ")
    keys = [record["case_key"] for record in project.records().values()]
    assert "mine/own.jsonl::boil::mine/test_own.py::test_own[boil]" in keys


def test_a_marker_that_cannot_be_used_is_said(project: Project):
    project.own_test("gone.jsonl", "pass")
    result = project.run()
    assert lines_with(result, "gone.jsonl: there is no such file beside the test")
    assert result.ret != 0


METRIC = """
from pytest_rageval import NotApplicable, Observation, metric

@metric(layer="L5", better="lower", scale=(0, 1000))
def answer_words(obs: Observation):
    '''Words in the answer.'''
    return len(obs.answer.text.split()) if obs.answer.text else NotApplicable("no answer")
"""


def test_a_metric_of_the_projects_own_by_hook(project: Project):
    project.cases(SOME)
    project.write("conftest.py", METRIC + "\ndef pytest_rageval_metrics(config):\n    return [answer_words]\n")
    project.run("--rageval-gate", "answer_words <= 20").assert_outcomes(passed=4)
    assert project.records()["boil"]["scores"]["answer_words"] == 8
    assert project.metrics()["metrics"]["answer_words"]["n_not_applicable"] == 1


def test_a_metric_of_an_installed_package_by_entry_point(project: Project, monkeypatch: pytest.MonkeyPatch):
    project.cases([a_case("boil")])
    project.write("their_metrics.py", METRIC)
    project.write("their_metrics-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: their-metrics\nVersion: 1.0\n")
    project.write(
        "their_metrics-1.0.dist-info/entry_points.txt", "[rageval.metrics]\nwords = their_metrics:answer_words\n"
    )
    monkeypatch.syspath_prepend(project.path)
    project.run("--rageval-metrics", "answer_words").assert_outcomes(passed=1)
    assert list(project.records()["boil"]["scores"]) == ["answer_words"]


def test_a_metric_that_breaks_is_an_error_of_its_case(project: Project):
    project.cases([a_case("boil"), a_case("odd", tags=["odd"])])
    project.write(
        "conftest.py",
        METRIC.replace("return len", "assert 'odd' not in obs.case.tags, 'odd case'\n    return len")
        + "\ndef pytest_rageval_metrics(config):\n    return [answer_words]\n",
    )
    result = project.run()
    result.assert_outcomes(passed=1, errors=1)
    assert lines_with(result, "metric answer_words raised AssertionError: odd case")


def test_hooks_see_and_change_what_they_are_for(project: Project):
    project.cases([a_case("boil")])
    project.write(
        "conftest.py",
        "import dataclasses\n"
        "def pytest_rageval_case(case):\n"
        "    return dataclasses.replace(case, question=case.question + ' (asked politely)')\n"
        "def pytest_rageval_result(item, result):\n"
        "    print('SEEN', item.name, result.outcome, result.scores['mrr'])\n"
        "def pytest_rageval_run_config(config, run_config):\n"
        "    run_config['team'] = 'water'\n",
    )
    result = project.run("-s")
    assert lines_with(result, "SEEN boil passed 1.0")
    assert project.records()["boil"]["question"].endswith("(asked politely)")
    assert project.config()["team"] == "water"
