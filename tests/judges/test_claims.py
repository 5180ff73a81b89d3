"""Claims: an answer taken apart, each claim judged, and what they make together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from judge_server import JudgeServer

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import JudgeError
from pytest_rageval.judges import judge_from_spec
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.judges.judging import CLAIMS_AT_ONCE, judge_answer
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import Answer, AskRequest, CaseResult, Chunk, EvalCase, Gold, Judgement, JudgeRequest
from pytest_rageval.run.engine import observe_case
from pytest_rageval.run.plan import make_plan
from pytest_rageval.run.scoring import score_case
from pytest_rageval.targets.target import BaseTarget

CASE = EvalCase("q1", "How fast is the camera?")
ANSWER = Answer("It runs at 30 Hz and is red.", chunks=(Chunk("c1", text="The camera runs at 30 Hz."),))


class Splitting(BaseJudge):
    """Splits any answer into these claims, and supports those that hold a word of the context."""

    model, heuristic = "splitting/1", False
    rubrics = frozenset({"claim_split", "claim_support"})

    def __init__(self, claims: object, **taken) -> None:
        self.claims, self.taken = (
            claims,
            {"tokens_in": 10, "tokens_out": 2, "cost_usd": 0.25, "latency_ms": 1.0} | taken,
        )
        self.asked: list[JudgeRequest] = []

    async def judge(self, request: JudgeRequest) -> Judgement:
        self.asked.append(request)
        await asyncio.sleep(0)
        if request.rubric == "claim_split":
            return Judgement("claim_split", {}, extra={"claims": self.claims, "served_model": "m"}, **self.taken)
        claims = [claim["text"] for claim in request.variables["claims"]]
        held = ["30 Hz" in claim for claim in claims]
        return Judgement(
            "claim_support", {"claim_support": sum(held) / len(held)}, extra={"verdicts": held}, **self.taken
        )

    async def aclose(self) -> None: ...


def judged(judge: Splitting, **settings) -> Judgement:
    return asyncio.run(judge_answer(judge, CASE, ANSWER, ["claim_support"], 5, **settings))["claim_support"]


def shown(requests: Iterable[JudgeRequest]) -> list[str]:
    return [claim["text"] for request in requests for claim in request.variables["claims"]]


def test_the_score_is_the_share_of_supported_claims():
    found = judged(Splitting(["It runs at 30 Hz.", "It is red.", "It does 30 Hz indoors."]))
    assert found.scores == {"claim_support": pytest.approx(2 / 3)}
    assert found.supported_claims == ("It runs at 30 Hz.", "It does 30 Hz indoors.")
    assert found.unsupported_claims == ("It is red.",)
    assert found.reasoning == "2 of 3 claims are supported"
    assert found.scale == (0.0, 1.0)


def test_claims_are_judged_together_against_the_contexts():
    judge = Splitting(["one", "two"])
    judged(judge, trial=3)
    assert [(request.rubric, request.trial) for request in judge.asked] == [
        ("claim_split", 3), ("claim_support", 3),
    ]  # fmt: skip
    assert judge.asked[0].variables == {"question": CASE.question, "answer": ANSWER.text}
    assert judge.asked[1].variables == {
        "claims": [{"number": 1, "text": "one"}, {"number": 2, "text": "two"}],
        "contexts": [{"chunk_id": "c1", "text": "The camera runs at 30 Hz."}],
    }


@pytest.mark.parametrize("claims", [[], ["", "  "]])
def test_an_answer_without_claims_has_no_score(claims):
    found = judged(Splitting(claims))
    assert found.scores == {}
    assert found.reasoning == "the answer makes no claim"
    assert found.tokens_in == 10


def test_the_number_and_length_of_claims_are_bounded():
    judge = Splitting([f"claim {number} {'x' * 5000}" for number in range(200)])
    found = judged(judge)
    assert [len(request.variables["claims"]) for request in judge.asked[1:]] == [CLAIMS_AT_ONCE] * 5
    assert max(map(len, shown(judge.asked[1:]))) == 2000
    assert found.flags == ("of 200 claims the first 50 were judged",)


@pytest.mark.parametrize("claims", [None, "one", 3, [1], [["one"]], {"one": 1}])
def test_a_reply_without_a_list_of_claims_is_an_error_and_no_score(claims):
    with pytest.raises(JudgeError, match="rubric 'claim_split': its reply has no list of claims") as caught:
        judged(Splitting(claims))
    assert caught.value.kind == "invalid_reply"


def test_a_claim_without_a_verdict_is_an_error_and_no_score():
    class Silent(Splitting):
        async def judge(self, request: JudgeRequest) -> Judgement:
            said = await super().judge(request)
            return said if request.rubric == "claim_split" else Judgement("claim_support", {})

    with pytest.raises(JudgeError, match="rubric 'claim_support': its judgement has no score"):
        judged(Silent(["one"]))


def test_one_score_for_several_claims_is_an_error_and_no_score():
    class Summing(Splitting):
        async def judge(self, request: JudgeRequest) -> Judgement:
            return replace(await super().judge(request), extra={"claims": self.claims})

    assert judged(Summing(["30 Hz"])).scores == {"claim_support": 1.0}
    with pytest.raises(JudgeError, match=r"rubric 'claim_support': extra\['verdicts'\] is no list of 2 truths"):
        judged(Summing(["one", "two"]))


def test_a_rubric_of_the_project_that_reads_one_claim_gets_one_at_a_time():
    class Single(Splitting):
        async def judge(self, request: JudgeRequest) -> Judgement:
            if request.rubric == "claim_split":
                return await super().judge(request)
            self.asked.append(request)
            return Judgement("claim_support", {"claim_support": float("30 Hz" in request.variables["claim"])})

    own = replace(load_rubric("claim_support"), prompt="{marker} {contexts} {claim}")
    judge = Single(["It runs at 30 Hz.", "It is red."])
    assert judged(judge, wordings={"claim_support": own}).scores == {"claim_support": 0.5}
    assert [request.variables["claim"] for request in judge.asked[1:]] == ["It runs at 30 Hz.", "It is red."]


def test_a_judge_that_cannot_split_is_given_the_answer_as_one_claim():
    judge = Splitting([])
    judge.rubrics = frozenset({"claim_support"})
    assert judged(judge).scores == {"claim_support": 1.0}
    assert shown(judge.asked) == [ANSWER.text]


CAMERA_CASE = EvalCase("q1", "How fast is the camera?", gold=Gold(answers=("30 Hz",)))
CHUNKS = (Chunk("a#1", rel_path="a.md", text="The camera runs at 30 Hz."), Chunk("b#1", rel_path="b.md", text="29 Hz"))


class Replying(BaseTarget):
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
            return score_case(CAMERA_CASE, await observe_case(CAMERA_CASE, Replying(answer), judge, plan), plan)
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
