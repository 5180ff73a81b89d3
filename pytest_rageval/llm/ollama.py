"""Chat endpoints with Ollama's own API.

Source: Ollama's API reference, *Generate a chat completion*.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from pytest_rageval.http.address import endpoint
from pytest_rageval.llm import chat_protocol as chat
from pytest_rageval.llm.credentials import KeySource, judge_key, key_header
from pytest_rageval.llm.wire import Wire
from pytest_rageval.model import Json
from pytest_rageval.providers import PROVIDERS, ProviderRow

OLLAMA = PROVIDERS["ollama"]
# All other fields go into `options`, where Ollama has temperature, seed, num_ctx and the like.
_TOP_FIELDS = frozenset({"format", "options", "keep_alive", "think", "tools", "logprobs", "top_logprobs"})
_COUNTS = ("prompt_eval_count", "eval_count", "load_duration", "prompt_eval_duration", "eval_duration")


class OllamaWire(Wire):
    """POST …/api/chat, without streaming."""

    api = "ollama"
    text_path = "message.content"

    def __init__(
        self, url: str | None = None, provider: ProviderRow = OLLAMA, *, key_of: KeySource = judge_key
    ) -> None:
        base = endpoint(url or provider.home, "")
        api = "" if urlsplit(base).path.endswith("/api") else "/api"
        self.chat_url, self.models_url = endpoint(base, f"{api}/chat"), endpoint(base, f"{api}/tags")
        self.headers, self.key_name = key_header(key_of(self.chat_url, provider.key, provider.home))

    def body(self, question: chat.Question, manner: chat.Manner = chat.EVERYTHING) -> dict[str, Json]:
        """Return the request body; a JSON Schema goes into `format`, the token limit into `num_predict`."""
        options = chat.sampling(question, manner, "num_predict")
        options |= {name: value for name, value in question.parameters.items() if name not in _TOP_FIELDS}
        sent = {name: value for name, value in question.parameters.items() if name in _TOP_FIELDS}
        if isinstance(sent.get("options"), Mapping):
            options |= sent["options"]
        if question.schema is not None and manner.form != "text":
            sent["format"] = dict(question.schema) if manner.form == "schema" else "json"
        messages = chat.sent_messages(question, manner)
        return {**sent, "options": options, "model": question.model, "messages": messages, "stream": False}

    def read(self, data: Json) -> chat.ChatReply:
        """Read the message. Durations are in nanoseconds."""
        reply = chat.object_at(data, "")
        if reply.get("done") is False:
            raise chat.misfit("done", False, "true: one whole reply, not a stream")
        for name in _COUNTS:
            count = reply.get(name)
            if count is not None and (not isinstance(count, int) or isinstance(count, bool) or abs(count) >= 2**63):
                raise chat.misfit(name, count, "a whole number")
        counts = {name: reply.get(name) for name in _COUNTS}
        message = chat.object_at(reply.get("message") or {}, "message")
        reason = chat.string_at(reply.get("done_reason"), "done_reason")
        thoughts, text = chat.thoughts_and_text(chat.text_at(message.get("content"), self.text_path))
        ending: chat.StopReason | None = "tool_calls" if message.get("tool_calls") else None
        usage = {"prompt_tokens": counts["prompt_eval_count"], "completion_tokens": counts["eval_count"]}
        return chat.ChatReply(
            text=text,
            ending="length" if reason == "length" else ending,
            finish_reason=reason,
            tokens_in=chat.token_count(usage, "prompt_tokens"),
            tokens_out=chat.token_count(usage, "completion_tokens"),
            model=chat.server_name(reply.get("model")),
            usage={name: count for name, count in usage.items() if count is not None},
            latency=_milliseconds(counts),
            unread={
                "reply": chat.unread_fields(reply, ("message", "model", "done", "done_reason", *_COUNTS)),
                "message": chat.unread_fields({**message, "thoughts": thoughts}, ("content",)),
            },
        )


def _milliseconds(counts: Mapping[str, int | None]) -> dict[str, float]:
    generation = [counts[name] for name in ("prompt_eval_duration", "eval_duration")]
    durations = [duration for duration in generation if duration is not None]
    phases = {"load_ms": counts["load_duration"], "generation_ms": sum(durations) if durations else None}
    return {name: nanoseconds / 1e6 for name, nanoseconds in phases.items() if nanoseconds is not None}
