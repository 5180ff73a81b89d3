"""Providers of models: all that is known of one stands in its row here and in its module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ProviderRow(NamedTuple):
    """What is known of a provider before its module is loaded.

    factory  `module:function` of this folder; function(KIND, REST, options) gives the ChatModel of a spec
    forms    how a judge of this kind is written
    hosts    whose owners publish dated or numbered models and leave each as it is
    """

    factory: str
    forms: tuple[str, ...]
    hosts: tuple[str, ...] = ()


PROVIDERS: Mapping[str, ProviderRow] = {
    "openai": ProviderRow(
        "openai:openai_model",
        ("openai:MODEL", "openai:MODEL@URL"),
        ("api.openai.com", "api.mistral.ai", "generativelanguage.googleapis.com", "api.x.ai"),
    ),
    "http": ProviderRow("openai:openai_model", ("http://HOST",)),
    "https": ProviderRow("openai:openai_model", ()),
    "anthropic": ProviderRow("anthropic:anthropic_model", ("anthropic:MODEL",), ("api.anthropic.com",)),
    "any-llm": ProviderRow("any_llm:any_llm_model", ("any-llm:PROVIDER/MODEL",)),
}
"""By the kind with which a spec begins."""
