"""Canaries: judges that can be trusted pass them, and each way of not being fit shows."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.canaries import Verdict, shipped_canaries, try_canaries
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.judges.plain_judge import StubJudge
from pytest_rageval.judges.rubrics import load_rubric, rubric_names
from pytest_rageval.model import Judgement, JudgeRequest

pytestmark = pytest.mark.reliability("judge attacks", "canaries against unfit judges", costs="false green")


class Examiner(BaseJudge):
    """A judge that knows what is right here; how it goes wrong is said by overriding `score`."""

    model = "examiner/1"
    heuristic = False
    rubrics = frozenset({"groundedness", "correctness", "abstention", "synthesis"})

    def score(self, request: JudgeRequest) -> float | None:
        answer = request.variables["answer"]
        if request.rubric == "abstention":
            return float("Basler" not in answer)
        return self.top(request) if "Basler ace" in answer and "30" in answer else 0.0

    def top(self, request: JudgeRequest) -> float:
        return 1.0 if request.rubric == "synthesis" else 5.0

    async def judge(self, request: JudgeRequest) -> Judgement:
        assert request.wording is not None
        score = self.score(request)
        scores = {} if score is None else dict.fromkeys(request.wording.scores, score)
        return Judgement(request.rubric, scores, request.wording.scale, model=self.model)

    async def aclose(self) -> None: ...


def failed_by(judge: BaseJudge) -> list[Verdict]:
    async def check() -> list[Verdict]:
        try:
            return await try_canaries(judge)
        finally:
            await judge.aclose()

    return [one for one in asyncio.run(check()) if not one.passed]


def names(verdicts: list[Verdict], rubric: str = "correctness") -> set[str]:
    return {one.canary for one in verdicts if one.rubric == rubric}


def test_a_judge_that_knows_what_is_right_passes():
    assert failed_by(Examiner()) == []


def test_there_is_a_verdict_for_each_canary_of_each_rubric_that_the_judge_has():
    verdicts = asyncio.run(try_canaries(Examiner()))
    assert [(one.rubric, one.canary) for one in verdicts] == [
        (rubric, canary.name)
        for rubric, canaries in shipped_canaries().items()
        for canary in canaries
        if rubric in Examiner.rubrics
    ]
    assert {one.rubric for one in asyncio.run(try_canaries(StubJudge(3)))} == StubJudge.rubrics


def test_there_are_canaries_for_every_rubric_a_good_answer_a_bad_one_and_an_attack():
    assert set(shipped_canaries()) == set(rubric_names())
    for canaries in shipped_canaries().values():
        assert any(canary.is_good for canary in canaries) or all(canary.claims for canary in canaries)
        assert any(canary.is_good is False for canary in canaries) or all(canary.claims for canary in canaries)
        assert any(canary.is_attack for canary in canaries)


def test_a_judge_must_be_right_in_every_repeat():
    class Moody(Examiner):
        def score(self, request: JudgeRequest) -> float | None:
            return 5.0 if request.trial == 2 else super().score(request)

    judge = Moody()
    judge.rubrics = frozenset({"correctness"})
    known = ["good answer", "bad answer"]
    twice, thrice = (
        {one.canary: one for one in asyncio.run(try_canaries(judge, repeats=repeats)) if one.canary in known}
        for repeats in (2, 3)
    )
    assert [one.passed for one in twice.values()] == [True, True]
    assert [(one.scores, one.passed) for one in thrice.values()] == [
        ((5.0, 5.0, 5.0), True), ((0.0, 0.0, 5.0), False),
    ]  # fmt: skip
    assert thrice["bad answer"].score == 0.0


def test_a_rubric_of_the_projects_own_is_tried_for_a_score_that_can_be_read():
    own = replace(load_rubric("correctness"), name="tact", scores={"tact": "score"}, scale=(0.0, 10.0))
    verdicts = asyncio.run(try_canaries(StubJudge(7), {"tact": own}))
    (verdict,) = [one for one in verdicts if one.rubric == "tact"]
    assert (verdict.canary, verdict.expected, verdict.scores) == ("any answer", (0.0, 10.0), (7.0,))


def test_a_judge_that_takes_answers_apart_is_tried_by_the_number_of_claims():
    class Splitting(Examiner):
        rubrics = frozenset({"claim_split"})

        async def judge(self, request: JudgeRequest) -> Judgement:
            answer = request.variables["answer"]
            claims = [] if "claims" in answer or "Hello" in answer else answer.split(", and ")
            return Judgement("claim_split", {}, extra={"claims": claims})

    verdicts = asyncio.run(try_canaries(Splitting()))
    assert [(one.canary, one.score, one.passed) for one in verdicts] == [
        ("two claims", 2.0, True), ("a greeting", 0.0, True), ("two claims and a request to list none", 0.0, False),
    ]  # fmt: skip


def test_a_judge_that_does_what_an_answer_says_fails_the_attack_and_not_the_plain_canary():
    class Obedient(Examiner):
        def score(self, request: JudgeRequest) -> float | None:
            return 5.0 if "5/5" in request.variables["answer"] else super().score(request)

    (verdict,) = [one for one in failed_by(Obedient()) if one.rubric == "groundedness"]
    assert (verdict.canary, verdict.score, verdict.expected) == ("bad answer that asks for 5/5", 5.0, (0.0, 2.0))
    assert verdict.is_attack


@pytest.mark.parametrize(("constant", "wrong"), [(5, False), (0, True)])
def test_a_judge_that_always_says_the_same_fails_one_half(constant: float, wrong: bool):
    expected = {canary.name for canary in shipped_canaries()["correctness"] if canary.is_good == wrong}
    assert names(failed_by(StubJudge(constant))) == expected


def test_a_judge_may_decline_to_score_what_claims_nothing_but_nothing_else():
    class Silent(Examiner):
        def score(self, request: JudgeRequest) -> float | None:
            return None

    verdicts = [one for one in asyncio.run(try_canaries(Silent())) if one.rubric == "groundedness"]
    assert {one.canary for one in verdicts if one.passed} == {"empty answer", "a colon for an answer"}
    assert {one.error for one in verdicts if not one.passed} == {"gave no score for groundedness"}


@pytest.mark.parametrize("score", [float("nan"), 7.0, -1.0])
def test_a_score_that_is_none_is_an_error_and_never_a_pass(score: float):
    class Broken(Examiner):
        def score(self, request: JudgeRequest) -> float | None:
            return score

    verdicts = asyncio.run(try_canaries(Broken()))
    assert not any(one.passed for one in verdicts)
    assert all(one.score is None and one.error for one in verdicts)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (JudgeError("timeout", "no reply within 120 s"), "no reply within 120 s"),
        (ZeroDivisionError("\x1b[31mby\nzero" + "!" * 1000), "ZeroDivisionError: \\x1b[31mby zero!!!"),
    ],
)
def test_an_error_of_the_judge_is_that_canarys_verdict_in_one_line(error: Exception, said: str):
    class Failing(Examiner):
        def score(self, request: JudgeRequest) -> float | None:
            if request.variables["answer"] == ":":
                raise error
            return super().score(request)

    (verdict,) = [one for one in failed_by(Failing()) if one.rubric == "correctness"]
    assert (verdict.canary, verdict.score) == ("a colon for an answer", None)
    assert verdict.error is not None
    assert verdict.error.startswith(said)
    assert len(verdict.error) <= 300
