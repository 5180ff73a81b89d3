"""The variable in which pytest says which test runs, while other threads of ours look at the environment."""

from __future__ import annotations

from project import Project, a_case

READER = """
import os


async def answer(question):
    for _ in range(30):
        dict(os.environ)
    return {"answer": "yes"}
"""
CONFTEST = """
import os

import pytest


def pytest_runtest_logfinish(nodeid):
    print("between tests:", "PYTEST_CURRENT_TEST" in os.environ)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure():
    print("at the end:", "PYTEST_CURRENT_TEST" in os.environ)
"""


def test_code_that_looks_through_the_environment_while_tests_begin_and_end_finds_what_it_lists(project: Project):
    project.write("bot.py", READER)
    project.cases([a_case(f"q{number}", gold={}, gold_supports=[]) for number in range(300)])
    result = project.run("--rageval-judge=none")
    assert "KeyError" not in result.stdout.str()
    result.assert_outcomes(passed=300)


def test_the_variable_stays_between_tests_and_is_gone_at_the_end(project: Project):
    project.cases([a_case("q1"), a_case("q2")])
    project.write("conftest.py", CONFTEST)
    result = project.run("-s")
    assert result.stdout.str().count("between tests: True") == 2
    assert "at the end: False" in result.stdout.str()
