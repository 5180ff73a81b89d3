"""The judge that is a model where servers fail or refuse, replies are chatty, and money runs out."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from fault_server import Connection, hangs, resets, status
from judge_server import JudgeServer
from model_judges import GOOD, KNOWN, a_judge, a_request, failure_of, judged

from pytest_rageval.judges.judge_reply import read_reply
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.llm.anthropic import AnthropicWire
from pytest_rageval.llm.endpoint_options import Budget
from pytest_rageval.llm.json_exchange import UnreadableReply
from pytest_rageval.llm.ollama import OllamaWire
from pytest_rageval.llm.openai import OpenAiWire

pytestmark = pytest.mark.reliability("API faults", "the server of a judge")


@pytest.mark.parametrize(
    "fault",
    [
        status(429, retry_after="0"),
        *map(status, (408, 409, 425, 500, 502, 503, 504, 529)),
        status(200, b'{"error": {"code": 429, "message": "slow down"}}', retry_after="0"),
        status(200, b'{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}'),
        resets,
    ],
)
def test_what_may_pass_is_tried_again(kind: str, fault: Any):
    with JudgeServer(fault, GOOD) as server:
        (said,) = judged(a_judge(server, kind))
    assert said.scores == {"groundedness": 4.0}
    assert len(server.chats) == 2


@pytest.mark.parametrize(
    ("fault", "kind_of_error", "times"),
    [
        (hangs, "timeout", 2),
        (resets, "reset", 2),
        (status(401), "http_4xx", 1),
        (status(429, b'{"error": {"type": "insufficient_quota", "message": "pay"}}'), "http_4xx", 1),
        (status(200, b'{"error": {"code": 503, "message": "busy"}}'), "http_5xx", 2),
        (status(302, location="http://elsewhere.example/"), "invalid_response", 1),
        (status(200, b""), "empty", 1),
        (status(200, b"[" * 100_000), "invalid_json", 1),
        (status(200, b'{"x": NaN}'), "invalid_json", 1),
        (status(200, b"null"), "invalid_response", 1),
        (status(200, b'{"choices": []}'), "invalid_response", 1),
        (status(200, b'{"choices": [{"message": {"content": 4}}]}'), "invalid_response", 1),
        (status(200, b'{"choices": [null], "content": [null]}'), "invalid_response", 1),
        (status(200, b'{"error": {"message": "model is loading"}}'), "invalid_response", 1),
    ],
)
def test_a_fault_that_stays_is_a_typed_error(kind: str, fault: Any, kind_of_error: str, times: int):
    with JudgeServer(fault) as server:
        failure = failure_of(a_judge(server, kind, retries=1, timeout=1.5 if kind_of_error == "timeout" else 20.0))
    assert failure.kind == kind_of_error
    assert len(server.chats) == times


@pytest.mark.parametrize("usage", [{"prompt_tokens": -1}, {"prompt_tokens": "9"}, {"prompt_tokens": True}, [], 7, None])
def test_a_usage_that_is_no_number_of_tokens_is_unknown(usage: object):
    body = {"choices": [{"message": {"content": json.dumps(GOOD)}}], "usage": usage}
    with JudgeServer(status(200, json.dumps(body).encode())) as server:
        (said,) = judged(a_judge(server))
    assert (said.tokens_in, said.tokens_out) == (None, None)


def test_a_judge_that_can_be_asked_has_no_problem_and_nothing_is_paid(kind: str):
    with JudgeServer() as server:
        assert asyncio.run(a_judge(server, kind).check()) is None
    assert server.chats == []
    assert [request.path for request in server.requests] == ["/v1/models"]


def test_when_the_budget_is_spent_nothing_more_is_asked(kind: str):
    budget = Budget(0.00005)
    with JudgeServer(GOOD, usage=(100, 20)) as server:
        judge = a_judge(server, kind, tariff=KNOWN, budget=budget, concurrency=1)
        failure = failure_of(judge, *(a_request(str(n)) for n in range(6)))
    assert failure.kind == "budget"
    assert len(server.chats) == 2
    assert budget.spent_usd == pytest.approx(2 * (100 * 0.15 + 20 * 0.60) / 1e6)


def test_a_server_that_tells_no_usage_spends_the_budget_all_the_same():
    budget = Budget(1.0)
    with JudgeServer(GOOD, usage=None) as server:
        (said,) = judged(a_judge(server, tariff=KNOWN, budget=budget))
    assert said.cost_usd is None
    assert budget.spent_usd > 0


def test_no_more_requests_are_under_way_than_allowed():
    with JudgeServer(GOOD, delay=0.2) as server:
        judged(a_judge(server, concurrency=4, share=0.5), *(a_request(str(n)) for n in range(8)))
    assert server.most_at_once == 2


FOLDER = Path(__file__).parents[1] / "data" / "provider_errors"
ERRORS = {
    f"{file.stem}: {error['name']}": {"api": "anthropic" if file.stem == "anthropic" else "openai", **error}
    for file in sorted(FOLDER.glob("*.json"))
    for error in json.loads(file.read_text(encoding="utf-8"))
}
SENT_AS = {"temperature": ("temperature",), "seed": ("seed",), "schema": ("response_format", "tools")}


class Provider(JudgeServer):
    """Sends an error as long as the request holds what it is about."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(GOOD)
        self.error = error

    async def _chat(self, connection: Connection, shape: Any) -> None:
        asked = connection.request.json
        unwanted = [field for name in self.error.get("drops", ()) for field in SENT_AS[name]]
        unwanted += [self.error["renames"]] if "renames" in self.error else []
        has_role = any(message["role"] == "system" for message in asked["messages"])
        is_refused = any(field in asked for field in unwanted) or (has_role and self.error.get("drops_role"))
        if is_refused or not (unwanted or "drops_role" in self.error):
            await connection.reply(self.error["status"], json.dumps(self.error["body"]).encode())
        else:
            await self._next(connection, shape)


@pytest.mark.parametrize("name", [name for name, error in ERRORS.items() if "kind" not in error])
def test_what_a_provider_refuses_is_left_out_and_the_request_repeated(name: str):
    error = ERRORS[name]
    with Provider(error) as server:
        (said,) = judged(a_judge(server, error["api"]))
    assert said.scores == {"groundedness": 4.0}
    drops = error.get("drops", [])
    assert said.extra.get("left_out", []) == drops
    # A schema is asked for as any JSON object before it is left to the prompt; Anthropic has no such form.
    assert len(server.chats) == 1 + max(1, len(drops)) + ("schema" in drops and error["api"] == "openai")
    last = server.chats[-1].json
    assert ("max_completion_tokens" in last) == ("renames" in error)


@pytest.mark.parametrize("name", [name for name, error in ERRORS.items() if "kind" in error])
def test_what_cannot_be_left_out_is_told_in_the_providers_words(name: str):
    error = ERRORS[name]
    with Provider(error) as server:
        failure = failure_of(a_judge(server, error["api"], retries=1, patience=0.3))
    assert failure.kind == error["kind"]
    if "means" in error and error["status"] == 200:
        assert f"status 200 with an error of status {error['means']}" in str(failure)
    if error["kind"] == "rate_limited":
        assert len(server.chats) > 2, "a refusal is no attempt"
    else:
        assert len(server.chats) == (2 if error.get("retried") else 1)


def test_every_provider_has_its_file():
    assert {file.stem for file in FOLDER.glob("*.json")} == {
        "anthropic", "azure", "bedrock", "gemini", "mistral", "ollama", "openai", "openrouter", "vllm",
    }  # fmt: skip


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
