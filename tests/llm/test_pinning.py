"""Names of models that mean one model for ever."""

from __future__ import annotations

import pytest

from pytest_rageval.llm.model_spec import is_pinned

OPENAI, ANTHROPIC, GOOGLE = "api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com"
MISTRAL, OWN = "api.mistral.ai", "localhost:11434"
PINNED = [
    ("gpt-4o-2024-08-06", OPENAI), ("gpt-4-0613", OPENAI), ("gpt-3.5-turbo-0125", "eu.api.openai.com"),
    ("gpt-4.1-mini-2025-04-14", OPENAI), ("claude-sonnet-4-20250514", ANTHROPIC), ("gemini-1.5-pro-002", GOOGLE),
    ("gemini-2.5-flash-preview-05-20", GOOGLE), ("mistral-large-2411", MISTRAL),
]  # fmt: skip
FLOATING = [
    *((name, OPENAI) for name in ("gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-5", "o3", "o4-mini", "chatgpt-4o-latest")),
    *((name, ANTHROPIC) for name in ("claude-3-5-sonnet-latest", "claude-sonnet-4-5", "claude-opus-4-1", "", " ")),
    *((name, GOOGLE) for name in ("gemini-2.5-pro", "gemini-flash-latest")),
    *((name, MISTRAL) for name in ("mistral-large", "mistral-large-latest")),
]
NOT_KEPT = [
    "gpt-4o-2024-08-06", "llama3.1:8b", "llama3:latest", "qwen2.5-14b", "llama3.1:8b-instruct-q4_K_M", "judge.gguf",
    "Qwen/Qwen2.5-7B-Instruct", "my-judge-3f2a9c1", "llama3@sha256:0123456789abcdef0123",
]  # fmt: skip


@pytest.mark.parametrize(("model", "host"), PINNED)
def test_a_date_or_a_revision_pins_a_name_where_the_provider_keeps_it(model: str, host: str):
    assert is_pinned(model, f"https://{host}/v1/chat/completions")


@pytest.mark.parametrize(("model", "host"), FLOATING)
def test_any_other_name_may_mean_another_model_tomorrow(model: str, host: str):
    assert not is_pinned(model, f"https://{host}/v1/chat/completions")


@pytest.mark.parametrize("model", NOT_KEPT)
@pytest.mark.parametrize("host", [OWN, "mine.openai.azure.com", "api.openai.com.example.org"])
def test_tags_and_deployments_of_ones_own_are_not_pinned(model: str, host: str):
    assert not is_pinned(model, f"https://{host}/v1/chat/completions")
