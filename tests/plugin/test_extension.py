"""What a project adds of its own: fixtures, tests over cases, metrics, hooks, a target or a case that it changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fault_server import Connection, FaultServer
from project import ALONE_AND_WITH_WORKERS, ASSERT_GATES, BOT, SOME, Project, a_case, a_missed_case, lines_with


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
    ("scope", "override"),
    [
        ("session", "return lambda question: bot.answer(question)"),
        ("function", "return bot.answer"),
        ("session", "import httpx\n    with httpx.Client(base_url='{url}') as client:\n        yield client"),
        pytest.param(
            "session", "import httpx\n    return httpx.AsyncClient(base_url='{url}')", marks=pytest.mark.child_process
        ),
    ],
)
def test_a_conftest_gives_the_client(project: Project, bot_server: FaultServer, scope: str, override: str):
    project.configure("")
    project.cases(SOME)
    project.write(
        "conftest.py",
        f"import pytest, bot\n@pytest.fixture(scope='{scope}')\ndef rag_client():\n    "
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


CLIENT = (
    "import os, sys, pytest\nsys.path.insert(0, os.getcwd())\nimport bot\n"
    "@pytest.fixture(scope='session')\ndef rag_client():\n    return bot.answer\n"
)
NOBODY = "http://127.0.0.1:9"
"""A server that is not there."""


@ALONE_AND_WITH_WORKERS
@pytest.mark.parametrize("conftest", ["conftest.py", "evalcases/conftest.py"])
def test_a_target_that_nobody_uses_is_neither_asked_nor_named(project: Project, conftest: str, how: list[str]):
    project.cases(SOME)
    project.configure(f'target = "{NOBODY}"')
    project.write(conftest, CLIENT)
    project.run(*how).assert_outcomes(passed=4)
    assert project.config()["target"] == f"rag_client fixture of {conftest}"


def test_a_target_that_is_no_function_of_the_conftest_counts_all_the_same(project: Project):
    project.cases(SOME)
    project.configure(f'target = "{NOBODY}"')
    maker = CLIENT.replace("def rag_client", "def its_name").replace("scope='session'", "scope='session', name=NAME")
    project.write("conftest.py", "NAME = 'rag_client'\n" + maker + "globals()[NAME] = its_name\ndel its_name\n")
    project.run().assert_outcomes(passed=4)
    assert project.config()["target"] == "rag_client fixture of conftest.py"


@pytest.mark.parametrize("head", ["def rag_client", "@pytest.fixture(name='rag_client')\ndef its_name"])
def test_a_fixture_that_hands_on_the_configured_target_leaves_it_named_and_checked(project: Project, head: str):
    project.cases(SOME)
    scoped = head.replace("fixture(", "fixture(scope='session', ").replace(
        "def rag", "@pytest.fixture(scope='session')\ndef rag"
    )
    project.write("conftest.py", f'import pytest\n{scoped}(rag_client):\n    """The bot."""\n    return rag_client\n')
    project.run().assert_outcomes(passed=4)
    assert project.config()["target"] == "bot:answer"
    result = project.run("--rageval-target", NOBODY)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{NOBODY}*is the system running?*"])


def test_a_judge_that_nobody_uses_is_not_asked_whether_it_is_there(project: Project):
    project.cases(SOME)
    project.configure(f'target = "bot:answer"\njudge = "openai:m@{NOBODY}/v1"')
    project.write("conftest.py", "import pytest\n@pytest.fixture(scope='session')\ndef rag_judge():\n    return None\n")
    project.run().assert_outcomes(passed=4)


def test_each_place_of_a_target_is_named_and_the_configured_one_where_it_is_used(project: Project):
    project.cases([a_case("one")])
    project.cases([a_case("two")], "evalcases/sub/b.jsonl")
    project.run().assert_outcomes(passed=2)
    plain = project.config()
    project.write("evalcases/sub/conftest.py", CLIENT)
    project.run().assert_outcomes(passed=2)
    assert project.config()["target"] == "bot:answer, rag_client fixture of evalcases/sub/conftest.py"
    assert project.config()["config_hash"] != plain["config_hash"]
    project.run("evalcases/a.jsonl").assert_outcomes(passed=1)
    assert project.config()["target"] == "bot:answer, rag_client fixture of evalcases/sub/conftest.py"


HOOK = """
import dataclasses

def pytest_rageval_case(case):
    return dataclasses.replace(case, id="new-" + case.id, category="renamed")
"""
HOWS = [[], pytest.param(["-n", "2"], marks=pytest.mark.child_process)]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("conftest", ["conftest.py", "evalcases/conftest.py"])
def test_a_renamed_case_is_the_case_of_a_complete_run(project: Project, conftest: str, how: list[str]):
    project.cases(SOME)
    project.write(conftest, HOOK)
    result = project.run("--rageval-gate", "token_f1 >= 0.1 when category=renamed", "-rA", *how)
    result.assert_outcomes(passed=4)
    assert lines_with(result, "PASSED evalcases/a.jsonl::new-boil")
    assert result.ret == 0
    assert project.metrics()["partial"] is False
    records = project.records()
    assert records["new-boil"]["case_key"] == "evalcases/a.jsonl::new-boil"
    assert {record["category"] for record in records.values()} == {"renamed"}


def test_the_hash_of_the_dataset_is_that_of_changed_cases(project: Project):
    project.cases(SOME)
    project.run()
    plain = project.config()["dataset_hash"]
    project.write(
        "evalcases/conftest.py",
        "import dataclasses\ndef pytest_rageval_case(case):\n"
        "    return dataclasses.replace(case, question=case.question + ' Please.')\n",
    )
    project.run()
    assert project.config()["dataset_hash"] != plain


def test_a_changed_case_meets_its_baseline_and_a_part_of_them_is_partial(project: Project):
    project.cases(SOME)
    project.write("evalcases/conftest.py", HOOK)
    assert project.run("--rageval-update-baseline").ret == 0
    baseline = json.loads((project.path / "reports" / "baseline.json").read_text())
    assert "evalcases/a.jsonl::new-boil" in baseline["cases"]
    assert project.run().ret == 0
    comparison = project.metrics()["comparison"]
    assert (comparison["problems"], comparison["only_before"], comparison["only_after"]) == ([], [], [])
    assert project.run("-k", "new-boil").ret == 0
    assert project.metrics()["partial"] is True


def test_files_that_were_not_named_are_known_as_their_hook_leaves_them(project: Project):
    project.cases(SOME)
    project.cases([a_case("other")], "evalcases/sub/b.jsonl")
    project.write("evalcases/sub/conftest.py", HOOK)
    gate = "token_f1 >= 0.1 when category=renamed"
    assert project.run("evalcases/a.jsonl", "--rageval-gate", gate).ret == 0
    config = project.config()["dataset_hash"]
    project.run("--rageval-gate", gate)
    assert project.config()["dataset_hash"] == config


def test_a_hook_changes_the_cases_of_a_mark_before_they_are_selected(project: Project):
    project.cases(SOME, "mine/own.jsonl")
    project.write("mine/conftest.py", HOOK)
    project.own_test("own.jsonl", ASSERT_GATES, "mine/test_own.py", select="renamed and boil")
    project.run().assert_outcomes(passed=1)
    assert list(project.records()) == ["new-boil"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "raise KeyError('x')",
            "evalcases/a.jsonl:1: case 'boil': pytest_rageval_case: KeyError: 'x' (at evalcases/conftest.py:2)",
        ),
        ("return 'boil'", "evalcases/a.jsonl:1: case 'boil': pytest_rageval_case returned str, expected an EvalCase"),
        (
            "import dataclasses; return dataclasses.replace(case, id='same')",
            "evalcases/a.jsonl:2: case 'freeze': pytest_rageval_case: id 'same' is already used at line 1",
        ),
    ],
)
def test_what_a_hook_does_wrong_is_a_problem_of_the_file(project: Project, body: str, says: str):
    project.cases(SOME)
    project.write("evalcases/conftest.py", f"def pytest_rageval_case(case):\n    {body}\n")
    result = project.run()
    assert result.ret == 2
    assert lines_with(result, says)
    assert not lines_with(result, "Traceback")
