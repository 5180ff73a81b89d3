"""Other plugins do to eval items what they do to any test."""

from __future__ import annotations

import pytest
from project import SOME, Project, a_case, lines_with

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
    """Run with all plugins of this environment but those that cost start-up time and mean nothing here."""
    return project.pytester.runpytest_subprocess("-p", "no:hypothesispytest", *arguments)


def test_a_rerun_asks_again_and_the_last_attempt_counts(project: Project):
    project.write("flaky.py", FLAKY)
    project.configure('target = "flaky:answer"')
    project.cases([a_case("boil")])
    result = run_with(project, "--reruns", "2", "-p", "no:randomly")
    result.assert_outcomes(passed=1)
    assert lines_with(result, "1 rerun")
    assert project.records()["boil"]["outcome"] == "passed"
    assert project.records()["boil"]["attempts"] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--timeout=60"],
        ["--cov=bot"],
        ["-p", "randomly"],
        ["--asyncio-mode=auto"],
        ["--doctest-modules"],
        ["--import-mode=importlib"],
        ["-p", "no:cacheprovider"],
        ["--count=1"],
        ["-p", "no:terminal"],
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


def test_sugar_shows_cases(project: Project):
    pytest.importorskip("pytest_sugar")
    project.cases(SOME)
    assert run_with(project, "-p", "sugar", "--force-sugar").ret == 0
