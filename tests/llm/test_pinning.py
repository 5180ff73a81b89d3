"""Names of models: which mean one model for ever, and which mean the same."""

from __future__ import annotations

import pytest

from pytest_rageval.llm.pinning import is_pinned, same_model

PINNED = [
    "gpt-4o-2024-08-06", "gpt-4-0613", "gpt-3.5-turbo-0125", "gpt-4.1-mini-2025-04-14", "claude-sonnet-4-20250514",
    "anthropic.claude-3-5-sonnet-20241022-v2:0", "gemini-1.5-pro-002", "gemini-2.5-flash-preview-05-20",
    "mistral-large-2411", "qwen2.5-14b", "qwen2.5-14b-instruct", "llama3.1:8b", "llama3.1:8b-instruct-q4_K_M",
    "Qwen/Qwen2.5-7B-Instruct", "mixtral-8x7b-instruct", "/models/qwen2.5-14b-q4.gguf", "judge.gguf",
    "llama3@sha256:0123456789abcdef0123", "my-judge-3f2a9c1",
]  # fmt: skip
FLOATING = [
    "gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-5", "o3", "o4-mini", "chatgpt-4o-latest", "claude-3-5-sonnet-latest",
    "claude-sonnet-4-5", "claude-opus-4-1", "gemini-2.5-pro", "gemini-flash-latest", "mistral-large",
    "mistral-large-latest", "llama3", "llama3:latest", "qwen2.5-14b:latest", "deepseek-chat", "grok-4",
    "command-r-plus", "default", "judge-1", "my-judge", "", " ",
]  # fmt: skip


@pytest.mark.parametrize("model", PINNED)
def test_a_date_a_revision_a_hash_or_published_weights_pin_a_name(model: str):
    assert is_pinned(model)


@pytest.mark.parametrize("model", FLOATING)
def test_any_other_name_may_mean_another_model_tomorrow(model: str):
    assert not is_pinned(model)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-4o", "gpt-4o"),
        ("openai:gpt-4o", "gpt-4o-2024-08-06"),
        ("openai/gpt-4o", "GPT-4o"),
        ("openai:qwen2.5:14b@http://localhost:11434/v1", "ollama:qwen2.5:14b"),
        ("qwen2.5:14b", "qwen2.5-14b"),
        ("claude-sonnet-4-20250514", "anthropic:claude-sonnet-4"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet-latest"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("/models/judge.gguf", "judge"),
    ],
)
def test_two_names_of_one_model_are_seen_through(one: str, other: str):
    assert same_model(one, other)
    assert same_model(other, one)


DIFFERENT = [("gpt-4o", "gpt-4o-mini"), ("qwen2.5-7b", "qwen2.5-14b"), ("gpt-4o", "claude-sonnet-4"), ("", "")]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_models_are_different(one: str, other: str):
    assert not same_model(one, other)
