"""Specs of models: `openai:MODEL@URL`, `anthropic:MODEL`, `http://HOST`, and the model that each names."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from pytest_rageval.errors import ModelFailure, ModelUnavailable, SettingsError
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.io.masking import public_url
from pytest_rageval.llm.chat_model import ChatModel
from pytest_rageval.llm.chat_protocol import Wire
from pytest_rageval.llm.chat_reply import json_from_body
from pytest_rageval.llm.credentials import judge_key, unneeded_key
from pytest_rageval.llm.endpoint import body_of
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.providers.anthropic import AnthropicWire
from pytest_rageval.llm.providers.ollama import OllamaWire
from pytest_rageval.llm.providers.openai import AzureWire, OpenAiWire
from pytest_rageval.text import printable

WIRES: Mapping[str, type[OpenAiWire] | type[AnthropicWire] | type[OllamaWire]] = {
    "openai": OpenAiWire,
    "anthropic": AnthropicWire,
    "ollama": OllamaWire,
}
_MODEL_AT_URL = re.compile(r"(?P<model>\S+?)(?:@(?P<url>https?:\S*))?")


def model_and_url(kind: str, spelling: str) -> tuple[str, str | None]:
    """`MODEL` or `MODEL@URL` in its parts; a model's own name may hold `@`. SettingsError where neither is meant."""
    parts = _MODEL_AT_URL.fullmatch(spelling)
    if parts is None or (parts["url"] is None and re.search(".@|://", parts["model"])):
        raise SettingsError(f"a model is spelt {kind}:MODEL or {kind}:MODEL@URL, the URL with http:// or https://")
    return parts["model"], parts["url"]


def chat_model(spec: str, options: EndpointOptions) -> ChatModel:
    """The model that a spec names; the URL in it comes before that of the options. SettingsError where it names none.

    openai, anthropic    MODEL or MODEL@URL; without any URL, the provider's own host
    any-llm              PROVIDER/MODEL or PROVIDER/MODEL@URL, the provider one of any-llm-sdk's
    http, https          the URL of a server of OpenAI's kind, with one model
    """
    kind, colon, rest = spec.partition(":")
    if colon and kind in ("http", "https"):
        return _only_model_at(spec, options)
    if colon and kind == "any-llm":
        from pytest_rageval.llm.providers.any_llm import any_llm_model

        wire, model, connect = any_llm_model(rest, options)
        return ChatModel(wire, model, options, connect=connect)
    if colon and kind in ("openai", "anthropic"):
        model, url = model_and_url(kind, rest)
        return ChatModel(_wire(kind, model, url or options.base_url, options), model, options)
    if options.base_url is None:
        raise SettingsError("no server; write it as openai:MODEL or openai:MODEL@URL")
    return chat_model(f"openai:{spec}", options)


def _wire(kind: str, model: str, url: str | None, options: EndpointOptions) -> Wire:
    key_of = unneeded_key if options.is_replay or options.holds_key else judge_key
    if kind == "anthropic" and options.reasoning_effort is not None:
        raise SettingsError("reasoning_effort: Anthropic has no such field; set extra_body.thinking in its place")
    if kind == "openai" and options.api == "azure":
        if url is None:
            raise SettingsError("no server; write it as openai:DEPLOYMENT@https://RESOURCE.openai.azure.com")
        return AzureWire(url, model, options.api_version, key_of=key_of)
    return WIRES[kind](url, key_of=key_of)


def _only_model_at(url: str, options: EndpointOptions) -> ChatModel:
    if options.is_replay:
        raise SettingsError("in replay no server is asked; write openai:MODEL@URL")
    wire = OpenAiWire(url)
    # In a thread of its own: a model may be made where an event loop is running already.
    with ThreadPoolExecutor(max_workers=1) as thread:
        model = thread.submit(asyncio.run, _only_model(wire.models_url, wire.headers)).result()
    return ChatModel(wire, model, options)


async def _only_model(models_url: str, headers: Mapping[str, str]) -> str:
    """The one model that a server has; a SettingsError that lists them where it has several, or says why none came."""
    where = f"GET {public_url(models_url)}"
    try:
        data = json_from_body(await body_of(models_url, headers), where)
    except (HttpFailure, ModelFailure) as failure:
        raise ModelUnavailable(f"the model cannot be asked for: {failure}; is the server running?") from None
    listed = data.get("data") if isinstance(data, Mapping) else None
    entries = listed if isinstance(listed, list) else []
    ids = [entry.get("id") for entry in entries if isinstance(entry, Mapping)]
    names = [name for name in ids if isinstance(name, str)]
    if len(names) == 1:
        return names[0]
    shown = ", ".join(printable(name[:80]) for name in names[:20]) + (", …" if len(names) > 20 else "")
    raise SettingsError(f"{where}: {len(names)} models{': ' * bool(names)}{shown}; write openai:MODEL@URL")
