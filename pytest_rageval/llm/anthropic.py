"""Chat endpoints of Anthropic's kind: the messages API."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pytest_rageval.llm.chat_protocol import ChatReply, Manner, Question, below, count, server_name, text_of
from pytest_rageval.llm.credentials import ANTHROPIC_KEY, x_api_key
from pytest_rageval.model import Json

URL = "https://api.anthropic.com"
VERSION = "2023-06-01"


class AnthropicWire:
    """POST …/v1/messages. The reply's schema is sent as that of a tool which must be used."""

    def __init__(self, url: str | None = None, *, needs_key: bool = True) -> None:
        self.chat_url = below(url or URL, "/messages")
        self.models_url = below(url or URL, "/models")
        key, self.key_name = x_api_key(self.chat_url, ANTHROPIC_KEY, URL, is_needed=needs_key)
        self.headers = {"anthropic-version": VERSION, **key}

    def body(self, question: Question, manner: Manner) -> dict[str, Json]:
        """What is sent; there is no seed, and the limit has one name."""
        sent: dict[str, Json] = {
            "model": question.model,
            "messages": [{"role": role, "content": text} for role, text in question.messages],
            "max_tokens": question.max_tokens,
        }
        if manner.sends_temperature:
            sent["temperature"] = min(question.temperature, 1.0)  # its scale ends there
        if question.schema is not None and manner.form == "schema":
            tool = {"name": question.schema_name, "description": "Hand in the reply that was asked for."}
            sent["tools"] = [{**tool, "input_schema": dict(question.schema)}]
            sent["tool_choice"] = {"type": "tool", "name": question.schema_name}
        return sent

    def read(self, data: Json) -> ChatReply:
        """The input of the tool, where it was used, else the text."""
        content = data.get("content") if isinstance(data, Mapping) else None
        if not isinstance(content, list) or not all(isinstance(part, Mapping) for part in content):
            raise ValueError("its content is not a list of blocks")
        inputs = [part.get("input") for part in content if part.get("type") == "tool_use"]
        text = json.dumps(inputs[0], ensure_ascii=False) if len(inputs) == 1 else text_of(content)
        usage = data.get("usage")
        return ChatReply(
            text,
            data.get("stop_reason") == "max_tokens",
            count(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
            count(usage, "output_tokens"),
            server_name(data.get("model")),
        )
