"""Targets, judges, metrics and hooks of the user's own may raise, hang or leave: the run says so and ends."""

from __future__ import annotations

import gc

import pytest
from project import SOME, Project, a_case, lines_with

from pytest_rageval.config.settings import Settings

pytestmark = pytest.mark.reliability("false greens", "what user code gives", costs="false green")

OWN_TARGET = """
import pytest
class Target:
    name = "own"
    async def ask(self, request):
        {body}
    async def aclose(self):
        pass
@pytest.fixture(scope="session")
def rag_client():
    return Target()
"""
NOTING_BOT = """
def answer(question):
    with open("asked", "a") as file:
        file.write(".")
    return "x"
"""


@pytest.mark.parametrize(
    "body", ["raise SystemExit(3)", "pytest.skip('no')", "pytest.xfail('no')", "raise BaseException('odd')"]
)
def test_whatever_a_target_raises_is_an_error_of_its_case(project: Project, body: str):
    project.cases(SOME[:2])
    project.write("conftest.py", OWN_TARGET.format(body=body))
    result = project.run()
    result.assert_outcomes(errors=2)
    assert set(project.outcomes().values()) == {"error"}


FUNCTION = "import pytest\n{kind} answer(question):\n    {{body}}\n"
JUDGE = """
import pytest
class Judge:
    model = "mine"
    async def score_groundedness(self, answer, context):
        {body}
@pytest.fixture(scope="session")
def rag_judge():
    return Judge()
"""
PLACES = {
    "target": ("conftest.py", OWN_TARGET),
    "function": ("bot.py", FUNCTION.format(kind="def")),
    "coroutine": ("bot.py", FUNCTION.format(kind="async def")),
    "judge": ("conftest.py", JUDGE),
    "hook": ("conftest.py", "import pytest\ndef pytest_rageval_result(item, result):\n    {body}\n"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("body", "code"), [("raise KeyboardInterrupt", 2), ("pytest.exit('enough', 7)", 7)])
def test_what_ends_the_run_ends_it_in_order_wherever_it_is_raised(project: Project, place: str, body: str, code: int):
    name, text = PLACES[place]
    project.cases(SOME[:2])
    project.write(name, text.format(body=body))
    assert project.run().ret == code


@pytest.mark.parametrize(
    "conftest",
    [
        "@pytest.fixture(scope='session')\ndef rag_client():\n    pytest.xfail('later')\n",
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n        item.add_marker(pytest.mark.xfail(run=False))\n",
    ],
)
def test_a_run_of_which_all_setups_are_xfailed_is_not_green(project: Project, conftest: str):
    project.cases(SOME[:2])
    project.write("conftest.py", "import pytest\n" + conftest)
    result = project.run()
    assert result.ret == 1
    assert lines_with(result, "no case was examined, all 2 were skipped, or xfailed before a gate had looked")


def test_a_target_that_never_answers_is_a_time_out(project: Project, monkeypatch: pytest.MonkeyPatch):
    project.cases(SOME[:1])
    monkeypatch.setattr(Settings, "longest_call", 0.3)  # without the 10 s beside the time-out
    project.write("conftest.py", OWN_TARGET.format(body="import asyncio; await asyncio.sleep(3600)"))
    result = project.run()
    result.assert_outcomes(errors=1)
    assert lines_with(result, "timeout: no answer within 0.3 s")


@pytest.mark.child_process
def test_an_async_target_that_blocks_the_loop_is_said_and_the_run_ends(project: Project):
    project.cases(SOME[:1])
    impatient = "from pytest_rageval.config.settings import Settings\nSettings.longest_call = 0.3\n"
    project.write("conftest.py", impatient + OWN_TARGET.format(body="import time; time.sleep(3600)"))
    result = project.run_process("--timeout", "90")  # its thread sleeps on
    result.assert_outcomes(errors=1)
    assert lines_with(result, "blocks the event loop")


def test_a_metric_that_skips_is_an_error_of_its_case(project: Project):
    project.cases(SOME[:1])
    project.write(
        "conftest.py",
        "import pytest\nfrom pytest_rageval import metric\n"
        '@metric(layer="L5", better="higher")\ndef own(obs):\n    pytest.skip("no")\n'
        "def pytest_rageval_metrics(config):\n    return [own]\n",
    )
    result = project.run()
    result.assert_outcomes(errors=1)
    assert project.outcomes() == {"boil": "error"}


RAISING = ["raise ValueError('no')", "pytest.skip('no')", "pytest.xfail('no')", "raise SystemExit(0)"]


@pytest.mark.parametrize("raising", RAISING)
def test_a_hook_that_raises_whatever_it_is_makes_the_record_an_error(project: Project, raising: str):
    project.cases(SOME[:1])
    project.write("conftest.py", PLACES["hook"][1].format(body=raising))
    project.run().assert_outcomes(failed=1)
    record = project.records()["boil"]
    assert (record["outcome"], record["error"]["kind"]) == ("error", "hook")
    assert not project.metrics()["partial"]


@pytest.mark.parametrize("hook", ["pytest_rageval_metrics(config)", "pytest_rageval_run_config(run_config)"])
@pytest.mark.parametrize("raising", ["raise ValueError('broken')", "pytest.skip('broken')"])
def test_a_hook_of_the_session_that_raises_is_a_usage_error(project: Project, hook: str, raising: str):
    project.cases(SOME[:1])
    project.write("test_other.py", "def test_other():\n    pass\n")
    project.write("conftest.py", f"import pytest\ndef {hook}:\n    {raising}\n")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {hook.partition('(')[0]}: *: broken (at conftest.py:3)"])


def test_a_case_hook_that_skips_is_a_problem_of_its_file(project: Project):
    project.cases(SOME[:1])
    project.write("conftest.py", "import pytest\ndef pytest_rageval_case(case):\n    pytest.skip('no')\n")
    result = project.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert lines_with(result, "a.jsonl:1: case 'boil': pytest_rageval_case: Skipped: no (at conftest.py:3)")


SKIPS_ONE = """
import pytest
def pytest_collection_modifyitems(items):
    items[0].add_marker(pytest.mark.skip("later"))
"""


@pytest.mark.parametrize("conftest", ["", SKIPS_ONE])
@pytest.mark.parametrize("mode", ["--setup-only", "--setup-plan", "--collect-only"])
def test_modes_that_run_no_test_ask_nothing_and_end_green(project: Project, mode: str, conftest: str):
    project.cases(SOME)
    project.write("bot.py", NOTING_BOT)
    project.write("conftest.py", conftest)
    assert project.run(mode).ret == 0
    assert not (project.path / "asked").exists()
    assert not project.runs


def test_a_skipped_case_is_not_asked(project: Project):
    project.cases([a_case("left-out"), a_case("asked")])
    project.write("conftest.py", SKIPS_ONE)
    project.write("bot.py", NOTING_BOT)
    project.run().assert_outcomes(failed=1, skipped=1)
    assert (project.path / "asked").read_text() == "."


def test_what_a_system_leaves_running_ends_with_the_run(project: Project, caplog: pytest.LogCaptureFixture):
    project.write(
        "background.py",
        """
import asyncio
async def answer(question):
    asyncio.create_task(asyncio.sleep(600))
    return "at 100 degrees"
""",
    )
    project.configure('target = "background:answer"')
    project.cases([a_case("a")])
    gc.freeze()  # what earlier tests of this process left is not looked at here
    try:
        project.run().assert_outcomes(passed=1)
        gc.collect()
    finally:
        gc.unfreeze()
    assert "Task was destroyed but it is pending!" not in caplog.text


READER = """
import os


async def answer(question):
    for _ in range(30):
        dict(os.environ)
    return {"answer": "yes"}
"""


def test_code_that_looks_through_the_environment_while_tests_begin_and_end_finds_what_it_lists(project: Project):
    project.write("bot.py", READER)
    project.cases([a_case(f"q{number}", gold={}, gold_supports=[]) for number in range(300)])
    result = project.run("--rageval-judge=none")
    assert "KeyError" not in result.stdout.str()
    result.assert_outcomes(passed=300)


CLOSED = OWN_TARGET.format(body="return 'no'").replace("        pass", "        open('closed', 'a').close()")


def test_a_target_that_a_fixture_gives_is_closed_by_its_owner_alone(project: Project):
    project.write("conftest.py", CLOSED)
    project.cases([a_case("q1", gold_supports=None)])
    project.run()
    assert project.outcomes() == {"q1": "failed"}
    assert not (project.path / "closed").exists()
