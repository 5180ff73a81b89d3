"""Specs of models, such as `openai:MODEL@URL`, `anthropic:MODEL` or `http://HOST`, and the model that each names."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

from pytest_rageval.errors import SettingsError
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.providers import PROVIDERS

if TYPE_CHECKING:
    from pytest_rageval.llm.chat_model import ChatModel

_MODEL_AT_URL = re.compile(r"(?P<model>\S+?)(?:@(?P<url>https?:\S*))?")


def model_and_url(kind: str, spelling: str) -> tuple[str, str | None]:
    """`MODEL` or `MODEL@URL` in its parts; a model's own name may hold `@`. SettingsError where neither is meant."""
    parts = _MODEL_AT_URL.fullmatch(spelling)
    if parts is None or (parts["url"] is None and re.search(".@|://", parts["model"])):
        raise SettingsError(f"a model is spelt {kind}:MODEL or {kind}:MODEL@URL, the URL with http:// or https://")
    return parts["model"], parts["url"]


def chat_model(spec: str, options: EndpointOptions) -> ChatModel:
    """The model that a spec names, `KIND:REST` as the kind's provider reads it. SettingsError where it names none.

    The URL in a spec comes before that of the options. A spec without a kind is a model at their URL.
    """
    kind, colon, rest = spec.partition(":")
    if not colon or kind not in PROVIDERS:
        if options.base_url is None:
            raise SettingsError("no server; write it as openai:MODEL or openai:MODEL@URL")
        kind, rest = "openai", spec
    module, _, function = PROVIDERS[kind].factory.partition(":")
    model: ChatModel = getattr(import_module(f"pytest_rageval.llm.providers.{module}"), function)(kind, rest, options)
    return model
