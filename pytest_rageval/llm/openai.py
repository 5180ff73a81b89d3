"""Chat endpoints of OpenAI's kind: OpenAI itself, llama.cpp, vLLM, Ollama and many more."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_rageval.llm.chat_protocol import (
    ChatReply,
    Manner,
    Question,
    below,
    count,
    server_name,
    text_of,
    without_thoughts,
)
from pytest_rageval.llm.credentials import OPENAI_KEY, bearer
from pytest_rageval.model import Json

URL = "https://api.openai.com"


class OpenAiWire:
    """POST …/v1/chat/completions."""

    def __init__(self, url: str | None = None, *, needs_key: bool = True) -> None:
        self.chat_url = below(url or URL, "/chat/completions")
        self.models_url = below(url or URL, "/models")
        self.headers, self.key_name = bearer(self.chat_url, OPENAI_KEY, URL, is_needed=needs_key)

    def body(self, question: Question, manner: Manner) -> dict[str, Json]:
        """What is sent; the reply's schema strictly, where the server has that."""
        sent: dict[str, Json] = {
            "model": question.model,
            "messages": [{"role": role, "content": text} for role, text in question.messages],
            manner.limit_name: question.max_tokens,
            "stream": False,
        }
        if manner.sends_temperature:
            sent["temperature"] = question.temperature
        if manner.sends_seed:
            sent["seed"] = question.seed
        if question.schema is not None and manner.form == "schema":
            schema = {"name": question.schema_name, "strict": True, "schema": dict(question.schema)}
            sent["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif question.schema is not None and manner.form == "object":
            sent["response_format"] = {"type": "json_object"}
        return sent

    def read(self, data: Json) -> ChatReply:
        """The first choice. What a model thought (`reasoning_content`, `<think>`) is no part of its reply."""
        choices = data.get("choices") if isinstance(data, Mapping) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, Mapping) else None
        if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
            raise ValueError("it has no choices[0].message")
        text = without_thoughts(text_of(message.get("content")))
        if not text.strip() and isinstance(message.get("refusal"), str):
            text = message["refusal"]
        usage = data.get("usage")
        return ChatReply(
            text,
            choice.get("finish_reason") == "length",
            count(usage, "prompt_tokens"),
            count(usage, "completion_tokens"),
            server_name(data.get("model")),
            server_name(data.get("system_fingerprint")),
        )
