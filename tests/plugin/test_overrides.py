"""A project that gives its own target: said in config.json, and nothing is asked of the one that nobody uses."""

from __future__ import annotations

import pytest
from project import ALONE_AND_WITH_WORKERS, SOME, Project, a_case

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
