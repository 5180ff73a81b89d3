"""Judges that are models, asked on servers of a test's own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from judge_server import JudgeServer

from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.judges import judge_from_spec
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.model_judge import ModelJudge
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.llm.anthropic import AnthropicWire
from pytest_rageval.llm.chat_model import ChatModel
from pytest_rageval.llm.endpoint_options import EndpointOptions, Tariff
from pytest_rageval.llm.openai import OpenAiWire
from pytest_rageval.model import Judgement, JudgeRequest

GOOD = {"reasoning": "all is there", "supported_claims": ["it boils"], "unsupported_claims": [], "score": 4}
QUICK = 0.01
KNOWN = Tariff("gpt-4o-mini", "https://api.openai.com")


def a_request(answer: str = "It boils at 100 degrees.", rubric: str = "groundedness") -> JudgeRequest:
    variables = {
        "question": "When does water boil?",
        "answer": answer,
        "contexts": [{"chunk_id": "c1", "text": "Water boils at 100 degrees."}],
        "citations": [],
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


def problem_of(spec: str, **how: Any) -> str:
    """The one problem of a judge that is refused, on its one line."""
    with pytest.raises(SettingsError) as caught:
        judge_from_spec(spec, **how)
    (problem,) = caught.value.problems
    assert "\n" not in problem
    return problem
