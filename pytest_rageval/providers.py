"""Providers of language models, as far as they are known before their modules are loaded.

Judges, help texts, masking of keys and the browser's form read this table: a new provider is a row here, and
a module in `pytest_rageval/llm/` that holds everything else about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ProviderRow(NamedTuple):
    """One provider.

    factory  `module:function` in `pytest_rageval.llm`; function(KIND, REST, options) returns the ChatModel of a spec
    forms    formats of a judge's spec of this kind
    keys     environment variables with its keys, masked wherever they appear
    hosts    hosts that keep their dated or numbered models unchanged
    title    its name for people, if the browser offers it
    models   models that the browser suggests
    """

    factory: str
    forms: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    title: str = ""
    models: tuple[str, ...] = ()


PROVIDERS: dict[str, ProviderRow] = {
    "openai": ProviderRow(
        "openai:openai_model",
        ("openai:MODEL", "openai:MODEL@URL"),
        ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"),
        ("api.openai.com", "api.mistral.ai", "generativelanguage.googleapis.com", "api.x.ai"),
        "OpenAI",
        ("gpt-4.1-2025-04-14", "gpt-4.1-mini-2025-04-14", "gpt-4o-2024-08-06", "gpt-4o-mini-2024-07-18"),
    ),
    "http": ProviderRow("openai:openai_model", ("http://HOST",)),
    "https": ProviderRow("openai:openai_model"),
    "anthropic": ProviderRow(
        "anthropic:anthropic_model",
        ("anthropic:MODEL",),
        ("ANTHROPIC_API_KEY",),
        ("api.anthropic.com",),
        "Anthropic",
        ("claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"),
    ),
    "any-llm": ProviderRow("any_llm:any_llm_model", ("any-llm:PROVIDER/MODEL",)),
}
"""Providers by the kind at the beginning of a judge's spec."""
OF_TARGETS = {"ollama": ProviderRow("", title="Ollama", models=("llama3.1:8b", "qwen2.5:7b"))}
"""Providers of systems under test alone."""
OFFERED: Mapping[str, ProviderRow] = {kind: row for kind, row in (PROVIDERS | OF_TARGETS).items() if row.title}
"""Providers that the browser offers by name."""
KEYS = tuple(key for provider in PROVIDERS.values() for key in provider.keys)
FORMS = tuple(provider.forms[0] for provider in PROVIDERS.values() if provider.forms)
"""The shortest format of each kind."""
BY_NAME = frozenset(kind for kind, provider in PROVIDERS.items() if f"{kind}:MODEL" in provider.forms)
"""Kinds whose specs are KIND:MODEL or KIND:MODEL@URL."""
