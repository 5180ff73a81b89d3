"""Replies in the manners of honest models: none is lost to the grammar of replies, and what prose around one costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from judge_server import JudgeServer
from model_judges import a_judge, judged

from pytest_rageval.judges.judge_reply import read_reply
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.llm.anthropic import AnthropicWire
from pytest_rageval.llm.json_exchange import UnreadableReply
from pytest_rageval.llm.ollama import OllamaWire
from pytest_rageval.llm.openai import OpenAiWire

CORPUS = Path(__file__).parents[1] / "data" / "judge_replies" / "honest.jsonl"
REPLIES = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
BODIES = {
    "openai": lambda content: {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]},
    "anthropic": lambda content: {"content": [{"type": "text", "text": content}], "stop_reason": "end_turn"},
    "ollama": lambda content: {"message": {"content": content}, "done": True, "done_reason": "stop"},
}
WIRES: dict[str, Any] = {"openai": OpenAiWire, "anthropic": AnthropicWire, "ollama": OllamaWire}
MARKER = "fence-0123456789abcdef"


def score_of(reply: dict[str, Any]) -> float | None:
    """The score that is read from a reply as its server sends it; None where it is unreadable."""
    said = WIRES[reply["api"]]("http://localhost").read(BODIES[reply["api"]](reply["content"]))
    assert said.flaw is None
    try:
        (score,) = read_reply(said.text or "", load_rubric(reply["rubric"]), MARKER).scores.values()
    except UnreadableReply:
        return None
    return score


def test_every_reply_in_the_manner_of_an_honest_model_is_read_as_it_stands():
    read = [reply for reply in REPLIES if reply["asked"] == "once"]
    assert len(read) == 200
    assert [reply["manner"] for reply in read if score_of(reply) != reply["score"]] == []


def test_replies_with_prose_or_a_draft_around_are_not_guessed_at():
    assert {score_of(reply) for reply in REPLIES if reply["asked"] == "again"} == {None}


@pytest.mark.parametrize("manner", sorted({reply["manner"] for reply in REPLIES if reply["asked"] == "again"}))
def test_a_reply_with_prose_around_costs_one_more_request(manner: str):
    chatty = next(r for r in REPLIES if (r["manner"], r["rubric"]) == (manner, "groundedness"))
    sound = next(r for r in REPLIES if (r["manner"], r["rubric"]) == ("structured output", "groundedness"))
    with JudgeServer(chatty["content"], sound["content"]) as server:
        (said,) = judged(a_judge(server))
    assert (said.scores["groundedness"], len(server.requests)) == (sound["score"], 2)
