"""The judge that is a model, against a real server: what it sends, what it reads, what it does when things go wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fault_server import closed_port, drips, hangs, resets, status, truncates
from judge_server import JudgeServer

from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.judge_spec import judge_from_spec
from pytest_rageval.judges.model.model_judge import ModelJudge
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.llm.anthropic import AnthropicWire
from pytest_rageval.llm.budget import Budget
from pytest_rageval.llm.chat_model import ChatModel
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.openai import OpenAiWire
from pytest_rageval.llm.prices import Tariff
from pytest_rageval.model import Judgement, JudgeRequest

GOOD = {"reasoning": "all is there", "supported_claims": ["it boils"], "unsupported_claims": [], "score": 4}
QUICK = 0.01
KNOWN = Tariff("gpt-4o-mini", "https://api.openai.com")


def a_request(answer: str = "It boils at 100 degrees.", rubric: str = "groundedness") -> JudgeRequest:
    variables = {
        "question": "When does water boil?",
        "answer": answer,
        "contexts": [{"chunk_id": "c1", "text": "Water boils at 100 degrees."}],
    }
    return JudgeRequest(rubric, load_rubric(rubric).prompt_version, variables)


def a_judge(
    server: JudgeServer | str, kind: str = "openai", *, tariff: Tariff | None = None, **options: Any
) -> ModelJudge:
    url = server if isinstance(server, str) else server.url
    wire: Any = {"openai": OpenAiWire, "anthropic": AnthropicWire}[kind](url)
    return ModelJudge(ChatModel(wire, "judge-1", EndpointOptions(**options), tariff=tariff, backoff=QUICK))


def judged(judge: Judge, *requests: JudgeRequest) -> list[Judgement]:
    async def all_at_once() -> list[Judgement]:
        try:
            return await asyncio.gather(*(judge.judge(request) for request in requests or (a_request(),)))
        finally:
            await judge.aclose()

    return asyncio.run(all_at_once())


def failure_of(judge: Judge, *requests: JudgeRequest) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        judged(judge, *requests)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.fixture(params=["openai", "anthropic"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


# ── what is sent and read ─────────────────────────────────────────────────────────────────────────────────────


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


def test_the_build_that_the_server_reports_is_kept():
    with JudgeServer(GOOD) as server:
        (said,) = judged(a_judge(server))
    assert said.extra["served_model"] == "judge-1-2026-01-01"
    assert said.extra["system_fingerprint"] == "fp_1"


def test_openai_is_asked_for_the_schema_at_temperature_0_with_a_seed():
    with JudgeServer(GOOD) as server:
        judged(a_judge(server))
    sent = server.chats[0]
    assert sent.path == "/v1/chat/completions"
    assert (sent.json["model"], sent.json["temperature"], sent.json["seed"]) == ("judge-1", 0.0, 1)
    assert sent.json["response_format"]["json_schema"]["schema"] == load_rubric("groundedness").schema
    assert sent.json["response_format"]["json_schema"]["strict"] is True
    (message,) = sent.json["messages"]
    assert "Water boils at 100 degrees." in message["content"]


def test_anthropic_is_asked_for_the_schema_as_a_tool():
    with JudgeServer(GOOD) as server:
        judged(a_judge(server, "anthropic", temperature=0.3))
    sent = server.chats[0]
    assert (sent.path, sent.headers["anthropic-version"]) == ("/v1/messages", "2023-06-01")
    assert sent.json["tools"][0]["input_schema"] == load_rubric("groundedness").schema
    assert sent.json["tool_choice"] == {"type": "tool", "name": "groundedness"}
    assert sent.json["temperature"] == 0.3
    assert "seed" not in sent.json


def test_each_request_is_fenced_anew():
    with JudgeServer(GOOD) as server:
        judged(a_judge(server), a_request(), a_request())
    first, second = (request.json["messages"][0]["content"] for request in server.chats)
    assert first != second


def test_what_replies_depend_on_is_told_to_the_cache():
    judge = a_judge("http://localhost:1", temperature=0.5)
    assert judge.sampling == {"temperature": 0.5, "seed": 1, "max_tokens": 2048}
    assert judge.sampling != a_judge("http://localhost:1").sampling
    assert isinstance(judge, Judge)
    assert (judge.heuristic, judge.is_local, judge.is_pinned) == (False, False, False)


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


@pytest.mark.parametrize("reply", ["<think>" + json.dumps(GOOD), json.dumps(GOOD) + "</think>"])
def test_thoughts_alone_are_no_reply(reply: str):
    with JudgeServer(reply) as server:
        failure = failure_of(a_judge(server))
    assert failure.kind == "invalid_reply"
    assert "it holds thoughts and no reply" in str(failure)


@pytest.mark.parametrize(
    "thoughts",
    [
        'Let me see. {"score": 1}</think>',
        '<think>a {"score": 0}</think> no, <think>b</think>',
        "<think>one</think>\n\n",
    ],
)
def test_thoughts_end_at_the_last_closing_tag(thoughts: str):
    with JudgeServer(thoughts + json.dumps(GOOD)) as server:
        (said,) = judged(a_judge(server))
    assert said.scores == {"groundedness": 4.0}


def a_choice(content: object, reason: str | None = "stop", **message: object) -> Any:
    choice = {"message": {"content": content, **message}, "finish_reason": reason}
    return status(200, json.dumps({"choices": [choice]}).encode())


@pytest.mark.parametrize(
    ("reply", "named", "times"),
    [
        (a_choice(None, refusal="I cannot judge this."), "the model refuses: 'I cannot judge this.'", 2),
        (a_choice(None, "content_filter"), "the provider's content filter ended it", 1),
        (a_choice(json.dumps(GOOD), "content_filter"), "the provider's content filter ended it", 1),
        (a_choice(json.dumps(GOOD), "SAFETY"), "the provider's content filter ended it", 1),
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


@pytest.mark.parametrize(("reason", "named"), [("refusal", "the model refuses: ''"), ("max_tokens", "it was cut off")])
def test_endings_of_anthropic_are_named_too(reason: str, named: str):
    tool = {"type": "tool_use", "id": "1", "name": "groundedness", "input": GOOD}
    reply = {"content": [] if reason == "refusal" else [tool], "stop_reason": reason}
    with JudgeServer(status(200, json.dumps(reply).encode())) as server:
        assert named in str(failure_of(a_judge(server, "anthropic")))


def test_an_error_inside_a_choice_is_an_error():
    choice = {"message": {"content": json.dumps(GOOD)}, "finish_reason": "error", "error": {"message": "upstream died"}}
    with JudgeServer(status(200, json.dumps({"choices": [choice]}).encode())) as server:
        failure = failure_of(a_judge(server))
    assert (failure.kind, len(server.chats)) == ("invalid_response", 1)
    assert "the reply is an error: upstream died" in str(failure)


def test_each_trial_of_a_request_has_a_seed_of_its_own():
    with JudgeServer(GOOD) as server:
        judged(a_judge(server, concurrency=1), *(replace(a_request(), trial=trial) for trial in range(3)))
    assert sorted(request.json["seed"] for request in server.chats) == [1, 2, 3]


def test_a_reply_that_quotes_the_marker_is_flagged():
    class Quoting(JudgeServer):
        async def _route(self, connection: Any) -> None:
            prompt = connection.request.json["messages"][0]["content"]
            marker = prompt[prompt.index("fence-") :][:22]
            self.replies = (GOOD | {"reasoning": f"the fence is {marker}"},)
            await super()._route(connection)

    with Quoting() as server:
        (said,) = judged(a_judge(server))
    assert said.flags == ("quotes the marker",)


# ── one repair ────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unreadable_reply_is_sent_back_once_and_both_requests_are_counted(kind: str):
    with JudgeServer("The score is great!", GOOD, usage=(100, 10)) as server:
        (said,) = judged(a_judge(server, kind, tariff=KNOWN))
    assert said.scores == {"groundedness": 4.0}
    assert (said.tokens_in, said.tokens_out, said.extra["repaired"]) == (200, 20, True)
    assert said.cost_usd == pytest.approx((200 * 0.15 + 20 * 0.60) / 1e6)
    first, second = (request.json["messages"] for request in server.chats)
    assert second[: len(first)] == first
    assert [message["role"] for message in second] == ["user", "assistant", "user"]
    assert second[1]["content"] == "The score is great!"


@pytest.mark.parametrize("reply", ["", "n/a", {**GOOD, "score": 6}, {**GOOD, "score": None}, "I'm sorry, I can't."])
def test_two_unreadable_replies_are_an_error_with_the_last_one_kept_and_never_a_score(kind: str, reply: object):
    with JudgeServer(reply) as server:
        failure = failure_of(a_judge(server, kind))
    assert failure.kind == "invalid_reply"
    assert failure.raw == (reply if isinstance(reply, str) else json.dumps(reply))
    assert len(server.chats) == 2


def test_a_long_unreadable_reply_is_kept_and_sent_back_in_part():
    with JudgeServer("x" * 50_000) as server:
        failure = failure_of(a_judge(server))
    assert failure.raw is not None
    assert len(failure.raw) == 4000
    assert len(server.chats[1].json["messages"][1]["content"]) == 4000


def test_a_truncated_reply_is_not_read_and_the_next_one_may_be_longer(kind: str):
    with JudgeServer(json.dumps(GOOD), finish="length") as server:
        failure = failure_of(a_judge(server, kind))
    assert "cut off" in str(failure)
    assert [request.json["max_tokens"] for request in server.chats] == [2048, 4096]


def test_a_repair_that_cannot_be_asked_for_is_that_error_and_keeps_the_reply():
    with JudgeServer("no", status(404)) as server:
        failure = failure_of(a_judge(server))
    assert (failure.kind, failure.raw) == ("http_4xx", "no")


# ── what a server refuses to be told ──────────────────────────────────────────────────────────────────────────

REFUSALS = {
    "json_schema": "'response_format.type' must be one of 'text', 'json_object'",
    "response_format": "Unknown field: response_format",
    "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
    "seed": "Unrecognized request argument supplied: seed",
    "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
    "tools": "tools: this model does not support tool use",
}


@pytest.mark.parametrize("refused", ["json_schema", "response_format", "temperature", "seed", "max_tokens"])
def test_what_is_refused_is_left_out_once_and_for_all(refused: str):
    with JudgeServer(json.dumps(GOOD), refuses={refused: REFUSALS[refused]}) as server:
        judge = a_judge(server)

        async def twice() -> None:
            await judge.judge(a_request())
            asked = len(server.chats)
            assert (await judge.judge(a_request("other"))).scores == {"groundedness": 4.0}
            assert len(server.chats) == asked + 1
            await judge.aclose()

        asyncio.run(twice())
    last = server.chats[-1].json
    assert refused not in last
    assert last.get("response_format", {}).get("type") != refused


def test_a_server_that_refuses_nearly_everything_is_still_asked_and_it_is_noted():
    with JudgeServer(json.dumps(GOOD), refuses=REFUSALS) as server:
        judge = a_judge(server)
        said = judged(judge, *(a_request(str(n)) for n in range(4)))
    assert all(one.scores == {"groundedness": 4.0} for one in said)
    assert set(server.chats[-1].json) == {"model", "messages", "stream", "max_completion_tokens"}
    assert said[0].extra["left_out"] == ["temperature", "seed", "schema"]
    assert len(judge.notes) == 3
    assert "does not take a temperature" in judge.notes[0]


def test_anthropic_models_without_tools_are_asked_in_plain_words():
    with JudgeServer(json.dumps(GOOD), refuses={name: REFUSALS[name] for name in ("tools", "temperature")}) as server:
        (said,) = judged(a_judge(server, "anthropic"))
    assert said.scores == {"groundedness": 4.0}
    assert set(server.chats[-1].json) == {"model", "messages", "max_tokens"}


def test_any_other_refusal_is_an_error_at_once():
    with JudgeServer(status(400, b'{"error": {"message": "context length exceeded"}}')) as server:
        failure = failure_of(a_judge(server))
    assert (failure.kind, len(server.chats)) == ("http_4xx", 1)
    assert "context length exceeded" in str(failure)


# ── faults ────────────────────────────────────────────────────────────────────────────────────────────────────


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


def test_a_request_that_times_out_is_tried_again():
    with JudgeServer(hangs, GOOD) as server:
        (said,) = judged(a_judge(server, timeout=0.5))
    assert said.scores == {"groundedness": 4.0}


def test_nothing_is_sent_earlier_than_the_server_asks():
    with JudgeServer(status(429, retry_after="1"), GOOD) as server:
        judged(a_judge(server))
    first, second = server.chats
    assert second.at - first.at >= 1.0


@pytest.mark.parametrize(
    ("fault", "kind_of_error", "times"),
    [
        (status(500), "http_5xx", 2),
        (status(429), "rate_limited", 2),
        (hangs, "timeout", 2),
        (drips, "timeout", 2),
        (resets, "reset", 2),
        (truncates, "reset", 2),
        (status(401), "http_4xx", 1),
        (status(429, b'{"error": {"type": "insufficient_quota", "message": "pay"}}'), "http_4xx", 1),
        (status(200, b'{"error": {"code": 503, "message": "busy"}}'), "http_5xx", 2),
        (status(200, b'{"error": {"code": 401, "message": "who?"}}'), "http_4xx", 1),
        (status(404), "http_4xx", 1),
        (status(302, location="http://elsewhere.example/"), "invalid_response", 1),
        (status(200, b""), "empty", 1),
        (status(200, b"<html>"), "invalid_json", 1),
        (status(200, b"[" * 100_000), "invalid_json", 1),
        (status(200, b'{"x": NaN}'), "invalid_json", 1),
        (status(200, b"null"), "invalid_response", 1),
        (status(200, b"[]"), "invalid_response", 1),
        (status(200, b'{"choices": []}'), "invalid_response", 1),
        (status(200, b'{"choices": [{"message": {"content": 4}}]}'), "invalid_response", 1),
        (status(200, b'{"choices": [null], "content": [null]}'), "invalid_response", 1),
        (status(200, b'{"error": {"message": "model is loading"}}'), "invalid_response", 1),
    ],
)
def test_a_fault_that_stays_is_a_typed_error(kind: str, fault: Any, kind_of_error: str, times: int):
    with JudgeServer(fault) as server:
        failure = failure_of(a_judge(server, kind, retries=1, timeout=0.4))
    assert failure.kind == kind_of_error
    assert len(server.chats) == times


def test_a_server_that_is_not_there_is_a_typed_error():
    failure = failure_of(a_judge(f"http://127.0.0.1:{closed_port()}", retries=0))
    assert failure.kind == "connect"


@pytest.mark.parametrize("usage", [{"prompt_tokens": -1}, {"prompt_tokens": "9"}, {"prompt_tokens": True}, [], 7, None])
def test_a_usage_that_is_no_number_of_tokens_is_unknown(usage: object):
    body = {"choices": [{"message": {"content": json.dumps(GOOD)}}], "usage": usage}
    with JudgeServer(status(200, json.dumps(body).encode())) as server:
        (said,) = judged(a_judge(server))
    assert (said.tokens_in, said.tokens_out) == (None, None)


def test_terminal_escapes_in_what_a_server_says_do_not_reach_the_message():
    with JudgeServer(status(200, b'{"error": "\\u001b[31mred\\n::error::"}')) as server:
        assert "\x1b" not in str(failure_of(a_judge(server)))


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY", "RAGEVAL_JUDGE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch.setenv


@pytest.mark.parametrize(("wire", "variable"), [(OpenAiWire, "OPENAI_API_KEY"), (AnthropicWire, "ANTHROPIC_API_KEY")])
def test_a_provider_needs_its_own_key(no_keys: Callable[[str, str], None], wire: Any, variable: str):
    with pytest.raises(SettingsError, match=f"the environment variable {variable} is not set"):
        wire()
    no_keys(variable, "sk-a-real-key")
    assert "sk-a-real-key" in str(wire().headers)


@pytest.mark.parametrize("url", ["http://api.openai.com", "http://judge.example/v1", "http://8.8.8.8"])
def test_no_key_goes_over_the_open_network_in_the_clear(no_keys: Callable[[str, str], None], url: str):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "RAGEVAL_JUDGE_TOKEN"):
        no_keys(name, "sk-a-real-key")
    assert "sk-a-real-key" not in str([OpenAiWire(url).headers, AnthropicWire(url).headers])


@pytest.mark.parametrize("url", ["https://gateway.example/v1", "http://localhost:8080", "http://10.0.0.7:8000/v1"])
def test_a_server_that_the_user_names_gets_the_providers_key(no_keys: Callable[[str, str], None], url: str):
    no_keys("OPENAI_API_KEY", "sk-a-real-key")
    assert OpenAiWire(url).headers == {"authorization": "Bearer sk-a-real-key"}
    assert "sk-a-real-key" not in str(AnthropicWire(url).headers)


@pytest.mark.parametrize("url", ["https://gateway.example/v1", "http://localhost:8080"])
def test_a_token_of_its_own_comes_before_the_providers_key(no_keys: Callable[[str, str], None], url: str):
    no_keys("OPENAI_API_KEY", "sk-a-real-key")
    no_keys("RAGEVAL_JUDGE_TOKEN", "a-token-of-ours")
    assert OpenAiWire(url).headers == {"authorization": "Bearer a-token-of-ours"}


def test_another_server_gets_the_token_that_was_set_for_it(no_keys: Callable[[str, str], None], kind: str):
    no_keys("RAGEVAL_JUDGE_TOKEN", "a-token-of-ours")
    with JudgeServer(GOOD, key="a-token-of-ours") as server:
        (said,) = judged(a_judge(server, kind))
    assert said.scores == {"groundedness": 4.0}


def test_a_refused_key_is_named_by_its_variable_and_never_shown(no_keys: Callable[[str, str], None], kind: str):
    no_keys("RAGEVAL_JUDGE_TOKEN", "a-token-of-ours")
    with JudgeServer(GOOD, key="another-token") as server:
        judge = a_judge(server, kind)
        failure = failure_of(judge)
        problem = asyncio.run(a_judge(server, kind).check())
    for said in (str(failure), problem or ""):
        assert "RAGEVAL_JUDGE_TOKEN" in said
        assert "a-token-of-ours" not in said


# ── what the user has the provider told ───────────────────────────────────────────────────────────────────────


def from_spec(spec: str, **options: Any) -> ModelJudge:
    judge = judge_from_spec(spec, options=EndpointOptions(**options))
    assert isinstance(judge, ModelJudge)
    return judge


def test_limit_effort_headers_and_further_fields_are_sent():
    told = {"max_tokens": 500, "reasoning_effort": "low", "headers": {"X-Team": "search"}}
    with JudgeServer(json.dumps(GOOD), finish="length") as server:
        judge = from_spec(f"openai:judge@{server.url}", extra_body={"top_k": 3, "seed": 9, "model": "no"}, **told)
        failure_of(judge)
    first, second = server.chats
    assert (first.json["max_tokens"], second.json["max_tokens"], first.json["model"]) == (500, 1000, "judge")
    assert (first.json["reasoning_effort"], first.json["top_k"], first.json["seed"]) == ("low", 3, 9)
    assert first.headers["x-team"] == "search"


def test_what_changes_replies_is_part_of_the_cache_key_and_headers_are_not():
    plain = from_spec("openai:judge@http://localhost:1").sampling
    assert from_spec("openai:judge@http://localhost:1", headers={"x": "1"}).sampling == plain
    for told in ({"max_tokens": 100}, {"reasoning_effort": "low"}, {"extra_body": {"top_p": 0.5}}):
        assert from_spec("openai:judge@http://localhost:1", **told).sampling != plain


def test_an_identity_names_api_model_and_server_or_the_servers_own_name():
    assert from_spec("openai:judge@http://ann:pw@gpu:8000/v1?key=1").identity == "openai:judge@gpu:8000/v1"
    assert from_spec("anthropic:judge@http://gpu:8000").identity == "anthropic:judge@gpu:8000/v1"
    named = [from_spec(f"openai:judge@http://{host}", server_name="ours").identity for host in ("a:1", "b:2")]
    assert named == ["openai:judge@ours"] * 2


def test_a_key_among_the_headers_replaces_that_of_the_environment(no_keys: Callable[[str, str], None]):
    no_keys("OPENAI_API_KEY", "sk-a-real-key")
    with JudgeServer(GOOD) as server:
        judged(from_spec(f"openai:judge@{server.url}", headers={"Authorization": "Bearer mine"}))
    assert server.chats[0].headers["authorization"] == "Bearer mine"
    assert "sk-a-real-key" not in str(server.chats[0].headers)


@pytest.mark.parametrize("path", ["", "/openai/deployments/my%20judge", "/"])
def test_a_deployment_of_azure_is_asked_at_its_own_address_with_its_own_header(
    no_keys: Callable[[str, str], None], path: str
):
    no_keys("AZURE_OPENAI_API_KEY", "an-azure-key")
    with JudgeServer(GOOD, models=[]) as server:
        judge = from_spec(f"openai:my-judge@{server.url}{path}", api="azure", api_version="2025-01-01")
        (said,) = judged(judge)
    name = "my%20judge" if "deployments" in path else "my-judge"
    assert server.chats[0].path == f"/openai/deployments/{name}/chat/completions?api-version=2025-01-01"
    assert server.chats[0].headers["api-key"] == "an-azure-key"
    assert "authorization" not in server.chats[0].headers
    assert (said.scores, judge.is_pinned) == ({"groundedness": 4.0}, False)


def test_azure_without_a_resource_and_anthropic_with_an_effort_are_refused():
    with pytest.raises(SettingsError, match=r"judge 'openai:m': no server; write it as openai:DEPLOYMENT@https"):
        from_spec("openai:m", api="azure")
    with pytest.raises(SettingsError, match=r"reasoning_effort: Anthropic has no such field"):
        from_spec("anthropic:m@http://localhost:1", reasoning_effort="low")


# ── before anything is judged ─────────────────────────────────────────────────────────────────────────────────


def test_a_judge_that_can_be_asked_has_no_problem_and_nothing_is_paid(kind: str):
    with JudgeServer() as server:
        assert asyncio.run(a_judge(server, kind).check()) is None
    assert server.chats == []
    assert [request.path for request in server.requests] == ["/v1/models"]


def test_a_server_that_does_not_list_its_models_is_there_all_the_same():
    with JudgeServer() as server:
        assert asyncio.run(a_judge(f"{server.url}/elsewhere/v2/").check()) is None


def test_a_judge_that_cannot_be_reached_says_why_in_one_line(kind: str):
    port = closed_port()
    problem = asyncio.run(a_judge(f"http://127.0.0.1:{port}", kind).check())
    assert problem is not None
    assert f"http://127.0.0.1:{port}/v1/models: Connection refused" in problem
    assert "\n" not in problem


# ── money ─────────────────────────────────────────────────────────────────────────────────────────────────────


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


def test_a_budget_without_a_price_is_refused_before_anything():
    with pytest.raises(SettingsError, match="--rageval-max-cost: the price of 'judge-1' is not known"):
        a_judge("http://localhost:1", budget=Budget(1.0))


def test_no_more_requests_are_under_way_than_allowed():
    with JudgeServer(GOOD, delay=0.05) as server:
        judged(a_judge(server, concurrency=4, share=0.5), *(a_request(str(n)) for n in range(8)))
    assert server.most_at_once == 2


def test_a_rubric_of_the_projects_own_wording_is_judged_by_that_wording():
    own = replace(load_rubric("groundedness"), prompt="Mine: {answer} {marker}", prompt_version="9+own")
    with JudgeServer(GOOD) as server:
        judged(a_judge(server), replace(a_request(), wording=own))
    assert server.chats[0].json["messages"][0]["content"].startswith('Mine: "It boils')
