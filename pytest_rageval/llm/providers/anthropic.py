"""Chat endpoints of Anthropic's kind: the messages API."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pytest_rageval.errors import SettingsError
from pytest_rageval.llm.chat_model import ChatModel
from pytest_rageval.llm.chat_protocol import (
    EVERYTHING,
    ChatReply,
    Ending,
    Manner,
    Question,
    addresses,
    misfit,
    object_at,
    sent_messages,
    server_name,
    string_at,
    text_at,
    thoughts_and_text,
    token_count,
    unread_fields,
)
from pytest_rageval.llm.credentials import KeySource, api_key, judge_key
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.model_spec import model_and_url
from pytest_rageval.model import Json

ANTHROPIC_KEY = "ANTHROPIC_API_KEY"
ANTHROPIC_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
_ENDINGS: Mapping[str | None, Ending] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


def anthropic_model(kind: str, rest: str, options: EndpointOptions) -> ChatModel:
    """The model of `anthropic:MODEL` or `anthropic:MODEL@URL`; without any URL, at Anthropic's own host."""
    if options.reasoning_effort is not None:
        raise SettingsError("reasoning_effort: Anthropic has no such field; set extra_body.thinking in its place")
    model, url = model_and_url(kind, rest)
    return ChatModel(AnthropicWire(url or options.base_url, key_of=options.key_of), model, options)


class AnthropicWire:
    """POST …/v1/messages. The reply's schema is sent as that of a tool which must be used."""

    api = "anthropic"
    text_path = "content"

    def __init__(self, url: str | None = None, *, key_of: KeySource = judge_key) -> None:
        self.chat_url, self.models_url = addresses(url or ANTHROPIC_URL, "/messages")
        key, self.key_name = api_key("x-api-key", key_of(self.chat_url, ANTHROPIC_KEY, ANTHROPIC_URL))
        self.headers = {"anthropic-version": VERSION, **key}

    def body(self, question: Question, manner: Manner = EVERYTHING) -> dict[str, Json]:
        """What is sent; there is no seed, and the limit has one name and must be there."""
        messages = sent_messages(question, manner)
        sent: dict[str, Json] = {
            "model": question.model,
            "messages": [message for message in messages if message["role"] != "system"],
        }
        if instructions := "\n".join(message["content"] for message in messages if message["role"] == "system"):
            sent["system"] = instructions
        if question.max_tokens is not None:
            sent["max_tokens"] = question.max_tokens
        if question.temperature is not None and manner.sends_temperature:
            sent["temperature"] = min(question.temperature, 1.0)  # its scale ends there
        if question.schema is not None and manner.form == "schema":
            tool = {"name": question.schema_name, "description": "Hand in the reply that was asked for."}
            sent["tools"] = [{**tool, "input_schema": dict(question.schema)}]
            sent["tool_choice"] = {"type": "tool", "name": question.schema_name}
        return {**sent, **question.parameters, "model": sent["model"], "messages": sent["messages"]}

    def read(self, data: Json) -> ChatReply:
        """The input of the tool, where it was used, else the text."""
        reply = object_at(data, "")
        content = reply.get("content")
        if not isinstance(content, list) or not all(isinstance(part, Mapping) for part in content):
            raise misfit("content", content, "a list of blocks")
        inputs = [part.get("input") for part in content if part.get("type") == "tool_use"]
        text = json.dumps(inputs[0], ensure_ascii=False) if len(inputs) == 1 else text_at(content, "content")
        thoughts, text = thoughts_and_text(text)
        reason = string_at(reply.get("stop_reason"), "stop_reason")
        usage = reply.get("usage")
        return ChatReply(
            text=text,
            ending=_ENDINGS.get(reason),
            finish_reason=reason,
            tokens_in=token_count(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
            tokens_out=token_count(usage, "output_tokens"),
            model=server_name(reply.get("model")),
            usage=usage,
            beside={
                "reply": unread_fields(reply, ("content", "model", "stop_reason", "usage")),
                "message": unread_fields({"thoughts": thoughts}, ()),
            },
        )
