"""Chat targets asked on servers of a test's own, with the replies of either API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Literal, TypeVar

import pytest
from fault_server import Behaviour, FaultServer

from pytest_rageval.errors import TargetError
from pytest_rageval.model import Answer, AskRequest
from pytest_rageval.targets.chat_target import ChatTarget
from pytest_rageval.targets.target import Connection

T = TypeVar("T")
Api = Literal["openai", "ollama"]
QUESTION = AskRequest("What?", 5)
KEY = "sk-proj-0123456789abcdef"
BOTH = pytest.mark.parametrize("api", ["openai", "ollama"])


def completion(content: Any = "Yes.", reason: str = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion as OpenAI sends it."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-4o-2024-08-06",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": reason}
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 0}},
    }


def ollama_reply(content: Any = "Yes.", reason: str = "stop", **message: Any) -> dict[str, Any]:
    """A reply of Ollama's, times in nanoseconds."""
    return {
        "model": "llama3.1:8b",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": content, **message},
        "done": True,
        "done_reason": reason,
        "total_duration": 9_000_000,
        "load_duration": 1_500_000,
        "prompt_eval_count": 11,
        "prompt_eval_duration": 2_000_000,
        "eval_count": 2,
        "eval_duration": 3_000_000,
    }


REPLY: dict[str, Callable[..., dict[str, Any]]] = {"openai": completion, "ollama": ollama_reply}


def with_target(api: Api, url: str | None, use: Callable[[ChatTarget], Coroutine[Any, Any, T]], **options: Any) -> T:
    async def run() -> T:
        target = ChatTarget(api, "m1", url, Connection(**{"backoff": 0.01, "timeout": 20.0} | options))
        try:
            return await use(target)
        finally:
            await target.aclose()

    return asyncio.run(run())


def ask(api: Api, behaviour: Behaviour, request: AskRequest = QUESTION, **options: Any) -> tuple[Answer, Any]:
    """The answer, and the body that was sent."""
    with FaultServer(behaviour) as server:
        answer = with_target(api, server.url, lambda target: target.ask(request), **options)
    return answer, server.requests[0].json


def failure_of(api: Api, behaviour: Behaviour, **options: Any) -> TargetError:
    with pytest.raises(TargetError) as caught:
        ask(api, behaviour, **options)
    assert str(caught.value).isprintable()
    return caught.value
