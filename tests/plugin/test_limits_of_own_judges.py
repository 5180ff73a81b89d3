"""Judges of the project's own whose server refuses calls, or that never answer."""

from __future__ import annotations

import pytest
from project import Project, a_case

pytestmark = pytest.mark.reliability("API faults", "rate limits and refused calls")

REFUSED = """
import pytest
from pytest_rageval import Judgement
from pytest_rageval.errors import JudgeError

class Response:
    status_code = 429
    headers = {{"retry-after": "0.05"}}

class Refused(Exception):
    response = Response()

calls = []

def call():
    calls.append(1)
    if len(calls) {when}:
        {how}

class Plain:
    async def score_groundedness(self, answer, context):
        call()
        return 1.0

class Long:
    model = "own-1"
    heuristic = False
    rubrics = frozenset({{"groundedness"}})

    async def judge(self, request):
        call()
        return Judgement(request.rubric, {{"groundedness": 5.0}}, (0.0, 5.0), model=self.model)

    async def aclose(self):
        pass

@pytest.fixture(scope="session")
def rag_judge():
    return {judge}()
"""
WAYS = {
    "an exception of a client": 'raise Refused("slow down")',
    "an exception behind another": 'raise RuntimeError("no judgement") from Refused("slow down")',
    "a JudgeError": 'raise JudgeError("rate_limited", "slow down", status=429)',
}


def judged(project: Project, judge: str, how: str, when: str = "<= 3", more: str = "") -> Project:
    project.cases([a_case(f"q{number}", f"boiling {number}") for number in range(6)])
    project.write("conftest.py", REFUSED.format(judge=judge, how=how, when=when))
    settings = 'target = "bot:answer"\njudge_cache = "off"\nadaptive_concurrency = false'
    project.configure(f'{settings}\nmetrics.enabled = ["groundedness"]\n{more}')
    return project


@pytest.mark.parametrize("judge", ["Plain", "Long"])
@pytest.mark.parametrize("way", WAYS)
def test_a_refused_judgement_is_asked_for_again(project: Project, judge: str, way: str):
    judged(project, judge, WAYS[way]).run("-p", "no:randomly").assert_outcomes(passed=6)
    assert {record["scores"]["groundedness"] for record in project.records().values()} == {5.0}


@pytest.mark.parametrize("judge", ["Plain", "Long"])
def test_a_judge_that_is_always_refused_ends_the_run_after_patience(project: Project, judge: str):
    judged(project, judge, WAYS["an exception of a client"], when=">= 0", more="rate_limit_patience = 0.3")
    result = project.run("-p", "no:randomly")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert {record["error"]["kind"] for record in project.records().values()} == {"judge_rate_limited"}


def test_another_exception_is_asked_for_once(project: Project):
    judged(project, "Long", 'raise ValueError("429 of these")', when=">= 0")
    project.run("-p", "no:randomly")
    assert set(project.outcomes().values()) == {"error"}
    assert all("ValueError" in record["error"]["message"] for record in project.records().values())


def test_a_judge_that_never_answers_ends_with_its_time(project: Project):
    judged(project, "Plain", "raise AssertionError", when=">= 0", more="timeout = 0.2\nretries = 0")
    text = (project.path / "conftest.py").read_text(encoding="utf-8")
    slow = text.replace("        call()\n", "        import asyncio\n        await asyncio.sleep(600)\n")
    project.write("conftest.py", slow)
    result = project.run("-p", "no:randomly")
    assert {record["error"]["kind"] for record in project.records().values()} == {"judge_timeout"}
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert all("no judgement within" in record["error"]["message"] for record in project.records().values())
