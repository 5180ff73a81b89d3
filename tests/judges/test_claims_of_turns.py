"""Claims of a turn: passages of the conversation and the person support them, never what the system said."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from judge_server import JudgeServer
from project import Project

from pytest_rageval.judges import requests_for
from pytest_rageval.judges.cache.cache_key import key_parts
from pytest_rageval.judges.judging import judge_answer
from pytest_rageval.judges.lexical_judge import LexicalJudge
from pytest_rageval.judges.model_judge import render
from pytest_rageval.judges.rubrics import load_rubric, rubric_of
from pytest_rageval.model import Answer, Chunk, Dialogue, EvalCase, Turn

INVENTED = "A parcel to Mars costs 99 euros."
RETRIEVED = "A parcel to Jeju costs 6 euros."
CASE = EvalCase("talk[2]", "Are you sure?", conversation="talk", turn=2)
CHUNKS = (Chunk("c1", rel_path="a.md", text="The shop opens at nine."),)
SAID = (Turn("user", "What is the price of a parcel?"), Turn("assistant", INVENTED))


def support_of(text: str, *passages: tuple[str, str]) -> float:
    """The share of the supported claims of an answer that follows an invented one."""
    dialogue = Dialogue("id", SAID, passages)
    answer = Answer(text, chunks=CHUNKS)
    judged = asyncio.run(judge_answer(LexicalJudge(), CASE, answer, ["claim_support"], 5, dialogue=dialogue))
    return judged["claim_support"].scores["claim_support"]


def test_a_claim_that_repeats_what_the_system_invented_stays_unsupported():
    assert support_of(INVENTED) == 0


def test_a_claim_is_supported_by_a_passage_that_only_the_first_turn_retrieved():
    assert support_of(RETRIEVED) == 0
    assert support_of(RETRIEVED, ("c9", RETRIEVED)) == 1
    assert support_of(f"{INVENTED} {RETRIEVED}", ("c9", RETRIEVED)) == 0.5


def test_the_turns_are_fenced_and_stand_in_the_key_of_the_cache():
    others = (SAID, SAID[:1], (Turn("user", "What is the price of a letter?"), SAID[1]))
    keys = set()
    for history in others:
        case = replace(CASE, history=history)
        dialogue = Dialogue("id", history)
        (request,) = requests_for(case, Answer(INVENTED, chunks=CHUNKS), ["claim_support"], 5, dialogue=dialogue)
        keys.add(key_parts(request, "m").key)
        prompt = render(rubric_of(request), request, "fence-0123456789abcdef").text
        task, fence, turns = prompt.partition("<fence-0123456789abcdef conversation so far>")
        assert fence
        assert history[0].text in turns
        assert "The assistant's turns are no source" in task
    assert len(keys) == len(others)


def test_a_rubric_of_the_project_that_reads_the_answer_alone_is_given_them_too():
    own = replace(
        load_rubric("claim_support"), name="polite", material=(), task="", reply="", scores={"polite": "score"},
        prompt="Is it polite?\n<{marker}>\n{answer}\n</{marker}>\n", prompt_version="own",
    )  # fmt: skip
    dialogue = Dialogue("id", SAID)
    case = replace(CASE, history=SAID)
    (request,) = requests_for(case, Answer("No."), ["polite"], 5, wordings={"polite": own}, dialogue=dialogue)
    assert [turn["text"] for turn in request.variables["history"]] == [turn.text for turn in SAID]


def test_a_criterion_may_rest_on_what_earlier_turns_retrieved(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    wanted = [{"type": "llm-rubric", "value": "It names the price."}]
    project.cases([{"id": "talk", "turns": [{"question": "boiling?"}, {"question": "freezing?", "assert": wanted}]}])
    project.write("said.py", FORGETFUL)
    project.configure('target = "said:answer"\njudge_requests = "separate"\n[tool.rageval.metrics]\nenabled = []')
    with JudgeServer(score=1) as server:
        project.rageval("run", "--judge", f"openai:judge-1@{server.url}")
        (sent,) = [json.dumps(chat.json) for chat in server.chats if "It names the price." in json.dumps(chat.json)]
    assert RETRIEVED in sent


FORGETFUL = f'''
def answer(question, history):
    """Retrieve the price in the first turn only; repeat it and an invention in each."""
    text = "{RETRIEVED}" if not history else "The shop opens at nine."
    return {{"answer": "{RETRIEVED} {INVENTED}", "abstained": False,
            "debug": {{"retrieved_chunks": [{{"chunk_id": text[:9], "rel_path": "a.md", "text": text}}]}}}}
'''


def fenced(request: Any, label: str) -> str:
    """Return the material under a label of the prompt."""
    text = "\n".join(message["content"] for message in request["messages"])
    return text.rpartition(f" {label}>\n")[0].rpartition(f" {label}>\n")[2]


def by_context(request: Any) -> object:
    """Reply as a judge would that reads the context alone."""
    context = fenced(request, "context")
    if not context:
        return {"claims": [RETRIEVED, INVENTED]}
    held = [RETRIEVED in context, INVENTED in context]
    verdicts = [{"number": at, "reasoning": "so", "supported": is_held} for at, is_held in enumerate(held, start=1)]
    return {"verdicts": verdicts}


def test_claims_of_a_live_conversation_are_judged_and_judged_again(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    project.cases([{"id": "talk", "turns": [{"question": "What is the price?"}, {"question": "Are you sure?"}]}])
    project.write("said.py", FORGETFUL)
    project.configure('target = "said:answer"\n[tool.rageval.metrics]\nenabled = ["claim_support"]')

    def supports() -> list[float]:
        return [record["scores"]["claim_support"] for record in project.results("one")]

    with JudgeServer(says=by_context) as server:
        project.rageval("run", "--judge", f"openai:judge-1@{server.url}", "--run-id", "one")
        assert supports() == [0.5, 0.5]
        asked = len(server.chats)
        assert asked == 4
        project.rageval("run", "--judge", f"openai:judge-1@{server.url}", "--run-id", "two")
        assert len(server.chats) == asked, "all of it is in the cache"
        project.rageval("judge", "one", "--judge", f"openai:judge-2@{server.url}")
        assert supports() == [0.5, 0.5]
        turns = [fenced(chat.json, "conversation so far") for chat in server.chats]
    assert len(turns) == 8
    assert sum(INVENTED in said for said in turns) == 4, "the splits and the verdicts of the second turn"
