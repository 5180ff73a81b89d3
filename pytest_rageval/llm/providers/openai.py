"""Chat endpoints of OpenAI's kind: OpenAI itself, Azure, llama.cpp, vLLM, Ollama and many more.

Sources: OpenAI's API reference, *The chat completion object*; Azure OpenAI's REST API reference, *Chat completions*.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from pytest_rageval.http.address import endpoint
from pytest_rageval.llm.chat_protocol import EVERYTHING, Manner, Question, addresses, sent_messages
from pytest_rageval.llm.chat_reply import (
    ChatReply,
    Ending,
    misfit,
    object_at,
    server_name,
    string_at,
    text_at,
    thoughts_and_text,
    token_count,
    unread_fields,
)
from pytest_rageval.llm.credentials import AZURE_KEY, KeySource, api_key, bearer, judge_key, openai_variable
from pytest_rageval.model import Json

OPENAI_URL = "https://api.openai.com"
_ENDINGS: Mapping[str, Ending] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "refusal": "refusal",
}
API_VERSION = "2024-10-21"


class OpenAiWire:
    """POST …/v1/chat/completions."""

    api = "openai"
    text_path = "choices[0].message.content"

    def __init__(self, url: str | None = None, *, key_of: KeySource = judge_key) -> None:
        self.chat_url, self.models_url = addresses(url or OPENAI_URL, "/chat/completions")
        self.headers, self.key_name = bearer(key_of(self.chat_url, openai_variable(self.chat_url), OPENAI_URL))

    def body(self, question: Question, manner: Manner = EVERYTHING) -> dict[str, Json]:
        """What is sent; the reply's schema strictly, where the server has that."""
        sent: dict[str, Json] = {}
        if question.max_tokens is not None:
            sent[manner.limit_name] = question.max_tokens
        if question.temperature is not None and manner.sends_temperature:
            sent["temperature"] = question.temperature
        if question.seed is not None and manner.sends_seed:
            sent["seed"] = question.seed
        if question.schema is not None and manner.form == "schema":
            schema = {"name": question.schema_name, "strict": True, "schema": dict(question.schema)}
            sent["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif question.schema is not None and manner.form == "object":
            sent["response_format"] = {"type": "json_object"}
        messages = sent_messages(question, manner)
        return {**sent, **question.parameters, "model": question.model, "messages": messages, "stream": False}

    def read(self, data: Json) -> ChatReply:
        """The first choice. What a model thought (`reasoning_content`, `<think>`) is no part of its reply."""
        reply = object_at(data, "")
        choices = reply.get("choices")
        if not isinstance(choices, list) or not choices:
            raise misfit("choices", choices, "a list of at least one choice")
        choice = object_at(choices[0], "choices[0]")
        message = object_at(choice.get("message") or {}, "choices[0].message")
        reason = string_at(choice.get("finish_reason"), "choices[0].finish_reason")
        refusal = string_at(message.get("refusal"), "choices[0].message.refusal")
        thoughts, text = thoughts_and_text(text_at(message.get("content"), self.text_path))
        if refusal and not (text and text.strip()):
            text = refusal
        usage = reply.get("usage")
        return ChatReply(
            text=text,
            ending=_ending(reason, refusal, text, message),
            finish_reason=reason,
            tokens_in=token_count(usage, "prompt_tokens"),
            tokens_out=token_count(usage, "completion_tokens"),
            model=server_name(reply.get("model")),
            build=server_name(reply.get("system_fingerprint")),
            usage=usage,
            beside={
                "reply": unread_fields(reply, ("choices", "model", "usage")),
                "choice": unread_fields(choice, ("message", "finish_reason")),
                "message": unread_fields({**message, "thoughts": thoughts}, ("content", "refusal")),
            },
        )


def _ending(reason: str | None, refusal: str | None, text: str | None, message: Mapping[str, Json]) -> Ending | None:
    if refusal:
        return "refusal"
    if ending := _ENDINGS.get((reason or "").lower()):
        return ending
    if not text and (message.get("tool_calls") or message.get("function_call")):
        return "tool_calls"
    return None


class AzureWire(OpenAiWire):
    """POST …/openai/deployments/DEPLOYMENT/chat/completions?api-version=…, with the key in a header `api-key`.

    The URL is that of the resource, or already that of the deployment.
    """

    api = "azure"

    def __init__(self, url: str, deployment: str, api_version: str | None, *, key_of: KeySource = judge_key) -> None:
        version = {"api-version": api_version or API_VERSION}
        is_whole = "/deployments/" in urlsplit(url).path
        below = "" if is_whole else f"/openai/deployments/{quote(deployment, safe='')}"
        self.chat_url = endpoint(url, f"{below}/chat/completions", **version)
        resource = url.partition("/openai/deployments/")[0]
        self.models_url = endpoint(resource, "/openai/models", **version)
        self.headers, self.key_name = api_key("api-key", key_of(self.chat_url, AZURE_KEY, ""))
