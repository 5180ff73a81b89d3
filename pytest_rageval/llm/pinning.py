"""Pinned names of models: those that mean the same model for ever."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_FLOATING = re.compile(r"(?:^|[-_:/.@])(?:latest|stable|current|default|auto|chatgpt)(?:$|[-_:/.@])")
_NUMBERED = re.compile(
    r"(?<!\d)20\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])(?!\d)"  # a day: 2024-08-06, 20250514
    r"|[-_@](?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])(?!\d)"  # month and day: gpt-4-0613, -preview-05-20
    r"|-2\d(?:0[1-9]|1[0-2])(?!\d)"  # year and month: mistral-large-2411
    r"|-00\d$"  # a revision: gemini-1.5-pro-002
)
_KEEPERS = ("api.openai.com", "api.anthropic.com", "api.mistral.ai", "generativelanguage.googleapis.com", "api.x.ai")
"""Hosts whose owners publish dated or numbered models and leave each as it is."""
_PROVIDERS_THAT_KEEP = frozenset(
    {"openai", "anthropic", "mistral", "gemini", "xai", "bedrock", "vertexai", "vertexaianthropic"}
)
"""Providers that keep their models so, by any-llm's names."""


def is_pinned(model: str, url: str) -> bool:
    """Whether the name means the same model for ever at this address.

    Yes, where it holds a date (`gpt-4o-2024-08-06`) or a revision (`gemini-1.5-pro-002`) and the provider is known to
    keep what it published so. No for `latest` and the like, for other names, and for every other server: whoever runs
    it may put another model, or another quantisation, behind the same tag, file or deployment.
    """
    name = model.strip().lower()
    address = urlsplit(url)
    host = address.hostname or ""
    is_kept = (
        host in _PROVIDERS_THAT_KEEP
        if address.scheme == "any-llm"
        else any(host == keeper or host.endswith(f".{keeper}") for keeper in _KEEPERS)
    )
    return is_kept and not _FLOATING.search(name) and _NUMBERED.search(name) is not None
