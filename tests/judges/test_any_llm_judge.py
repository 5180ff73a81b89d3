"""Judges behind any-llm-sdk: spelt, missing, and, where it is installed, asked on a server of the test's own."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from fault_server import status
from judge_server import JudgeServer
from model_judges import GOOD, a_request, failure_of, judged, problem_of

from pytest_rageval.judges import judge_from_spec
from pytest_rageval.judges.judge import BaseJudge, described_judge, identity_of
from pytest_rageval.llm.endpoint_options import EndpointOptions, Tariff
from pytest_rageval.llm.model_spec import is_pinned

needs_any_llm = pytest.mark.skipif(importlib.util.find_spec("any_llm") is None, reason="any-llm-sdk is not installed")
needs_none = pytest.mark.skipif(importlib.util.find_spec("any_llm") is not None, reason="any-llm-sdk is installed")
IN_REPLAY = EndpointOptions(is_replay=True)


def the_judge(spec: str, options: EndpointOptions | None = None) -> BaseJudge:
    judge = judge_from_spec(spec, options=options)
    assert judge is not None
    return judge


@pytest.mark.parametrize(
    ("spec", "identity"),
    [
        ("any-llm:bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0",
         "any-llm/bedrock:anthropic.claude-3-5-sonnet-20240620-v1:0@bedrock"),
        ("any-llm:vertexai/claude-3-5-sonnet@20240620", "any-llm/vertexai:claude-3-5-sonnet@20240620@vertexai"),
        ("any-llm:openai/m@http://gpu:8000/v1", "any-llm/openai:m@gpu:8000/v1"),
    ],
)  # fmt: skip
def test_provider_and_model_are_the_identity_and_replay_needs_no_package(spec: str, identity: str):
    judge = the_judge(spec, IN_REPLAY)
    assert identity_of(judge) == identity
    assert described_judge(judge, 0.0)["identity"] == identity
    assert "any_llm" not in sys.modules or importlib.util.find_spec("any_llm") is not None


@pytest.mark.parametrize("spec", ["any-llm:gpt-4o", "any-llm:", "any-llm:bedrock/", "any-llm:/model"])
def test_what_is_no_provider_and_model_is_said(spec: str):
    assert problem_of(spec).endswith("a model of any-llm is spelt any-llm:PROVIDER/MODEL, as in any-llm:bedrock/MODEL")


def test_headers_are_refused_since_providers_take_none():
    options = EndpointOptions(headers={"x-team": "search"})
    assert "judge_options.headers: any-llm takes none" in problem_of("any-llm:bedrock/m", options=options)


@needs_none
def test_a_missing_package_is_one_line():
    assert problem_of("any-llm:bedrock/m") == (
        "judge 'any-llm:bedrock/m': any-llm-sdk is not installed; pip install 'pytest-rageval[any-llm]'"
    )


def test_prices_and_pinning_go_by_the_provider():
    assert Tariff("gpt-4o-mini", "any-llm://openai").cost(1000, 0) == Tariff(
        "gpt-4o-mini", "https://api.openai.com"
    ).cost(1000, 0)
    assert not Tariff("gpt-4o-mini", "any-llm://nobody").is_known
    assert is_pinned("anthropic.claude-3-5-sonnet-20240620-v1:0", "any-llm://bedrock")
    assert not is_pinned("m-20240620", "any-llm://llamacpp")


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")


def at(server: JudgeServer) -> str:
    return f"any-llm:openai/judge-1@{server.url}/v1"


@needs_any_llm
@pytest.mark.usefixtures("key")
def test_a_model_is_asked_and_read_like_any_other():
    with JudgeServer(GOOD) as server:
        (judgement,) = judged(the_judge(at(server)))
    assert (judgement.scores, judgement.model) == ({"groundedness": 4.0}, "judge-1")
    assert (judgement.tokens_in, judgement.tokens_out) == (100, 20)
    assert judgement.extra["served_model"] == "judge-1-2026-01-01"
    sent = server.chats[0].json
    assert (sent["model"], sent["temperature"], sent["seed"]) == ("judge-1", 0.0, 1)
    assert sent["max_completion_tokens"] == 2048  # any-llm's word to OpenAI
    assert sent["response_format"]["type"] == "json_schema"


@needs_any_llm
@pytest.mark.usefixtures("key")
def test_failures_are_retried_and_named_as_of_other_models():
    with JudgeServer(status(503), GOOD) as server:
        (judgement,) = judged(the_judge(at(server), EndpointOptions(retries=1)))
        assert (judgement.scores, len(server.chats)) == ({"groundedness": 4.0}, 2)
    with JudgeServer(key="another") as server:
        failure = failure_of(the_judge(at(server)))
    assert failure.kind == "http_4xx"
    assert "status 401" in str(failure)
    assert "sk-0123456789abcdef" not in str(failure)
    unreachable = the_judge("any-llm:openai/m@http://127.0.0.1:1/v1", EndpointOptions(retries=0))
    assert failure_of(unreachable, a_request()).kind == "connect"


@needs_any_llm
def test_a_provider_that_is_none_or_has_no_key_is_one_line():
    assert "any-llm cannot ask 'openai': " in problem_of("any-llm:openai/m")
    assert "any-llm cannot ask 'nobody': " in problem_of("any-llm:nobody/m")
