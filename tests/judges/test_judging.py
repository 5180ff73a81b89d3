"""An answer before the judge: what is asked first, what is not asked then, how often, and what several sayings make."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from judge_server import JudgeServer

from pytest_rageval.config.settings import Settings
from pytest_rageval.engine import observe_case, score_case
from pytest_rageval.errors import JudgeError
from pytest_rageval.judges import judge_from_spec, rubrics
from pytest_rageval.judges.judging import judge_answer
from pytest_rageval.judges.lexical.lexical_judge import LexicalJudge
from pytest_rageval.judges.rubrics import load_rubric, rubric_names, rubric_of
from pytest_rageval.judges.stub import StubJudge
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import Answer, AskRequest, CaseResult, Chunk, EvalCase, Gold, Judgement, JudgeRequest
from pytest_rageval.plan import make_plan

CASE = EvalCase("q1", "How fast is the camera?", gold=Gold(answers=("30 Hz",)))
CHUNKS = (Chunk("a#1", rel_path="a.md", text="The camera runs at 30 Hz."), Chunk("b#1", rel_path="b.md", text="29 Hz"))
FIVE = ("relevance", "faithfulness", "citation_accuracy", "abstention_quality", "synthesis")


class Telling:
    """A judge that says what it is told to say of each rubric, else the middle of the scale; knows what was asked."""

    model, heuristic = "telling/1", False

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
    taken: dict[str, Any] = {
        "tokens_in": 10,
        "tokens_out": 1,
        "cost_usd": 0.5,
        "latency_ms": 2.0,
        "model": "telling/1",
    } | fields
    scores = dict.fromkeys(rubric.scores, score)
    return Judgement(request.rubric, scores, rubric.scale, prompt_version=request.prompt_version, **(taken | fields))


def of(judge, rubrics: Sequence[str], case: EvalCase = CASE, text: str = "It runs at 30 Hz.", **settings):
    answer = Answer(text, chunks=CHUNKS, abstained=settings.pop("abstained", None))
    return asyncio.run(judge_answer(judge, case, answer, rubrics, 5, **settings))


def of_an_answer(judge, rubrics: Sequence[str], **settings):
    """Of one that the system itself calls no abstention, so that nothing else is asked."""
    return of(judge, rubrics, abstained=False, **settings)


# ── what is asked ─────────────────────────────────────────────────────────────────────────────────────────────


def test_judgements_come_by_rubric_in_the_order_that_was_asked_for():
    found = of(Telling(abstention=0), ["groundedness", "correctness", "abstention"])
    assert list(found) == ["groundedness", "correctness", "abstention"]
    assert found["groundedness"].scores == {"groundedness": 2.5}


def test_whether_the_system_abstained_is_asked_first():
    judge = Telling(abstention=0)
    of(judge, ["groundedness", "relevance", "abstention"])
    assert judge.asked_rubrics == ["abstention", "groundedness", "relevance"]


def test_whether_the_system_abstained_is_asked_although_no_metric_of_abstention_is_on():
    judge = Telling(abstention=1)
    found = of(judge, ["groundedness"])
    assert judge.asked_rubrics == list(found) == ["abstention"]


def test_it_is_not_asked_where_nothing_would_depend_on_it():
    judge = Telling()
    assert of(judge, ["conflict_acknowledged"]) == {}
    assert judge.asked == []
    assert list(of(judge, ["abstention"])) == ["abstention"]


def test_what_an_abstention_is_not_judged_in_is_not_paid_for():
    judge = Telling(abstention=1)
    found = of(judge, ["groundedness", "correctness", *FIVE, "claim_support", "abstention"])
    assert judge.asked_rubrics == ["abstention", "correctness", "abstention_quality"]
    assert list(found) == ["correctness", "abstention_quality", "abstention"]


def test_the_correctness_of_a_right_abstention_is_not_judged():
    unanswerable = EvalCase("q2", "Who won?", answerable=False)
    judge = Telling(abstention=1)
    of(judge, ["groundedness", "correctness", "abstention"], unanswerable)
    assert judge.asked_rubrics == ["abstention"]


@pytest.mark.parametrize(("abstained", "rest"), [(True, []), (False, ["groundedness"])])
def test_the_classifier_is_not_asked_where_the_response_says_it(abstained, rest):
    judge = Telling(abstention=not abstained)
    of(judge, ["groundedness", "abstention"], abstained=abstained)
    assert judge.asked_rubrics == rest


def test_nothing_is_asked_about_a_blank_answer():
    judge = Telling()
    assert of(judge, rubric_names(), text=" ") == {}
    assert judge.asked == []


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


def test_phrasing_does_not_decide_where_the_judge_has_the_classifier():
    judge = Telling(abstention=0)
    judged = of(judge, ["groundedness"], text="I could not find that in the notes.")
    assert judged["abstention"].scores == {"abstained": 0.0}
    assert "decided_by" not in judged["abstention"].extra


@pytest.mark.parametrize("judge", [LexicalJudge(), StubJudge(1)])
def test_phrases_of_the_project_tell_an_abstention_too(judge):
    answer, phrases = "Ask the front desk, dear guest.", ["Ask the  FRONT desk"]
    assert of(judge, ["groundedness"], text=answer)["abstention"].scores == {"abstained": 0.0}
    assert of(judge, ["groundedness"], text=answer, phrases=phrases)["abstention"].scores == {"abstained": 1.0}


def test_one_call_of_the_composite_serves_its_five_dimensions():
    judge = Telling(abstention=0)
    found = of(judge, [*FIVE, "composite", "abstention"])
    assert judge.asked_rubrics == ["abstention", "composite"]
    assert set(found["composite"].scores) == set(FIVE)


def test_a_judge_without_the_composite_is_asked_for_its_dimensions_one_by_one():
    judge = Telling(["relevance", "faithfulness"])
    assert list(of(judge, [*FIVE, "composite"])) == ["relevance", "faithfulness", "abstention"]


def test_the_quality_of_an_abstention_is_judged_although_the_composite_is_on():
    judge = Telling(abstention=1)
    of(judge, [*FIVE, "composite", "abstention"])
    assert judge.asked_rubrics == ["abstention", "abstention_quality"]


def test_the_wordings_of_the_project_reach_the_judge():
    seen: list[JudgeRequest] = []

    def judgement(request: JudgeRequest) -> Judgement:
        seen.append(request)
        return a_judgement(request, 1)

    judge = Telling(relevance=judgement)
    own = load_rubric("relevance")
    of_an_answer(judge, ["relevance"], wordings={"relevance": own})
    assert seen[0].wording is own


def test_what_follows_the_classifier_is_asked_at_the_same_time():
    waiting: list[str] = []
    everybody = asyncio.Event()

    class Patient(Telling):
        async def judge(self, request: JudgeRequest) -> Judgement:
            if request.rubric != "abstention":
                waiting.append(request.rubric)
                if len(waiting) == 2:
                    everybody.set()
                await everybody.wait()
            return a_judgement(request, 0)

    of(Patient(), ["groundedness", "correctness", "abstention"])
    assert waiting == ["groundedness", "correctness"]


def test_the_first_error_in_order_is_raised_once_the_rest_has_been_judged():
    judge = Telling(abstention=0, correctness=JudgeError("timeout", "late"), relevance=JudgeError("reset", "gone"))
    with pytest.raises(JudgeError, match="late"):
        of(judge, ["groundedness", "correctness", "relevance", "abstention"])
    assert judge.asked_rubrics == ["abstention", "groundedness", "correctness", "relevance"]


def test_a_classifier_that_fails_ends_the_judging():
    judge = Telling(abstention=JudgeError("timeout", "late"))
    with pytest.raises(JudgeError, match="late"):
        of(judge, ["groundedness", "abstention"])
    assert judge.asked_rubrics == ["abstention"]


def test_the_lexical_judge_goes_through_it():
    found = of(LexicalJudge(), ["groundedness", "correctness", "composite", "abstention"])
    assert list(found) == ["groundedness", "correctness", "abstention"]
    assert found["groundedness"].scores["groundedness"] > 4


def test_a_stub_scores_the_composite_too():
    found = of(StubJudge(0.5), ["composite", "abstention", "conflict_acknowledged"])
    assert found["composite"].scores == dict.fromkeys(FIVE, 0.5)
    assert list(found) == ["composite", "abstention"]


# ── repeats ───────────────────────────────────────────────────────────────────────────────────────────────────


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
    assert found.extra == {"repeats": {"groundedness": [5, 1, 4]}, "spread": {"groundedness": 4}}


def test_between_two_medians_lies_their_mean():
    assert of_an_answer(Telling(groundedness=by_trial(5, 2)), ["groundedness"], repeats=2)["groundedness"].scores == {
        "groundedness": 3.5
    }


def test_every_repeat_is_a_trial_of_its_own_so_that_the_cache_keeps_each():
    judge = Telling()
    of_an_answer(judge, ["relevance"], repeats=3, trial=2)
    assert judge.asked == [("relevance", 6), ("relevance", 7), ("relevance", 8)]
    judge = Telling()
    of_an_answer(judge, ["relevance"], trial=2)
    assert judge.asked == [("relevance", 2)]


def test_the_cost_of_repeats_is_added_up():
    found = of_an_answer(Telling(), ["relevance"], repeats=3)["relevance"]
    assert (found.tokens_in, found.tokens_out, found.cost_usd, found.latency_ms) == (30, 3, 1.5, 6.0)


def test_a_cost_that_is_not_known_of_every_repeat_is_not_known():
    judge = Telling(relevance=by_trial(1, cost_usd=lambda trial: 0.5 if trial else None))
    assert of_an_answer(judge, ["relevance"], repeats=3)["relevance"].cost_usd is None


def test_what_came_from_the_cache_costs_nothing_now():
    found = of_an_answer(Telling(relevance=by_trial(1, cached=lambda trial: trial == 0)), ["relevance"], repeats=3)[
        "relevance"
    ]
    assert (found.cost_usd, found.cached) == (1.0, False)
    found = of_an_answer(Telling(relevance=by_trial(1, cached=lambda trial: True)), ["relevance"], repeats=3)[
        "relevance"
    ]
    assert (found.cost_usd, found.cached) == (1.5, True)


def test_an_error_in_one_repeat_is_an_error():
    def fails_once(request: JudgeRequest) -> Judgement:
        if request.trial == 1:
            raise JudgeError("invalid_reply", "unreadable")
        return a_judgement(request, 1)

    with pytest.raises(JudgeError, match="unreadable"):
        of_an_answer(Telling(relevance=fails_once), ["relevance"], repeats=3)


def test_flags_of_all_repeats_are_kept():
    judge = Telling(relevance=by_trial(1, flags=lambda trial: ("quotes the marker",) if trial == 2 else ()))
    assert of_an_answer(judge, ["relevance"], repeats=3)["relevance"].flags == ("quotes the marker",)


def test_a_heuristic_is_asked_once_since_it_says_the_same_every_time():
    judge = Telling(heuristic=True)
    found = of_an_answer(judge, ["relevance"], repeats=5)
    assert judge.asked == [("relevance", 0)]
    assert found["relevance"].extra == {}


def test_the_classifier_is_repeated_too():
    judge = Telling(abstention=by_trial(1, 0, 1))
    found = of(judge, ["groundedness", "abstention"], repeats=3)
    assert judge.asked_rubrics == ["abstention"] * 3
    assert found["abstention"].scores == {"abstained": 1.0}


def test_each_score_of_one_rubric_has_its_own_median():
    def five(request: JudgeRequest) -> Judgement:
        scores = {name: (request.trial + at) % 3 / 2 for at, name in enumerate(FIVE)}
        return Judgement(request.rubric, scores)

    found = of(Telling(abstention=0, composite=five), ["composite"], repeats=3)["composite"]
    assert found.scores == dict.fromkeys(FIVE, 0.5)
    assert found.extra["spread"] == dict.fromkeys(FIVE, 1.0)


# ── a case, a plan, a model behind a real server ──────────────────────────────────────────────────────────────


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


def test_a_model_is_shown_the_rubric_of_the_project(tmp_path):
    text = (Path(rubrics.__file__).parent / "faithfulness.toml").read_text(encoding="utf-8")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/faithfulness.toml").write_text(text.replace("a strict examiner", "a Korean examiner"))
    with JudgeServer({"reasoning": "", "supported_claims": [], "unsupported_claims": [], "score": 0.5}) as server:
        result = evaluated(server, tmp_path, enabled=("faithfulness",), rubrics="own")
    assert [chat.json["messages"][0]["content"].count("a Korean examiner") for chat in server.chats] == [1]
    assert result.scores == {"faithfulness": 0.5, "over_abstention": 0.0}
    assert [gate.tag for gate in result.failed_gates] == ["L5_faithfulness_fail"]


def test_a_model_takes_an_answer_apart_and_judges_its_claims(tmp_path):
    claims = {"claims": ["It runs at 30 Hz.", "It is red."]}
    verdicts = [{"number": number, "reasoning": "so", "supported": number == 1} for number in (1, 2)]
    with JudgeServer(claims, {"verdicts": verdicts}) as server:
        result = evaluated(server, tmp_path, enabled=("claim_support",))
    assert len(server.chats) == 2
    assert result.scores == {"claim_support": 0.5, "over_abstention": 0.0}


def test_one_request_to_a_model_makes_a_composite(tmp_path):
    said = {"reasoning": "", **dict.fromkeys(FIVE, 1), "synthesis": 0, "abstention": 1}
    with JudgeServer(said) as server:
        result = evaluated(server, tmp_path, enabled=("composite", "faithfulness"))
    assert len(server.chats) == 1
    assert result.scores == {"faithfulness": 1.0, "composite": pytest.approx(0.85), "over_abstention": 0.0}


def test_an_answer_that_the_classifier_takes_for_an_abstention_is_no_pass_whatever_metrics_are_listed(tmp_path):
    with JudgeServer({"abstained": True, "confidence": 0.9}) as server:
        result = evaluated(server, tmp_path, abstained=None, enabled=("faithfulness",))
    assert (result.outcome, result.scores) == ("failed", {"over_abstention": 1.0})
    assert [gate.tag for gate in result.failed_gates] == ["over_abstention_fail"]


def test_where_a_model_matched_the_reference_the_gate_of_token_f1_stands_back(tmp_path):
    with JudgeServer({"reasoning": "", "score": 0.75}) as server:
        result = evaluated(server, tmp_path, enabled=("reference_match", "token_f1"))
    assert result.scores["token_f1"] < 0.5
    assert result.outcome == "passed"


def test_a_value_between_the_steps_is_asked_for_again_and_then_an_error(tmp_path):
    shipped = (Path(rubrics.__file__).parent / "relevance.toml").read_text(encoding="utf-8")
    own = tmp_path / "own" / "relevance.toml"
    own.parent.mkdir()
    own.write_text(shipped.replace("scale = [0, 1]", "scale = [0, 1]\nstep = 0.25"), encoding="utf-8")
    with JudgeServer({"reasoning": "", "score": 0.6}) as server:
        result = evaluated(server, tmp_path, enabled=("relevance",), rubrics="own")
    assert len(server.chats) == 2
    assert result.error is not None
    assert result.error.kind == "judge_invalid_reply"
