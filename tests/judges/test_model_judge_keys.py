"""Which key the judge that is a model sends where, and what else the user has its provider told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from judge_server import JudgeServer
from model_judges import GOOD, a_judge, failure_of, judged

from pytest_rageval.errors import SettingsError
from pytest_rageval.judges.judge_spec import judge_from_spec
from pytest_rageval.judges.model_judge import ModelJudge
from pytest_rageval.llm.anthropic import AnthropicWire
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.openai import OpenAiWire


@pytest.mark.parametrize(("wire", "variable"), [(OpenAiWire, "OPENAI_API_KEY"), (AnthropicWire, "ANTHROPIC_API_KEY")])
def test_a_provider_needs_its_own_key(monkeypatch: pytest.MonkeyPatch, wire: Any, variable: str):
    with pytest.raises(SettingsError, match=f"the environment variable {variable} is not set"):
        wire()
    monkeypatch.setenv(variable, "sk-a-real-key")
    assert "sk-a-real-key" in str(wire().headers)


@pytest.mark.parametrize("url", ["http://api.openai.com", "http://judge.example/v1", "http://8.8.8.8"])
def test_no_key_goes_over_the_open_network_in_the_clear(monkeypatch: pytest.MonkeyPatch, url: str):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "RAGEVAL_JUDGE_TOKEN"):
        monkeypatch.setenv(name, "sk-a-real-key")
    assert "sk-a-real-key" not in str([OpenAiWire(url).headers, AnthropicWire(url).headers])


@pytest.mark.parametrize("url", ["https://gateway.example/v1", "http://localhost:8080", "http://10.0.0.7:8000/v1"])
def test_a_server_that_the_user_names_gets_the_providers_key(monkeypatch: pytest.MonkeyPatch, url: str):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-real-key")
    assert OpenAiWire(url).headers == {"authorization": "Bearer sk-a-real-key"}
    assert "sk-a-real-key" not in str(AnthropicWire(url).headers)


@pytest.mark.parametrize("url", ["https://gateway.example/v1", "http://localhost:8080"])
def test_a_token_of_its_own_comes_before_the_providers_key(monkeypatch: pytest.MonkeyPatch, url: str):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-real-key")
    monkeypatch.setenv("RAGEVAL_JUDGE_TOKEN", "a-token-of-ours")
    assert OpenAiWire(url).headers == {"authorization": "Bearer a-token-of-ours"}


def test_a_refused_key_is_named_by_its_variable_and_never_shown(monkeypatch: pytest.MonkeyPatch, kind: str):
    monkeypatch.setenv("RAGEVAL_JUDGE_TOKEN", "a-token-of-ours")
    with JudgeServer(GOOD, key="another-token") as server:
        judge = a_judge(server, kind)
        failure = failure_of(judge)
        problem = asyncio.run(a_judge(server, kind).check())
    for said in (str(failure), problem or ""):
        assert "RAGEVAL_JUDGE_TOKEN" in said
        assert "a-token-of-ours" not in said


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


@pytest.mark.parametrize("name", ["temperature", "seed", "schema"])
def test_what_is_omitted_by_hand_is_never_sent_and_is_said(name: str):
    with JudgeServer(GOOD) as server:
        judge = from_spec(f"openai:judge@{server.url}", omit=(name,))
        (said,) = judged(judge)
    assert {"temperature": "temperature", "seed": "seed", "schema": "response_format"}[name] not in server.chats[0].json
    assert said.extra["left_out"] == [name]
    assert judge.options == {"omit": [name]}
    assert judge.notes == [], "the server has refused nothing"


@pytest.mark.parametrize("host", ["res.openai.azure.com", "res.services.ai.azure.com"])
def test_azure_under_openais_own_paths_gets_azures_key(monkeypatch: pytest.MonkeyPatch, host: str):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "an-azure-key-0123")
    wire = OpenAiWire(f"https://{host}/openai/v1")
    assert wire.chat_url == f"https://{host}/openai/v1/chat/completions"
    assert (wire.headers, wire.key_name) == ({"authorization": "Bearer an-azure-key-0123"}, "AZURE_OPENAI_API_KEY")
    assert OpenAiWire("https://example.com").headers == {}


def test_what_changes_replies_is_part_of_the_cache_key_and_headers_are_not():
    plain = from_spec("openai:judge@http://localhost:1").sampling
    assert from_spec("openai:judge@http://localhost:1", headers={"x": "1"}).sampling == plain
    for told in ({"max_tokens": 100}, {"reasoning_effort": "low"}, {"extra_body": {"top_p": 0.5}}, {"omit": ("seed",)}):
        assert from_spec("openai:judge@http://localhost:1", **told).sampling != plain


def test_an_identity_names_api_model_and_server_or_the_servers_own_name():
    assert from_spec("openai:judge@http://ann:pw@gpu:8000/v1?key=1").identity == "openai:judge@gpu:8000/v1"
    assert from_spec("anthropic:judge@http://gpu:8000").identity == "anthropic:judge@gpu:8000/v1"
    named = [from_spec(f"openai:judge@http://{host}", server_name="ours").identity for host in ("a:1", "b:2")]
    assert named == ["openai:judge@ours"] * 2


@pytest.mark.parametrize("path", ["", "/openai/deployments/my%20judge", "/"])
def test_a_deployment_of_azure_is_asked_at_its_own_address_with_its_own_header(
    monkeypatch: pytest.MonkeyPatch, path: str
):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "an-azure-key")
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
