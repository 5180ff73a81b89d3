"""The judge that is a model, against a real server: what it sends, what it reads, and its one repair."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from fault_server import status
from judge_server import JudgeServer
from model_judges import GOOD, KNOWN, a_judge, a_request, failure_of, judged

from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.llm.chat_protocol import EVERYTHING, Message, Question, after_refusal
from pytest_rageval.llm.openai import OpenAiWire
from pytest_rageval.llm.server_error import ServerError


def test_a_reply_becomes_a_judgement_with_what_it_took(kind: str):
    with JudgeServer(GOOD, usage=(120, 30)) as server:
        (said,) = judged(a_judge(server, kind))
    assert (said.scores, said.scale) == ({"groundedness": 4.0}, (0.0, 5.0))
    assert (said.reasoning, said.supported_claims, said.unsupported_claims) == ("all is there", ("it boils",), ())
    assert (said.tokens_in, said.tokens_out, said.model, said.heuristic) == (120, 30, "judge-1", False)
    assert said.prompt_version == load_rubric("groundedness").prompt_version
    assert said.latency_ms is not None
    assert said.latency_ms > 0
    assert said.cost_usd is None, "what a server of one's own costs is not known"
    assert said.flags == ()


def test_openai_is_asked_for_the_schema_at_temperature_0_with_a_seed():
    with JudgeServer(GOOD) as server:
        judged(a_judge(server))
    sent = server.chats[0]
    assert sent.path == "/v1/chat/completions"
    assert (sent.json["model"], sent.json["temperature"], sent.json["seed"]) == ("judge-1", 0.0, 1)
    assert sent.json["response_format"]["json_schema"]["schema"] == load_rubric("groundedness").schema
    assert sent.json["response_format"]["json_schema"]["strict"] is True
    assert [message["role"] for message in sent.json["messages"]] == ["system", "user"]
    assert "Water boils at 100 degrees." in sent.json["messages"][1]["content"]


def test_anthropic_is_asked_for_the_schema_as_a_tool():
    with JudgeServer(GOOD) as server:
        judged(a_judge(server, "anthropic", temperature=0.3))
    sent = server.chats[0]
    assert (sent.path, sent.headers["anthropic-version"]) == ("/v1/messages", "2023-06-01")
    assert sent.json["tools"][0]["input_schema"] == load_rubric("groundedness").schema
    assert sent.json["tool_choice"] == {"type": "tool", "name": "groundedness"}
    assert sent.json["temperature"] == 0.3
    assert "seed" not in sent.json
    assert [message["role"] for message in sent.json["messages"]] == ["user"]
    (system,) = sent.json["system"]
    assert system["cache_control"] == {"type": "ephemeral"}
    assert "rubric" not in system["text"]
    assert "# Scores" in system["text"]


def test_openai_itself_is_told_by_which_prefix_it_caches_and_other_servers_are_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    of_case = [[Message("system", "rules"), Message("user", text)] for text in ("one", "two")]
    first, second = (OpenAiWire().body(Question("m", messages)) for messages in of_case)
    other = OpenAiWire().body(Question("m", [Message("system", "others")]))
    assert first["prompt_cache_key"] == second["prompt_cache_key"] != other["prompt_cache_key"]
    assert "prompt_cache_key" not in OpenAiWire("http://localhost:1").body(Question("m", of_case[0]))
    refused = ServerError("Unrecognized request argument supplied: prompt_cache_key")
    manner = after_refusal(EVERYTHING, refused)
    assert manner is not None
    assert manner.left_out == ()
    assert "prompt_cache_key" not in OpenAiWire().body(Question("m", of_case[0]), manner)


def test_a_server_that_takes_no_cache_control_is_asked_without_and_it_is_noted():
    refusal = "system.0.cache_control: Extra inputs are not permitted"

    class Strict(JudgeServer):
        async def _chat(self, connection: Any, shape: Any) -> None:
            self.refuses = {"system": refusal} if isinstance(connection.request.json["system"], list) else {}
            await super()._chat(connection, shape)

    with Strict(GOOD) as server:
        judge = a_judge(server, "anthropic")
        said = judged(judge, a_request(), a_request("It boils."))
    assert [each.scores for each in said] == [{"groundedness": 4.0}] * 2
    assert all("left_out" not in each.extra for each in said), "it changes no reply"
    assert judge.notes == ["model judge-1: the server does not take a prompt cache; asked without"]


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_tokens_from_the_providers_cache_are_counted(kind: str):
    usage = {
        "openai": {"prompt_tokens": 2000, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 1500}},
        "anthropic": {"input_tokens": 400, "output_tokens": 9, "cache_creation_input_tokens": 100,
                      "cache_read_input_tokens": 1500},
    }[kind]  # fmt: skip
    shapes: dict[str, dict[str, Any]] = {
        "openai": {"choices": [{"message": {"content": json.dumps(GOOD)}}]},
        "anthropic": {"content": [{"type": "text", "text": json.dumps(GOOD)}], "stop_reason": "end_turn"},
    }
    with JudgeServer(status(200, json.dumps(shapes[kind] | {"usage": usage}).encode())) as server:
        (said,) = judged(a_judge(server, kind))
    assert (said.tokens_in, said.extra["tokens_cached"]) == (2000, 1500)


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": json.dumps(GOOD)}],
        [{"type": "reasoning", "text": '{"score": 1}'}, {"type": "text", "text": json.dumps(GOOD)}],
        '<think>perhaps {"score": 1}?</think>\n' + json.dumps(GOOD),
        "\n```json\n" + json.dumps(GOOD) + "\n```",
    ],
)
def test_replies_in_parts_and_with_thoughts_are_read(content: object):
    message = {"content": content, "reasoning_content": 'the score might be {"score": 0}'}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    with JudgeServer(status(200, body)) as server:
        (said,) = judged(a_judge(server))
    assert said.scores == {"groundedness": 4.0}
    assert (said.tokens_in, said.tokens_out) == (None, None), "a server that tells no usage has not used nothing"


@pytest.mark.parametrize("reply", ["<think>" + json.dumps(GOOD), "<thinking>Hm", "I have to score it.</think>"])
def test_thoughts_alone_are_no_reply(reply: str):
    with JudgeServer(reply) as server:
        failure = failure_of(a_judge(server))
    assert failure.kind == "invalid_reply"
    assert "it holds thoughts and no reply" in str(failure)


@pytest.mark.parametrize(
    "thoughts",
    [
        "Let me see. 1?</think>",
        "Let me see: {score: 1}, {a} or {score …</thinking>",
        '<think>a {"score": 0}, <b>, </thinking>, <think></think>',
        "\ufeff<thinking>one {\n</thinking>",
    ],
)
def test_thoughts_at_the_very_beginning_are_not_read(thoughts: str):
    with JudgeServer(thoughts + json.dumps(GOOD)) as server:
        (said,) = judged(a_judge(server))
    assert said.scores == {"groundedness": 4.0}
    assert len(server.requests) == 1


NONE = {**GOOD, "score": 0}


@pytest.mark.parametrize(
    "reply",
    [
        f"{json.dumps(NONE)}</think>{json.dumps(GOOD)}",
        f"Let me see. {json.dumps(NONE)}</think>{json.dumps(GOOD)}",
        f"```json\n{json.dumps(NONE)}\n```</think>{json.dumps(GOOD)}",
        f"<think>a</think>{json.dumps(NONE)}</think>{json.dumps(GOOD)}",
        f"<answer>{json.dumps(GOOD)}</answer>",
        f"{json.dumps(NONE)}{json.dumps(GOOD)}",
    ],
)
def test_of_two_verdicts_none_is_chosen_and_the_model_is_asked_once_more(reply: str):
    with JudgeServer(reply, json.dumps(NONE)) as server:
        (said,) = judged(a_judge(server))
    assert (said.scores, said.extra["repaired"]) == ({"groundedness": 0.0}, True)
    assert len(server.requests) == 2
    with JudgeServer(reply) as server:
        failure = failure_of(a_judge(server))
    assert (failure.kind, failure.spent["extra"], len(server.requests)) == ("invalid_reply", {"requests": 2}, 2)


def a_choice(content: object, reason: str | None = "stop", **message: object) -> Any:
    choice = {"message": {"content": content, **message}, "finish_reason": reason}
    return status(200, json.dumps({"choices": [choice]}).encode())


@pytest.mark.parametrize(
    ("reply", "named", "times"),
    [
        (a_choice(None, refusal="I cannot judge this."), "the model refuses: 'I cannot judge this.'", 2),
        (a_choice(None, "content_filter"), "the provider's content filter ended it", 1),
        (a_choice(json.dumps(GOOD), "length"), "it was cut off before its end", 2),
        (a_choice(None, "tool_calls", tool_calls=[{"id": "1"}]), "it calls a tool instead", 2),
        (a_choice(None, reasoning_content="Hm."), "it holds thoughts and no reply", 2),
        (a_choice(None), "it is empty", 2),
    ],
)
def test_what_is_no_whole_reply_is_named_and_never_scored(reply: Any, named: str, times: int):
    with JudgeServer(reply) as server:
        failure = failure_of(a_judge(server))
    assert failure.kind == "invalid_reply"
    assert str(failure).endswith(f"no score can be read: {named}")
    assert len(server.chats) == times


def test_each_trial_of_a_request_has_a_seed_of_its_own():
    with JudgeServer(GOOD) as server:
        judged(a_judge(server, concurrency=1), *(replace(a_request(), trial=trial) for trial in range(3)))
    assert sorted(request.json["seed"] for request in server.chats) == [1, 2, 3]


def test_an_unreadable_reply_is_sent_back_once_and_both_requests_are_counted(kind: str):
    with JudgeServer("The score is great!", GOOD, usage=(100, 10)) as server:
        (said,) = judged(a_judge(server, kind, tariff=KNOWN))
    assert said.scores == {"groundedness": 4.0}
    assert (said.tokens_in, said.tokens_out, said.extra["repaired"]) == (200, 20, True)
    assert said.cost_usd == pytest.approx((200 * 0.15 + 20 * 0.60) / 1e6)
    first, second = (request.json["messages"] for request in server.chats)
    before = ["system"] if kind == "openai" else []
    assert second[: len(first)] == first
    assert [message["role"] for message in second] == [*before, "user", "assistant", "user"]
    assert second[-2]["content"] == "The score is great!"


@pytest.mark.parametrize("reply", ["", "n/a", {**GOOD, "score": 6}, {**GOOD, "score": None}, "I'm sorry, I can't."])
def test_two_unreadable_replies_are_an_error_with_the_last_one_kept_and_never_a_score(kind: str, reply: object):
    with JudgeServer(reply) as server:
        failure = failure_of(a_judge(server, kind))
    assert failure.kind == "invalid_reply"
    assert failure.raw == (reply if isinstance(reply, str) else json.dumps(reply))
    assert len(server.chats) == 2


def test_a_truncated_reply_is_not_read_and_the_next_one_may_be_longer(kind: str):
    with JudgeServer(json.dumps(GOOD), finish="length") as server:
        failure = failure_of(a_judge(server, kind))
    assert "cut off" in str(failure)
    assert [request.json["max_tokens"] for request in server.chats] == [2048, 4096]


def test_a_repair_that_cannot_be_asked_for_is_that_error_and_keeps_the_reply():
    with JudgeServer("no", status(404)) as server:
        failure = failure_of(a_judge(server))
    assert (failure.kind, failure.raw) == ("http_4xx", "no")


REFUSALS = {
    "json_schema": "'response_format.type' must be one of 'text', 'json_object'",
    "response_format": "Unknown field: response_format",
    "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
    "seed": "Unrecognized request argument supplied: seed",
    "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
    "tools": "tools: this model does not support tool use",
}


def test_a_server_that_refuses_nearly_everything_is_still_asked_and_it_is_noted():
    with JudgeServer(json.dumps(GOOD), refuses=REFUSALS) as server:
        judge = a_judge(server)
        said = judged(judge, *(a_request(str(n)) for n in range(4)))
    assert all(one.scores == {"groundedness": 4.0} for one in said)
    assert set(server.chats[-1].json) == {"model", "messages", "stream", "max_completion_tokens"}
    assert said[0].extra["left_out"] == ["temperature", "seed", "schema"]
    assert len(judge.notes) == 3
    assert "does not take a temperature" in judge.notes[0]


def test_any_other_refusal_is_an_error_at_once():
    with JudgeServer(status(400, b'{"error": {"message": "context length exceeded"}}')) as server:
        failure = failure_of(a_judge(server))
    assert (failure.kind, len(server.chats)) == ("http_4xx", 1)
    assert "context length exceeded" in str(failure)
