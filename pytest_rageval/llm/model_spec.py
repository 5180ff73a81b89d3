"""Model names: providers and specs, such as `openai:MODEL@URL`; identities, families, and pinned versions."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pytest_rageval.errors import SettingsError
from pytest_rageval.providers import PROVIDERS

_MODEL_AT_URL = re.compile(r"(?P<model>\S+?)(?:@(?P<url>https?:\S*))?")


def model_and_url(kind: str, text: str) -> tuple[str, str | None]:
    """Split `MODEL` or `MODEL@URL`; a model's own name may hold `@`. Raise SettingsError for any other format."""
    parts = _MODEL_AT_URL.fullmatch(text)
    if parts is None or (parts["url"] is None and re.search(".@|://", parts["model"])):
        raise SettingsError(f"a model is spelt {kind}:MODEL or {kind}:MODEL@URL, the URL with http:// or https://")
    return parts["model"], parts["url"]


_CHAT_PATHS = re.compile(r"/(?:chat/completions|messages|chat|embeddings)$")
_FLOATING = re.compile(r"(?:^|[-_:/.@])(?:latest|stable|current|default|auto|chatgpt)(?:$|[-_:/.@])")
_NUMBERED = re.compile(
    r"(?<!\d)20\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])(?!\d)"  # a day: 2024-08-06, 20250514
    r"|[-_@](?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])(?!\d)"  # month and day: gpt-4-0613, -preview-05-20
    r"|-2\d(?:0[1-9]|1[0-2])(?!\d)"  # year and month: mistral-large-2411
    r"|-00\d$"  # a revision: gemini-1.5-pro-002
)
_PROVIDERS_THAT_KEEP = frozenset(
    {"openai", "anthropic", "mistral", "gemini", "xai", "bedrock", "vertexai", "vertexaianthropic"}
)
"""Providers that keep such models unchanged, by any-llm's names."""


def model_identity(api: str, model: str, url: str, server_name: str | None = None) -> str:
    """Return API, model and server as one name; judges with the same identity are the same judge.

    The server is the host and path of its address, without credentials and query, or the name that the user gives it,
    which makes one judge of one model behind several addresses.
    """
    server = server_name
    if not server:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2].lower()
        server = host + _CHAT_PATHS.sub("", parts.path)
    return f"{api}:{model}@{server}"


def same_model(one: str, other: str) -> bool:
    """Return True if two names mean the same model, ignoring provider, address, date and ending."""
    return bool(_bare(one)) and _bare(one) == _bare(other)


_ADDRESS = re.compile(r"@https?://.*$")
_PROVIDER = re.compile(rf"^(?:{'|'.join(PROVIDERS)}|deepeval|azure|bedrock|google|vertex_ai|mistral|local):")
_ENDINGS = re.compile(r"[-_@:](?:latest|20\d\d-?\d\d-?\d\d|v\d+:\d+)$|\.gguf$")


def _bare(model: str) -> str:
    name = _ADDRESS.sub("", model.strip().lower())
    name = _PROVIDER.sub("", name).rpartition("/")[2]
    name = name.removeprefix("anthropic.").removeprefix("models/")
    while (shorter := _ENDINGS.sub("", name)) != name:
        name = shorter
    return name.replace(":", "-").replace("_", "-")


_FAMILIES = (
    "chatgpt",
    "gpt",
    "claude",
    "gemini",
    "gemma",
    "llama",
    "qwen",
    "mistral",
    "mixtral",
    "ministral",
    "deepseek",
    "grok",
    "command",
    "phi",
    "exaone",
    "solar",
    "glm",
    "kimi",
)
_RELATIVES = {"chatgpt": "gpt", "mixtral": "mistral", "ministral": "mistral"}
_REASONERS = re.compile(r"o\d(?:-|$)")


def model_family(model: str) -> str | None:
    """Return the model family of a name, such as `gpt` or `llama`, or None if it is unknown."""
    name = _bare(model)
    if _REASONERS.match(name):
        return "gpt"
    for family in _FAMILIES:
        if re.match(rf"(?:meta-)?{family}(?![a-z])", name):
            return _RELATIVES.get(family, family)
    return None


def is_pinned(model: str, url: str) -> bool:
    """Return True if the name always means the same model at this address.

    True for names with a date (`gpt-4o-2024-08-06`) or revision (`gemini-1.5-pro-002`) at a provider known to keep
    published models unchanged. False for `latest` and the like, for other names, and for any other server: its owner
    may put another model or quantisation behind the same tag, file or deployment.
    """
    name = model.strip().lower()
    return _keeps_models(url) and not _FLOATING.search(name) and _NUMBERED.search(name) is not None


def _keeps_models(url: str) -> bool:
    """Return True if a provider at this address is known to keep published models unchanged."""
    address = urlsplit(url)
    host = address.hostname or ""
    if address.scheme == "any-llm":
        return host in _PROVIDERS_THAT_KEEP
    for provider in PROVIDERS.values():
        if any(host == keeper or host.endswith(f".{keeper}") for keeper in provider.hosts):
            return True
    return False
