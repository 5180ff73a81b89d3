"""New failures of judged metrics are confirmed with new judgements; a judge that cannot be asked confirms nothing."""

from __future__ import annotations

import pytest
from project import Project, lines_with
from wavering import answers, asked, outcomes, wavering_project, with_baseline

JUDGE = """
import json
from pathlib import Path
import pytest
from pytest_rageval import Judgement
from pytest_rageval.errors import JudgeError

class Judge:
    model = "own-judge-2026-01-01"
    heuristic = False
    rubrics = frozenset({"groundedness"})
    async def judge(self, request):
        low, high = request.wording.scale
        turns = json.loads(Path("judge.json").read_text()) if Path("judge.json").exists() else ["high"]
        is_b = request.variables["question"].startswith("b:")
        turn = turns[request.trial % len(turns)] if is_b else "high"
        if turn == "budget":
            raise JudgeError("budget", "the limit of 1 dollar is reached")
        score = low if turn == "low" else high
        return Judgement(request.rubric, dict.fromkeys(request.wording.scores, score), (low, high), model=self.model)
    async def aclose(self):
        pass

@pytest.fixture(scope="session")
def rag_judge():
    return Judge()
"""


@pytest.fixture
def judged(project: Project) -> Project:
    wavering_project(project)
    project.write("conftest.py", JUDGE)
    return with_baseline(project, "--rageval-judge-cache", "off")


def test_each_attempt_gets_a_judgement_of_its_own(judged: Project):
    judged.write("judge.json", '["low", "high", "high"]')
    assert judged.run().ret == 0
    assert asked(judged) == {"a": 1, "b": 3, "c": 1, "d": 1}
    assert [case["case_key"] for case in judged.metrics()["flaky"]] == ["evalcases/a.jsonl::b"]
    # The cache knows each of the three judgements by now.
    answers(judged)
    assert judged.run().ret == 0
    judged.write("judge.json", '["low"]')
    assert judged.run("--rageval-judge-cache", "off").ret == 1
    assert outcomes(judged) == {"passed": 3, "failed": 1}


def test_without_money_for_another_judgement_a_new_failure_stays_red(judged: Project):
    judged.write("judge.json", '["low", "budget", "budget"]')
    result = judged.run()
    assert result.ret == 1
    assert outcomes(judged) == {"passed": 3, "failed": 1}
    assert lines_with(result, "failed in 3 of 3 attempts, 2 of them by an error")
