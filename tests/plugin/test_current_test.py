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


def test_code_that_looks_through_the_environment_while_tests_begin_and_end_finds_what_it_lists(project: Project):
    project.write("bot.py", READER)
    project.cases([a_case(f"q{number}", gold={}, gold_supports=[]) for number in range(300)])
    result = project.run("--rageval-judge=none")
    assert "KeyError" not in result.stdout.str()
    result.assert_outcomes(passed=300)
