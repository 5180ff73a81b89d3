"""Which server and model does the spec of a judge name, of those judges that ask one?"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.masking import public_target
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.model.model_judge import ModelJudge
from pytest_rageval.llm.anthropic import AnthropicWire
from pytest_rageval.llm.chat_model import ChatModel
from pytest_rageval.llm.chat_protocol import Wire
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.openai import OpenAiWire
from pytest_rageval.llm.provider import only_model
from pytest_rageval.text import printable

_MODEL_AT_URL = re.compile(r"(?P<model>[^\s@](?:\S*?[^\s@])??)(?:@(?P<url>https?:\S*))?")


def served_judge(kind: str, rest: str, options: EndpointOptions) -> Judge:
    """The judge of the spec `KIND:REST`; the URL in it comes before that of the options.

    openai, anthropic    MODEL or MODEL@URL; without any URL, the provider's own host
    embedding            MODEL@URL
    deepeval             METRIC@SPEC, the spec of the model that it asks
    http, https          what follows in the URL of a server of OpenAI's kind, with one model
    """
    if kind in ("openai", "anthropic"):
        return ModelJudge(_chat_model(kind, rest, options))
    if kind in ("http", "https"):
        return ModelJudge(_served_there(f"{kind}:{rest}", options))
    if kind == "embedding":
        from pytest_rageval.judges.embedding.embedding_judge import EmbeddingJudge

        model, url = _model_and_url(kind, rest)
        if (url := url or options.base_url) is None:
            raise SettingsError(f"judge {_shown(kind, rest)}: no server; write it as embedding:MODEL@URL")
        return EmbeddingJudge(model, url, options)
    return _deepeval(rest, options)


def chat_model(spec: str, options: EndpointOptions) -> ChatModel:
    """The model that a spec names: as for a judge, without what only judges have."""
    kind, colon, rest = spec.partition(":")
    if colon and kind in ("openai", "anthropic"):
        return _chat_model(kind, rest, options)
    if colon and kind in ("http", "https"):
        return _served_there(spec, options)
    if options.base_url is None:
        raise SettingsError(f"judge model {printable(spec)!r}: no server; write it as openai:MODEL or openai:MODEL@URL")
    return _chat_model("openai", spec, options)


_WIRES: Mapping[str, type[OpenAiWire] | type[AnthropicWire]] = {"openai": OpenAiWire, "anthropic": AnthropicWire}


def _chat_model(kind: str, rest: str, options: EndpointOptions) -> ChatModel:
    model, url = _model_and_url(kind, rest)
    wire: Wire = _WIRES[kind](url or options.base_url, needs_key=not options.is_replay)
    return ChatModel(wire, model, options)


def _served_there(url: str, options: EndpointOptions) -> ChatModel:
    if options.is_replay:
        raise SettingsError(f"judge {_shown(*url.split(':', 1))}: in replay no server is asked; write openai:MODEL@URL")
    wire = OpenAiWire(url)
    # In a thread of its own: a judge may be made where an event loop is running already.
    with ThreadPoolExecutor(max_workers=1) as thread:
        model = thread.submit(asyncio.run, only_model(wire.models_url, wire.headers)).result()
    return ChatModel(wire, model, options)


def _deepeval(rest: str, options: EndpointOptions) -> Judge:
    from pytest_rageval.judges.deepeval.deepeval_judge import METRICS, DeepEvalJudge

    metric, _, spec = rest.partition("@")
    if metric not in METRICS:
        known = ", ".join(sorted(METRICS))
        raise SettingsError(f"judge {_shown('deepeval', rest)}: metric {printable(metric)!r} is not one of {known}")
    if not spec:
        raise SettingsError(
            f"judge {_shown('deepeval', rest)}: no model; write it as deepeval:{metric}@openai:MODEL or "
            f"deepeval:{metric}@openai:MODEL@URL"
        )
    return DeepEvalJudge(metric, chat_model(spec, options))


def _model_and_url(kind: str, rest: str) -> tuple[str, str | None]:
    found = _MODEL_AT_URL.fullmatch(rest)
    if found is None or (found["url"] is None and re.search("@|://", found["model"])):
        raise SettingsError(
            f"judge {_shown(kind, rest)} is spelt {kind}:MODEL or {kind}:MODEL@URL, the URL with http:// or https://"
        )
    return found["model"], found["url"]


def _shown(kind: str, rest: str) -> str:
    return repr(printable(public_target(f"{kind}:{rest}")))
