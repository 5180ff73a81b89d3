"""Cases with earlier turns: every rubric is given the conversation that the answer belongs to."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from judge_server import JudgeServer
from project import Project, a_case

from pytest_rageval.judges import requests_for
from pytest_rageval.judges.cache.cache_key import key_parts
from pytest_rageval.judges.judging import judge_answer
from pytest_rageval.judges.lexical_judge import LexicalJudge
from pytest_rageval.judges.model_judge import render
from pytest_rageval.judges.requests import joint_request
from pytest_rageval.judges.rubrics import load_rubric, rubric_names, rubric_of
from pytest_rageval.model import Answer, Chunk, Dialogue, EvalCase, Gold, JudgeRequest, Turn

HISTORY = (Turn("user", "Tell me of the Lumen camera."), Turn("assistant", "It is a camera for film sets."))
CASE = EvalCase("q1", "How fast is it?", gold=Gold(answers=("30 Hz",), recency_conflict_rule="acknowledge_both"))
TALK = replace(CASE, history=HISTORY)
CHUNKS = (Chunk("c1", rel_path="a.md", text="The camera runs at 30 Hz."), Chunk("c2", rel_path="b.md", text="Two."))
ANSWER = Answer(text="It runs at 30 Hz.", chunks=CHUNKS)
RUBRICS = [name for name in rubric_names() if "history" not in load_rubric(name).variables]
"""Those that do not read the turns of their own accord, for example of composite."""


def request_of(case: EvalCase, rubric: str) -> JudgeRequest:
    (request,) = requests_for(case, ANSWER, [rubric], 5)
    return request


def prompt_of(request: JudgeRequest) -> str:
    return render(rubric_of(request), request, "fence-0123456789abcdef").text


@pytest.mark.parametrize("rubric", RUBRICS)
def test_every_rubric_is_given_the_earlier_turns(rubric: str):
    request = request_of(TALK, rubric)
    assert [turn["text"] for turn in request.variables["history"]] == [turn.text for turn in HISTORY]
    before, fence, after = prompt_of(request).rpartition("<fence-0123456789abcdef conversation so far>")
    assert fence
    assert "Tell me of the Lumen camera." in after
    assert "Lumen" not in before


@pytest.mark.parametrize("rubric", RUBRICS)
def test_a_case_without_earlier_turns_has_the_prompt_and_the_key_of_before(rubric: str):
    request = request_of(CASE, rubric)
    shipped = load_rubric(rubric)
    assert (request.wording, request.prompt_version) == (shipped, shipped.prompt_version)
    assert request.variables.keys() == shipped.variables
    assert request.variables.get("history", []) == []


@pytest.mark.parametrize("rubric", RUBRICS)
def test_other_turns_are_another_judgement(rubric: str):
    others = (CASE, TALK, replace(CASE, history=HISTORY[:1]), replace(CASE, history=HISTORY[::-1]))
    keys = {key_parts(request_of(case, rubric), "m").key for case in others}
    assert len(keys) == len(others)


def test_a_prompt_with_its_own_fences_is_given_them_at_its_end():
    own = replace(
        load_rubric("groundedness"), material=(), task="", reply="",
        prompt="Judge.\n<{marker}>\n{question}\n{answer}\n</{marker}>\n", prompt_version="own",
    )  # fmt: skip
    (request,) = requests_for(TALK, ANSWER, ["groundedness"], 5, wordings={"groundedness": own})
    assert prompt_of(request).startswith("Judge.\n")
    assert prompt_of(request).rstrip().endswith("</fence-0123456789abcdef conversation so far>")
    (plain,) = requests_for(CASE, ANSWER, ["groundedness"], 5, wordings={"groundedness": own})
    assert plain.wording is own


def test_several_rubrics_in_one_request_share_the_turns():
    names = ["groundedness", "correctness", "relevance"]
    joint = joint_request(requests_for(TALK, ANSWER, names, 5))
    assert prompt_of(joint).count("Tell me of the Lumen camera.") == 1
    plain = joint_request(requests_for(CASE, ANSWER, names, 5))
    assert "<fence-0123456789abcdef conversation so far>" not in prompt_of(plain)


async def scores(case: EvalCase, rubric: str) -> dict[str, float]:
    return dict((await LexicalJudge().judge(request_of(case, rubric))).scores)


@pytest.mark.parametrize("rubric", ["groundedness", "correctness", "relevance", "faithfulness"])
def test_the_lexical_judge_counts_no_earlier_turn_as_evidence(rubric: str):
    said = "It runs at 30 Hz."
    talk = replace(CASE, history=(Turn("user", "What runs at 30 Hz, the projector?"), Turn("assistant", said)))
    assert asyncio.run(scores(talk, rubric)) == asyncio.run(scores(CASE, rubric))


def test_a_judge_is_sent_the_turns_of_a_case(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    turns = [{"role": turn.role, "text": turn.text} for turn in HISTORY]
    project.cases([a_case("talk", history=turns), a_case("alone")])
    project.write("said.py", "def answer(question, history=None):\n    import bot\n    return bot.answer(question)\n")
    project.configure('target = "said:answer"\n[tool.rageval.metrics]\nenabled = ["groundedness"]')
    with JudgeServer(score=5) as server:
        project.rageval("run", "--judge", f"openai:judge-1@{server.url}")
        sent = [json.dumps(chat.json) for chat in server.chats]
        assert ["Lumen" in text for text in sorted(sent, key=len)] == [False, True]
        project.rageval("run", "--judge", f"openai:judge-1@{server.url}")
        assert len(server.chats) == 2, "both judgements are in the cache"


PASSAGE = ("c9", "Shipping to Jeju costs 6 euros.")
INVENTED = "Shipping to Mars costs 99 euros."


def contexts_of(answer: Answer, *, passages: tuple[tuple[str | None, str], ...] = ()) -> list[str]:
    """The texts that grounding may rest on, after a turn in which the system invented something."""
    said = (Turn("user", "My order is number 4711."), Turn("assistant", INVENTED))
    dialogue = Dialogue("id", said, passages)
    (request,) = requests_for(replace(CASE, history=said), answer, ["groundedness"], 5, dialogue=dialogue)
    return [context["text"] for context in request.variables["contexts"]]


def test_an_answer_may_rest_on_earlier_chunks_and_on_what_the_person_said():
    earlier = (PASSAGE, ("c1", "The camera runs at 30 Hz."))
    texts = contexts_of(ANSWER, passages=earlier)
    assert texts == [*(chunk.text for chunk in CHUNKS), PASSAGE[1], "My order is number 4711."]


def test_no_answer_rests_on_what_the_system_said():
    repeated = replace(ANSWER, text=INVENTED)
    assert INVENTED not in contexts_of(repeated, passages=(PASSAGE,))
    dialogue = Dialogue("id", (Turn("user", "To Mars?"), Turn("assistant", INVENTED)), (PASSAGE,))
    judged = asyncio.run(judge_answer(LexicalJudge(), CASE, repeated, ["groundedness"], 5, dialogue=dialogue))
    assert judged["groundedness"].scores["groundedness"] < 2.5


def test_without_any_context_what_the_person_said_makes_none():
    dialogue = Dialogue("id", HISTORY, ())
    answer = Answer(text="It runs at 30 Hz.")
    assert requests_for(CASE, answer, ["groundedness"], 5, dialogue=dialogue) == []


def test_small_talk_is_not_judged():
    assert requests_for(replace(CASE, conversational=True), ANSWER, RUBRICS, 5) == []


def test_a_judge_is_sent_what_was_said_live(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    project.cases([{"id": "talk", "turns": [{"question": "boiling?"}, {"question": "freezing?"}]}])
    project.write("said.py", "def answer(question, history):\n    import bot\n    return bot.answer(question)\n")
    project.configure('target = "said:answer"\n[tool.rageval.metrics]\nenabled = ["groundedness"]')
    with JudgeServer(score=5) as server:
        project.rageval("run", "--judge", f"openai:judge-1@{server.url}", "--run-id", "one")
        sent = sorted([json.dumps(chat.json) for chat in server.chats], key=len)
        assert ["Water boils at 100 degrees" in text for text in sent] == [True, True]
        assert ["conversation so far" in text for text in sent] == [False, True]
        # Judged again, from the records alone.
        project.rageval("judge", "one", "--judge", f"openai:judge-2@{server.url}")
        again = sorted([json.dumps(chat.json) for chat in server.chats[2:]], key=len)
        assert "conversation so far" in again[1]
