"""Other plugins do to eval items what they do to any test."""

from __future__ import annotations

import sys
import warnings
from xml.etree import ElementTree

import pytest
from neighbours import ALL, ON_EACH
from project import SOME, Project, a_case, as_result, lines_with, run_pytest_with_neighbours

pytestmark = pytest.mark.reliability("neighbours", "other plugins of pytest")
FLAKY = """
import bot
asked = []
def answer(question):
    asked.append(question)
    if len(asked) == 1:
        raise ConnectionError("just this once")
    return bot.answer(question)
"""


def run_with(project: Project, *arguments: str) -> pytest.RunResult:
    """Run with all plugins of this environment but one that costs start-up time and means nothing here."""
    if "no:terminal" in arguments:  # which the session around it needs
        return project.process(sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", *arguments)
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # theirs, of settings
        return as_result(run_pytest_with_neighbours(project.path, "-p", "no:hypothesispytest", *arguments))


def test_a_rerun_asks_again_and_the_last_attempt_counts(project: Project):
    project.write("flaky.py", FLAKY)
    project.configure('target = "flaky:answer"')
    project.cases([a_case("boil")])
    result = run_with(project, "--reruns", "2", "-p", "no:randomly", "--junitxml", "junit.xml")
    result.assert_outcomes(passed=1)
    assert lines_with(result, "1 rerun")
    # Of each attempt JUnit XML is told what that attempt came to, and nothing of the earlier one.
    attempts = ElementTree.parse(project.path / "junit.xml").iter("testcase")
    first, last = ([entry.get("name") for entry in attempt.iter("property")] for attempt in attempts)
    assert "recall_any@5" in last
    assert [len(names) for names in (first, last)] == [len(set(names)) for names in (first, last)]
    assert project.records()["boil"]["outcome"] == "passed"
    assert project.records()["boil"]["attempts"] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--asyncio-mode=auto"],
        ["--doctest-modules"],
        ["--import-mode=importlib"],
        ["-p", "no:cacheprovider"],
        pytest.param(["-p", "no:terminal"], marks=pytest.mark.child_process),
    ],
)
def test_a_neighbour_changes_nothing(project: Project, arguments: list[str]):
    if "asyncio" in arguments[0]:
        pytest.importorskip("pytest_asyncio")
    project.cases(SOME)
    result = run_with(project, *arguments)
    assert result.ret == 0
    assert set(project.outcomes().values()) == {"passed"}
    assert len(project.outcomes()) == 4


@pytest.mark.torture
@pytest.mark.child_process
@pytest.mark.parametrize("how", [(), ("-n", "2")], ids=["alone", "workers"])
@pytest.mark.parametrize(("module", "arguments"), ON_EACH, ids=[module for module, _ in ON_EACH])
def test_each_neighbour_sees_one_pass_one_failure_and_one_error(
    project: Project, module: str, arguments: list[str], how: tuple[str, ...]
):
    pytest.importorskip(module)
    check_outcomes(project, *arguments, *how)


@pytest.mark.child_process
@pytest.mark.parametrize("arguments", [ALL, ["-p", "pytest_sugar", "--force-sugar"]], ids=["all", "sugar"])
def test_neighbours_together_see_one_pass_one_failure_and_one_error(project: Project, arguments: list[str]):
    check_outcomes(project, *arguments)


def check_outcomes(project: Project, *arguments: str) -> None:
    project.write("mine.py", "def answer(question):\n    return {'a': 'right', 'b': 'wrong'}[question]\n")
    project.configure('target = "mine:answer"')
    project.cases([{"id": f"case {word}", "question": word, "gold": {"answer": "right"}} for word in "abc"])
    result = project.process(
        sys.executable, "-m", "pytest", "-p", "rageval", "-p", "xdist", *arguments,
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_ADDOPTS="",
    )  # fmt: skip
    assert result.ret == 1
    assert not lines_with(result, "INTERNALERROR")
    assert project.outcomes() == {"case a": "passed", "case b": "failed", "case c": "error"}


def test_a_failure_has_the_place_that_pytest_gives_it(project: Project):
    project.cases([a_case("boil")])
    project.write("mine.py", "def answer(question):\n    return 'no'\n")
    project.configure('target = "mine:answer"')
    project.write(
        "conftest.py",
        "def pytest_runtest_logreport(report):\n    if report.failed:\n        crash = report.longrepr.reprcrash\n"
        "        print('CRASH', crash.path, crash.lineno, crash.message.splitlines()[0])\n",
    )
    assert lines_with(project.run("-s"), "CRASH evalcases/a.jsonl 1 ")
