"""A case as a run judges it: by its plan, and by a model behind a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path

from judge_server import JudgeServer

from pytest_rageval.config.settings import Settings
from pytest_rageval.engine import observe_case, score_case
from pytest_rageval.judges import judge_from_spec
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import Answer, AskRequest, CaseResult, Chunk, EvalCase, Gold
from pytest_rageval.plan import make_plan

CASE = EvalCase("q1", "How fast is the camera?", gold=Gold(answers=("30 Hz",)))
CHUNKS = (Chunk("a#1", rel_path="a.md", text="The camera runs at 30 Hz."), Chunk("b#1", rel_path="b.md", text="29 Hz"))


class Replying:
    """A system that gives this answer to everything."""

    name = "replying"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    async def ask(self, request: AskRequest) -> Answer:
        return self.answer

    async def aclose(self) -> None: ...


def evaluated(server: JudgeServer, root: Path, abstained: bool | None = False, **settings) -> CaseResult:
    """One case, asked, judged by the model behind the server, scored and gated as in a run."""
    plan = make_plan(Settings(**settings), load_registry(), root)
    judge = judge_from_spec(f"openai:judge-1@{server.url}")
    assert judge is not None

    async def run() -> CaseResult:
        answer = Answer("It runs at 30 Hz and is red.", abstained=abstained, chunks=CHUNKS)
        try:
            return score_case(CASE, await observe_case(CASE, Replying(answer), judge, plan), plan)
        finally:
            await judge.aclose()

    return asyncio.run(run())


def test_a_model_takes_an_answer_apart_and_judges_its_claims(tmp_path):
    claims = {"claims": ["It runs at 30 Hz.", "It is red."]}
    verdicts = [{"number": number, "reasoning": "so", "supported": number == 1} for number in (1, 2)]
    with JudgeServer(claims, {"verdicts": verdicts}) as server:
        result = evaluated(server, tmp_path, enabled=("claim_support",))
    assert len(server.chats) == 2
    assert result.scores == {"claim_support": 0.5, "over_abstention": 0.0}


def test_an_answer_that_the_classifier_takes_for_an_abstention_is_no_pass_whatever_metrics_are_listed(tmp_path):
    with JudgeServer({"abstained": True, "confidence": 0.9}) as server:
        result = evaluated(server, tmp_path, abstained=None, enabled=("faithfulness",))
    assert (result.outcome, result.scores) == ("failed", {"over_abstention": 1.0})
    assert [gate.tag for gate in result.failed_gates] == ["over_abstention_fail"]
