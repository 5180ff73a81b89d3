"""Chat endpoints with Ollama's own API.

Source: Ollama's API reference, *Generate a chat completion*.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from pytest_rageval.http.address import endpoint
from pytest_rageval.llm import chat_protocol as chat
from pytest_rageval.llm.credentials import KeySource, judge_key, key_header
from pytest_rageval.llm.thoughts import thoughts_and_text
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
        self.chat_url = endpoint(base, f"{api}/chat")
        self.models_url = endpoint(base, f"{api}/tags")
        self.headers, self.key_name = key_header(key_of(self.chat_url, provider.key, provider.home))

    def body(self, question: chat.Question, manner: chat.Manner = chat.EVERYTHING) -> dict[str, Json]:
        """Return the request body; a JSON Schema goes into `format`, the token limit into `num_predict`."""
        options = chat.sampling(question, manner, "num_predict")
        sent: dict[str, Json] = {}
        for name, value in question.parameters.items():
            fields = sent if name in _TOP_FIELDS else options
            fields[name] = value
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
        counts = {name: _count(name, reply.get(name)) for name in _COUNTS}
        message = chat.object_at(reply.get("message") or {}, "message")
        reason = chat.string_at(reply.get("done_reason"), "done_reason")
        thoughts, text = thoughts_and_text(chat.text_at(message.get("content"), self.text_path))
        ending: chat.StopReason | None = None
        if reason == "length":
            ending = "length"
        elif message.get("tool_calls"):
            ending = "tool_calls"
        usage = {"prompt_tokens": counts["prompt_eval_count"], "completion_tokens": counts["eval_count"]}
        unread = {
            "reply": chat.unread_fields(reply, ("message", "model", "done", "done_reason", *_COUNTS)),
            "message": chat.unread_fields({**message, "thoughts": thoughts}, ("content",)),
        }
        return chat.ChatReply(
            text=text,
            ending=ending,
            finish_reason=reason,
            tokens_in=chat.token_count(usage, "prompt_tokens"),
            tokens_out=chat.token_count(usage, "completion_tokens"),
            model=chat.server_name(reply.get("model")),
            usage={name: count for name, count in usage.items() if count is not None},
            latency=_milliseconds(counts),
            unread=unread,
        )


def _count(name: str, value: Json) -> int | None:
    """Return a count or a duration in nanoseconds; raise ValueError for any other value."""
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return value
    raise chat.misfit(name, value, "a whole number")


def _milliseconds(counts: Mapping[str, int | None]) -> dict[str, float]:
    """Return the time of loading the model and that of reading the prompt and writing the reply, if reported."""
    milliseconds: dict[str, float] = {}
    loading = counts["load_duration"]
    if loading is not None:
        milliseconds["load_ms"] = loading / 1e6
    reading = counts["prompt_eval_duration"]
    writing = counts["eval_duration"]
    if reading is not None or writing is not None:
        milliseconds["generation_ms"] = ((reading or 0) + (writing or 0)) / 1e6
    return milliseconds
