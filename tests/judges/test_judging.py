"""An answer before the judge: what is asked first, what is not asked then, how often, and what several sayings make."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.judges.judging import judge_answer
from pytest_rageval.judges.lexical_judge import LexicalJudge
from pytest_rageval.judges.plain_judge import StubJudge
from pytest_rageval.judges.rubrics import rubric_names, rubric_of
from pytest_rageval.model import Answer, Chunk, EvalCase, Gold, Judgement, JudgeRequest

CASE = EvalCase("q1", "How fast is the camera?", gold=Gold(answers=("30 Hz",)))
CHUNKS = (Chunk("a#1", rel_path="a.md", text="The camera runs at 30 Hz."), Chunk("b#1", rel_path="b.md", text="29 Hz"))
FIVE = ("relevance", "faithfulness", "citation_accuracy", "abstention_quality", "synthesis")


class Telling(BaseJudge):
    """A judge that says what it is told to say of each rubric, else the middle of the scale; knows what was asked."""

    model, answers_at_once = "telling/1", False

    def __init__(self, rubrics: Sequence[str] = rubric_names(), *, heuristic: bool = False, **says) -> None:
        self.rubrics, self.heuristic = frozenset(rubrics), heuristic
        self.says: dict[str, float | JudgeError | Callable[[JudgeRequest], Judgement]] = says
        self.asked: list[tuple[str, int]] = []

    async def judge(self, request: JudgeRequest) -> Judgement:
        self.asked.append((request.rubric, request.trial))
        await asyncio.sleep(0)
        said = self.says.get(request.rubric)
        if callable(said):
            return said(request)
        if isinstance(said, JudgeError):
            raise said
        return a_judgement(request, sum(rubric_of(request).scale) / 2 if said is None else said)

    async def aclose(self) -> None: ...

    @property
    def asked_rubrics(self) -> list[str]:
        return [rubric for rubric, _ in self.asked]


def a_judgement(request: JudgeRequest, score: float, **fields) -> Judgement:
    rubric = rubric_of(request)
    taken: dict[str, Any] = {"tokens_in": 10, "tokens_out": 1, "cost_usd": 0.5, "latency_ms": 2.0, "model": "telling/1"}
    scores = dict.fromkeys(rubric.scores, score)
    return Judgement(request.rubric, scores, rubric.scale, prompt_version=request.prompt_version, **(taken | fields))


def of(judge, rubrics: Sequence[str], case: EvalCase = CASE, text: str = "It runs at 30 Hz.", **settings):
    answer = Answer(text, chunks=CHUNKS, abstained=settings.pop("abstained", None))
    return asyncio.run(judge_answer(judge, case, answer, rubrics, 5, **settings))


def of_an_answer(judge, rubrics: Sequence[str], **settings):
    """Of one that the system itself calls no abstention, so that nothing else is asked."""
    return of(judge, rubrics, abstained=False, **settings)


def test_judgements_come_by_rubric_in_the_order_that_was_asked_for():
    found = of(Telling(abstention=0), ["groundedness", "correctness", "abstention"])
    assert list(found) == ["groundedness", "correctness", "abstention"]
    assert found["groundedness"].scores == {"groundedness": 2.5}


def test_whether_the_system_abstained_is_asked_first():
    judge = Telling(abstention=0)
    of(judge, ["groundedness", "relevance", "abstention"])
    assert judge.asked_rubrics == ["abstention", "groundedness", "relevance"]


def test_what_an_abstention_is_not_judged_in_is_not_paid_for():
    judge = Telling(abstention=1)
    found = of(judge, ["groundedness", "correctness", *FIVE, "claim_support", "abstention"])
    assert judge.asked_rubrics == ["abstention", "correctness", "abstention_quality"]
    assert list(found) == ["correctness", "abstention_quality", "abstention"]


@pytest.mark.parametrize(("abstained", "rest"), [(True, []), (False, ["groundedness"])])
def test_the_classifier_is_not_asked_where_the_response_says_it(abstained, rest):
    judge = Telling(abstention=not abstained)
    of(judge, ["groundedness", "abstention"], abstained=abstained)
    assert judge.asked_rubrics == rest


def test_a_judge_is_not_asked_what_it_does_not_have():
    judge = Telling(["relevance"])
    judged = of(judge, ["groundedness", "relevance", "abstention"])
    assert list(judged) == ["relevance", "abstention"]
    assert judge.asked_rubrics == ["relevance"]
    assert judged["abstention"].extra["decided_by"] == "phrasing"


def test_phrasing_decides_for_a_judge_without_the_classifier_and_saves_its_requests():
    judge = Telling(["relevance", "correctness"])
    judged = of(judge, ["relevance", "correctness"], text="I could not find that in the notes.")
    assert judge.asked_rubrics == ["correctness"]
    assert judged["abstention"].scores == {"abstained": 1.0}


@pytest.mark.parametrize("judge", [LexicalJudge(), StubJudge(1)])
def test_phrases_of_the_project_tell_an_abstention_too(judge):
    answer, phrases = "It is 42, dear guest.", ["Dear  GUEST"]
    assert of(judge, ["groundedness"], text=answer)["abstention"].scores == {"abstained": 0.0}
    assert of(judge, ["groundedness"], text=answer, phrases=phrases)["abstention"].scores == {"abstained": 1.0}


@pytest.mark.parametrize("answers_at_once", [False, True])
def test_the_first_error_in_order_is_raised_once_the_rest_has_been_judged(answers_at_once: bool):
    judge = Telling(abstention=0, correctness=JudgeError("timeout", "late"), relevance=JudgeError("reset", "gone"))
    judge.answers_at_once = answers_at_once
    with pytest.raises(JudgeError, match="late"):
        of(judge, ["groundedness", "correctness", "relevance", "abstention"])
    assert judge.asked_rubrics == ["abstention", "groundedness", "correctness", "relevance"]


def test_a_classifier_that_fails_ends_the_judging():
    judge = Telling(abstention=JudgeError("timeout", "late"))
    with pytest.raises(JudgeError, match="late"):
        of(judge, ["groundedness", "abstention"])
    assert judge.asked_rubrics == ["abstention"]


def by_trial(*scores: float, **fields: Callable[[int], object]) -> Callable[[JudgeRequest], Judgement]:
    """Says the first score in the first trial, and so on; other fields by trial as well."""

    def say(request: JudgeRequest) -> Judgement:
        trial = request.trial
        said = {name: of_trial(trial) for name, of_trial in fields.items()}
        return a_judgement(request, scores[trial % len(scores)], **{"reasoning": f"trial {trial}", **said})

    return say


def test_of_repeated_judgements_the_median_counts_and_the_spread_is_told():
    found = of_an_answer(Telling(groundedness=by_trial(5, 1, 4)), ["groundedness"], repeats=3)["groundedness"]
    assert found.scores == {"groundedness": 4.0}
    assert found.reasoning == "trial 2"
    assert found.extra == {"repeats": {"groundedness": [5, 1, 4]}, "spread": {"groundedness": 4}, "requests": 3}


def test_every_repeat_is_a_trial_of_its_own_so_that_the_cache_keeps_each():
    judge = Telling()
    of_an_answer(judge, ["relevance"], repeats=3, trial=2)
    assert judge.asked == [("relevance", 6), ("relevance", 7), ("relevance", 8)]
    judge = Telling()
    of_an_answer(judge, ["relevance"], trial=2)
    assert judge.asked == [("relevance", 2)]


def test_what_came_from_the_cache_costs_nothing_now():
    for is_cached, expected in ((lambda trial: trial == 0, (1.0, False)), (lambda trial: True, (1.5, True))):
        judge = Telling(relevance=by_trial(1, cached=is_cached))
        found = of_an_answer(judge, ["relevance"], repeats=3)["relevance"]
        assert (found.cost_usd, found.cached) == expected


def test_an_error_in_one_repeat_is_an_error_with_what_all_repeats_cost():
    def fails_once(request: JudgeRequest) -> Judgement:
        if request.trial == 1:
            raise JudgeError("invalid_reply", "unreadable", spent={"cost_usd": 0.25, "extra": {"requests": 2}})
        return a_judgement(request, 1)

    with pytest.raises(JudgeError, match="unreadable") as raised:
        of_an_answer(Telling(relevance=fails_once), ["relevance"], repeats=3)
    assert (raised.value.spent["cost_usd"], raised.value.spent["extra"]) == (1.25, {"requests": 4})


def test_each_score_of_one_rubric_has_its_own_median():
    def five(request: JudgeRequest) -> Judgement:
        scores = {name: (request.trial + at) % 3 / 2 for at, name in enumerate(FIVE)}
        return Judgement(request.rubric, scores)

    found = of(Telling(abstention=0, composite=five), ["composite"], repeats=3)["composite"]
    assert found.scores == dict.fromkeys(FIVE, 0.5)
    assert found.extra["spread"] == dict.fromkeys(FIVE, 1.0)
