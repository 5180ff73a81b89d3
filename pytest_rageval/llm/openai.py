"""OpenAI-compatible chat endpoints: OpenAI itself, Azure, llama.cpp, vLLM, Ollama and many more.

Sources: OpenAI's API reference, *The chat completion object*; Azure OpenAI's REST API reference, *Chat completions*.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlsplit

from pytest_rageval.errors import ModelFailure, ModelUnavailable, SettingsError
from pytest_rageval.http.address import endpoint
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.io.masking import public_url
from pytest_rageval.llm import chat_protocol as chat
from pytest_rageval.llm.batch import BatchExchange, BatchReply, BatchState, batch_id, batch_name
from pytest_rageval.llm.chat_model import ChatModel, body_of, model_at
from pytest_rageval.llm.credentials import KeySource, judge_key, key_header
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.model_spec import model_and_url
from pytest_rageval.llm.thoughts import thoughts_and_text
from pytest_rageval.llm.wire import Wire
from pytest_rageval.model import Json
from pytest_rageval.providers import PROVIDERS, ProviderRow
from pytest_rageval.text import printable

OPENAI = PROVIDERS["openai"]
OPENAI_KEY, AZURE_KEY = OPENAI.keys
_ENDINGS: Mapping[str, chat.StopReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "refusal": "refusal",
}
OURS = "rageval"
"""The key of a batch's metadata that holds our name of it."""
API_VERSION = "2024-10-21"


def openai_model(kind: str, rest: str, options: EndpointOptions) -> ChatModel:
    """Return the model of `openai:MODEL` or `openai:MODEL@URL`; with the option `api = "azure"`, a deployment."""
    if options.api != "azure":
        return model_at(OPENAI, rest, options)
    model, url = model_and_url(kind, rest)
    resource = url or options.base_url
    if resource is None:
        raise SettingsError("no server; write it as openai:DEPLOYMENT@https://RESOURCE.openai.azure.com")
    return ChatModel(AzureWire(resource, model, options.api_version, key_of=options.key_of), model, options)


def only_model_at(kind: str, rest: str, options: EndpointOptions) -> ChatModel:
    """Return the model of `http://HOST`, a server with one model, whose name it is asked for."""
    if options.is_replay:
        raise SettingsError("in replay no server is asked; write openai:MODEL@URL")
    wire = OpenAiWire(f"{kind}:{rest}")
    # In a separate thread, because the caller may be inside a running event loop.
    with ThreadPoolExecutor(max_workers=1) as thread:
        model = thread.submit(asyncio.run, _only_model(wire.models_url, wire.headers)).result()
    return ChatModel(wire, model, options)


async def _only_model(models_url: str, headers: Mapping[str, str]) -> str:
    """Return the name of a server's only model; raise SettingsError listing several, or ModelUnavailable."""
    where = f"GET {public_url(models_url)}"
    try:
        data = chat.json_from_body(await body_of(models_url, headers), where)
    except (HttpFailure, ModelFailure) as failure:
        raise ModelUnavailable(f"the model cannot be asked for: {failure}; is the server running?") from None
    names = _model_names(data)
    if len(names) == 1:
        return names[0]
    listed = f"{len(names)} models"
    if names:
        listed += ": " + ", ".join(printable(name[:80]) for name in names[:20])
    if len(names) > 20:
        listed += ", …"
    raise SettingsError(f"{where}: {listed}; write openai:MODEL@URL")


def _model_names(data: Json) -> list[str]:
    """Return the names in a server's list of models; empty if it is no such list."""
    models = data.get("data") if isinstance(data, Mapping) else None
    if not isinstance(models, list):
        return []
    ids = [model.get("id") for model in models if isinstance(model, Mapping)]
    return [name for name in ids if isinstance(name, str)]


class OpenAiWire(Wire):
    """POST …/v1/chat/completions."""

    api = "openai"
    text_path = "choices[0].message.content"
    takes_streams = True

    def __init__(
        self, url: str | None = None, provider: ProviderRow = OPENAI, *, key_of: KeySource = judge_key
    ) -> None:
        base = url or provider.home
        self.chat_url = chat.below(base, "/chat/completions")
        self.models_url = chat.below(base, "/models")
        host = urlsplit(self.chat_url).hostname or ""
        is_azure = provider is OPENAI and host.endswith((".openai.azure.com", ".services.ai.azure.com"))
        variable = AZURE_KEY if is_azure and os.environ.get(AZURE_KEY) else provider.key
        self.headers, self.key_name = key_header(key_of(self.chat_url, variable, provider.home))
        self.takes_batches = provider.batches

    def body(self, question: chat.Question, manner: chat.Manner = chat.EVERYTHING) -> dict[str, Json]:
        """Return the request body, with a strict schema of the reply if the server supports one."""
        sent = chat.sampling(question, manner, manner.limit_name)
        if question.schema is not None and manner.form == "schema":
            schema = {"name": question.schema_name, "strict": True, "schema": dict(question.schema)}
            sent["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif question.schema is not None and manner.form == "object":
            sent["response_format"] = {"type": "json_object"}
        messages = chat.sent_messages(question, manner)
        # For OpenAI's own servers alone: others take no such field, and some refuse a request for it.
        if self.chat_url.startswith(f"{OPENAI.home}/") and "cache" not in manner.refused:
            shared = chat.instructions(messages)
            sent["prompt_cache_key"] = hashlib.sha256(shared.encode()).hexdigest()[:32]
        if question.is_streamed:
            sent["stream_options"] = {"include_usage": True}
        fixed = {"model": question.model, "messages": messages, "stream": question.is_streamed}
        return {**sent, **question.parameters, **fixed}

    async def submit_batch(self, exchange: BatchExchange, requests: Mapping[str, Json]) -> str:
        """Upload requests as a file, begin their batch, and return its id."""
        lines = (
            {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body}
            for key, body in requests.items()
        )
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        base = self.chat_url.removesuffix("/chat/completions")
        fields = {"purpose": (None, b"batch"), "file": ("requests.jsonl", content)}
        uploaded = batch_id(await exchange.post(f"{base}/files", files=fields))
        begun = {"input_file_id": uploaded, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
        return batch_id(
            await exchange.post(f"{base}/batches", json={**begun, "metadata": {OURS: batch_name(requests)}})
        )

    async def find_batch(
        self, exchange: BatchExchange, requests: Collection[str], _since: str, known: Collection[str]
    ) -> str | None:
        """Find the batch by the name in its metadata, among the newest hundred."""
        base = self.chat_url.removesuffix("/chat/completions")
        name = batch_name(requests)
        reply = await exchange.get(f"{base}/batches?limit=100")
        for batch in reply.get("data") or []:
            metadata = batch.get("metadata") or {}
            if metadata.get(OURS) == name and batch.get("id") not in known:
                return batch_id(batch)
        return None

    async def batch_state(self, exchange: BatchExchange, batch: str) -> BatchState:
        """Ask for a batch; an expired or cancelled one has the results of the requests that were done in time."""
        base = self.chat_url.removesuffix("/chat/completions")
        reply = await exchange.get(f"{base}/batches/{quote(batch, safe='')}")
        status = str(reply.get("status"))
        words = status
        errors = (reply.get("errors") or {}).get("data") or [{}]
        if status == "failed" and (message := errors[0].get("message")):
            words += f": {message}"
        counts = reply.get("request_counts") or {}
        words += f", {counts.get('completed', 0)} of {counts.get('total', 0)} requests done"
        if status not in ("completed", "failed", "expired", "cancelled"):
            return BatchState(batch, is_ended=False, words=printable(words))
        files = [reply[name] for name in ("output_file_id", "error_file_id") if reply.get(name)]
        results = tuple(f"{base}/files/{quote(str(file), safe='')}/content" for file in files)
        return BatchState(batch, is_ended=True, words=printable(words), results=results)

    def batch_reply(self, line: Mapping[str, Json]) -> tuple[str, BatchReply]:
        """Read a line of the output or of the errors of a batch."""
        key = str(line.get("custom_id"))
        response = line.get("response")
        if isinstance(response, Mapping):
            body = json.dumps(response.get("body")).encode()
            return key, BatchReply(int(response.get("status_code") or 0), body)
        error = line.get("error")
        reason = error.get("message") or error.get("code") if isinstance(error, Mapping) else "no reply"
        return key, BatchReply(0, problem=printable(str(reason)))

    def read(self, data: Json) -> chat.ChatReply:
        """Read the first choice, without the model's thoughts (`reasoning_content`, `<think>`)."""
        reply = chat.object_at(data, "")
        choices = reply.get("choices")
        if not isinstance(choices, list) or not choices:
            raise chat.misfit("choices", choices, "a list of at least one choice")
        choice = chat.object_at(choices[0], "choices[0]")
        message = chat.object_at(choice.get("message") or {}, "choices[0].message")
        reason = chat.string_at(choice.get("finish_reason"), "choices[0].finish_reason")
        refusal = chat.string_at(message.get("refusal"), "choices[0].message.refusal")
        thoughts, text = thoughts_and_text(chat.text_at(message.get("content"), self.text_path))
        if refusal and not (text and text.strip()):
            text = refusal
        ending: chat.StopReason | None = "refusal" if refusal else _ENDINGS.get((reason or "").lower())
        if ending is None and (message.get("tool_calls") or message.get("function_call")):
            ending = "tool_calls"
        usage = reply.get("usage")
        details = usage.get("prompt_tokens_details") if isinstance(usage, Mapping) else None
        unread = {
            "reply": chat.unread_fields(reply, ("choices", "model", "usage")),
            "choice": chat.unread_fields(choice, ("message", "finish_reason")),
            "message": chat.unread_fields({**message, "thoughts": thoughts}, ("content", "refusal")),
        }
        return chat.ChatReply(
            text=text,
            ending=ending,
            finish_reason=reason,
            tokens_in=chat.token_count(usage, "prompt_tokens"),
            tokens_out=chat.token_count(usage, "completion_tokens"),
            tokens_cached=chat.token_count(details, "cached_tokens"),
            model=chat.server_name(reply.get("model")),
            build=chat.server_name(reply.get("system_fingerprint")),
            usage=usage,
            unread=unread,
        )


class AzureWire(OpenAiWire):
    """POST …/openai/deployments/DEPLOYMENT/chat/completions?api-version=…, with the key in a header `api-key`.

    The URL is that of the resource or of the deployment.
    """

    api = "azure"
    takes_batches = False  # its batches are deployments of their own

    def __init__(self, url: str, deployment: str, api_version: str | None, *, key_of: KeySource = judge_key) -> None:
        version = {"api-version": api_version or API_VERSION}
        is_whole = "/deployments/" in urlsplit(url).path
        below = "" if is_whole else f"/openai/deployments/{quote(deployment, safe='')}"
        self.chat_url = endpoint(url, f"{below}/chat/completions", **version)
        resource = url.partition("/openai/deployments/")[0]
        self.models_url = endpoint(resource, "/openai/models", **version)
        self.headers, self.key_name = key_header(key_of(self.chat_url, AZURE_KEY, ""), "api-key")
