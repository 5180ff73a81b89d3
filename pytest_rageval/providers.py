"""Providers of language models, as far as they are known before their modules are loaded.

Judges, systems under test, help texts, masking of keys and the browser's form read this table: a new provider is
a row here, and a module in `pytest_rageval/llm/` with its wire, unless it speaks like another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class ProviderRow(NamedTuple):
    """One provider.

    kind     the word before the colon in its specs, `KIND:MODEL` and `KIND:MODEL@URL`
    wire     `module:class` in `pytest_rageval.llm`: a Wire, made of an address, this row and a source of the key
    home     its own server, which is asked unless the user names one
    keys     environment variables with its keys, masked wherever they appear; the first one is sent
    hosts    hosts that keep their dated or numbered models unchanged
    title    its name for people, if the browser offers it
    models   models that the browser suggests
    roles    `judge`: its models judge, draft cases and write for the demo; `target`: they can be under test
    batches  it takes requests in batches
    forms    formats of a judge's spec, if not `KIND:MODEL`
    factory  `module:function` in place of `wire`: function(KIND, REST, options) returns the ChatModel of a spec
    """

    kind: str
    wire: str = ""
    home: str = ""
    keys: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    title: str = ""
    models: tuple[str, ...] = ()
    roles: tuple[Literal["judge", "target"], ...] = ("judge",)
    batches: bool = False
    forms: tuple[str, ...] | None = None
    factory: str = ""

    @property
    def key(self) -> str | None:
        """Return the environment variable whose key is sent; None if there is none."""
        return self.keys[0] if self.keys else None

    @property
    def spellings(self) -> tuple[str, ...]:
        """Return the formats of a judge's spec of this kind."""
        return (f"{self.kind}:MODEL",) if self.forms is None else self.forms


ROWS = (
    ProviderRow(
        "openai",
        "openai:OpenAiWire",
        "https://api.openai.com",
        ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"),
        hosts=("api.openai.com", "api.mistral.ai", "generativelanguage.googleapis.com", "api.x.ai"),
        title="OpenAI",
        models=("gpt-4.1-2025-04-14", "gpt-4.1-mini-2025-04-14", "gpt-4o-2024-08-06", "gpt-4o-mini-2024-07-18"),
        roles=("judge", "target"),
        batches=True,
        forms=("openai:MODEL", "openai:MODEL@URL"),
        factory="openai:openai_model",
    ),
    ProviderRow("http", forms=("http://HOST",), factory="openai:only_model_at"),
    ProviderRow("https", forms=(), factory="openai:only_model_at"),
    ProviderRow(
        "anthropic",
        "anthropic:AnthropicWire",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        hosts=("api.anthropic.com",),
        title="Anthropic",
        models=("claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"),
        batches=True,
        factory="anthropic:anthropic_model",
    ),
    ProviderRow("any-llm", forms=("any-llm:PROVIDER/MODEL",), factory="any_llm:any_llm_model"),
    ProviderRow(
        "ollama",
        "ollama:OllamaWire",
        "http://localhost:11434",
        title="Ollama",
        models=("llama3.1:8b", "qwen2.5:7b"),
        roles=("target",),
    ),
)
PROVIDERS: Mapping[str, ProviderRow] = {row.kind: row for row in ROWS}
JUDGING: Mapping[str, ProviderRow] = {row.kind: row for row in ROWS if "judge" in row.roles}
ASKED: Mapping[str, ProviderRow] = {row.kind: row for row in ROWS if "target" in row.roles}
"""Providers of systems under test."""
KEYS = tuple(key for row in ROWS for key in row.keys)
FORMS = tuple(row.spellings[0] for row in JUDGING.values() if row.spellings)
"""The shortest format of each kind of judge."""
BY_NAME = frozenset(row.kind for row in JUDGING.values() if f"{row.kind}:MODEL" in row.spellings)
"""Kinds of judges whose specs are KIND:MODEL or KIND:MODEL@URL."""
BATCHED = tuple(f"{row.kind}:MODEL" for row in ROWS if row.batches)
