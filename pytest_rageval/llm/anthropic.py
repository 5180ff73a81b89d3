"""Chat endpoints with Anthropic's messages API."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import quote

from pytest_rageval.errors import SettingsError
from pytest_rageval.llm import chat_protocol as chat
from pytest_rageval.llm.batch import BatchExchange, BatchReply, BatchState, batch_id
from pytest_rageval.llm.chat_model import ChatModel, model_at
from pytest_rageval.llm.credentials import KeySource, judge_key, key_header
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.server_error import refusal_in
from pytest_rageval.llm.thoughts import thoughts_and_text
from pytest_rageval.llm.wire import Wire
from pytest_rageval.model import Json
from pytest_rageval.providers import PROVIDERS, ProviderRow
from pytest_rageval.text import printable

ANTHROPIC = PROVIDERS["anthropic"]
VERSION = "2023-06-01"
CLOCKS_APART = timedelta(minutes=5)
_ENDINGS: Mapping[str | None, chat.StopReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


def anthropic_model(_kind: str, rest: str, options: EndpointOptions) -> ChatModel:
    """Return the model of `anthropic:MODEL` or `anthropic:MODEL@URL`."""
    if options.reasoning_effort is not None:
        raise SettingsError("reasoning_effort: Anthropic has no such field; set extra_body.thinking in its place")
    return model_at(ANTHROPIC, rest, options)


class AnthropicWire(Wire):
    """POST …/v1/messages. The reply's schema is sent as that of a required tool."""

    api = "anthropic"
    text_path = "content"

    def __init__(
        self, url: str | None = None, provider: ProviderRow = ANTHROPIC, *, key_of: KeySource = judge_key
    ) -> None:
        base = url or provider.home
        self.chat_url = chat.below(base, "/messages")
        self.models_url = chat.below(base, "/models")
        server_key = key_of(self.chat_url, provider.key, provider.home)
        key, self.key_name = key_header(server_key, "x-api-key")
        self.headers = {"anthropic-version": VERSION, **key}
        self.takes_batches = provider.batches

    def body(self, question: chat.Question, manner: chat.Manner = chat.EVERYTHING) -> dict[str, Json]:
        """Return the request body; it has no seed, and `max_tokens` is required."""
        messages = chat.sent_messages(question, manner)
        sent = chat.sampling(replace(question, seed=None), manner, "max_tokens")
        if "temperature" in sent:
            sent["temperature"] = min(sent["temperature"], 1.0)  # its scale ends there
        if instructions := chat.instructions(messages):
            if "cache" in manner.refused:
                sent["system"] = instructions
            else:
                sent["system"] = [{"type": "text", "text": instructions, "cache_control": {"type": "ephemeral"}}]
        if question.schema is not None and manner.form == "schema":
            tool = {
                "name": question.schema_name,
                "description": "Hand in the reply that was asked for.",
                "input_schema": dict(question.schema),
            }
            sent["tools"] = [tool]
            sent["tool_choice"] = {"type": "tool", "name": question.schema_name}
        turns = [message for message in messages if message["role"] != "system"]
        # The user's parameters replace all but the last two.
        return {**sent, **question.parameters, "model": question.model, "messages": turns}

    async def submit_batch(self, exchange: BatchExchange, requests: Mapping[str, Json]) -> str:
        """Begin a batch of requests, and return its id."""
        listed = [{"custom_id": key, "params": body} for key, body in requests.items()]
        return batch_id(await exchange.post(f"{self.chat_url}/batches", json={"requests": listed}))

    async def find_batch(
        self, exchange: BatchExchange, requests: Collection[str], since: str, known: Collection[str]
    ) -> str | None:
        """Find the batch by its time and size among the newest hundred: Anthropic's have no name.

        The results of another one hold none of these requests, and so none of their replies.
        """
        earliest = datetime.fromisoformat(since) - CLOCKS_APART
        reply = await exchange.get(f"{self.chat_url}/batches?limit=100")
        for batch in reply.get("data") or []:
            created = datetime.fromisoformat(str(batch.get("created_at")))
            if created < earliest or batch.get("id") in known:
                continue
            counts = dict(batch.get("request_counts") or {})
            if sum(counts.values()) == len(requests):
                return batch_id(batch)
        return None

    async def batch_state(self, exchange: BatchExchange, batch: str) -> BatchState:
        """Ask for a batch."""
        url = f"{self.chat_url}/batches/{quote(batch, safe='')}"
        reply = await exchange.get(url)
        status = str(reply.get("processing_status"))
        counts = dict(reply.get("request_counts") or {})
        total = sum(counts.values())
        done = total - counts.get("processing", 0)
        words = printable(f"{status}, {done} of {total} requests done")
        # At the address that the key belongs to, not at the one that the reply names.
        results = (f"{url}/results",) if reply.get("results_url") else ()
        return BatchState(batch, status == "ended", words, results)

    def batch_reply(self, line: Mapping[str, Json]) -> tuple[str, BatchReply]:
        """Read a line of the results of a batch."""
        result = chat.object_at(line.get("result") or {}, "result")
        key = str(line.get("custom_id"))
        kind = str(result.get("type"))
        if kind == "succeeded":
            return key, BatchReply(200, json.dumps(result.get("message")).encode())
        if kind == "errored":
            body = json.dumps(result.get("error")).encode()
            return key, BatchReply(refusal_in(body.decode()).status or 400, body)
        return key, BatchReply(0, problem=printable(f"the request is {kind}"))

    def read(self, data: Json) -> chat.ChatReply:
        """Read the input of the tool if it was called, else the text."""
        reply = chat.object_at(data, "")
        content = reply.get("content")
        if not isinstance(content, list) or not all(isinstance(part, Mapping) for part in content):
            raise chat.misfit("content", content, "a list of blocks")
        inputs = [part.get("input") for part in content if part.get("type") == "tool_use"]
        if len(inputs) == 1:
            written: str | None = json.dumps(inputs[0], ensure_ascii=False)
        else:
            written = chat.text_at(content, "content")
        thoughts, text = thoughts_and_text(written)
        if not thoughts:
            thinking = [str(part.get("thinking", "")) for part in content if part.get("type") == "thinking"]
            thoughts = "".join(thinking)
        reason = chat.string_at(reply.get("stop_reason"), "stop_reason")
        usage = reply.get("usage")
        unread = {
            "reply": chat.unread_fields(reply, ("content", "model", "stop_reason", "usage")),
            "message": chat.unread_fields({"thoughts": thoughts}, ()),
        }
        return chat.ChatReply(
            text=text,
            ending=_ENDINGS.get(reason),
            finish_reason=reason,
            # Its `input_tokens` leave out those that its cache took or gave.
            tokens_in=chat.token_count(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
            tokens_out=chat.token_count(usage, "output_tokens"),
            tokens_cached=chat.token_count(usage, "cache_read_input_tokens"),
            model=chat.server_name(reply.get("model")),
            usage=usage,
            unread=unread,
        )
