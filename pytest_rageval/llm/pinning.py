"""Names of models: whether one means the same model for ever, and whether two mean the same."""

from __future__ import annotations

import re

_FLOATING = re.compile(r"(?:^|[-_:/.@])(?:latest|stable|current|default|auto|chatgpt)(?:$|[-_:/.@])")
_PINNED = re.compile(
    r"(?<!\d)20\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])(?!\d)"  # a day: 2024-08-06, 20250514
    r"|[-_@](?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])(?!\d)"  # month and day: gpt-4-0613, -preview-05-20
    r"|-2\d(?:0[1-9]|1[0-2])(?!\d)"  # year and month: mistral-large-2411
    r"|-00\d$"  # a revision: gemini-1.5-pro-002
    r"|(?:@|sha256[:-]|[-_:])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}$"  # a hash or digest
    r"|\.gguf$"  # a file of weights
)
# Weights that anybody can load are published once: version and size name them, as in qwen2.5-14b or llama3.1:8b.
_SIZE = re.compile(r"(?:^|[-_:x])\d+(?:\.\d+)?[bm](?![a-z0-9])")


def is_pinned(model: str) -> bool:
    """Does the name always mean the same model?

    Yes, where it holds a date (`gpt-4o-2024-08-06`), a revision (`gemini-1.5-pro-002`), a hash or digest, the name of a
    file of weights, or the size of published weights (`qwen2.5-14b`, `llama3.1:8b-instruct-q4_K_M`). No, for
    `latest` and the like and for every other name: its owner may put another model behind it.
    """
    name = model.strip().lower()
    if _FLOATING.search(name):
        return False
    return bool(_PINNED.search(name) or _SIZE.search(name))


def same_model(one: str, other: str) -> bool:
    """Do two names mean the same model, as far as names can tell: without provider, address, date and file ending?"""
    return bool(_bare(one)) and _bare(one) == _bare(other)


_ADDRESS = re.compile(r"@https?://.*$")
_PROVIDER = re.compile(r"^(?:openai|anthropic|ollama|deepeval|azure|bedrock|google|vertex_ai|mistral|local):")
_ENDINGS = re.compile(r"[-_@:](?:latest|20\d\d-?\d\d-?\d\d|v\d+:\d+)$|\.gguf$")


def _bare(model: str) -> str:
    name = _ADDRESS.sub("", model.strip().lower())
    name = _PROVIDER.sub("", name).rpartition("/")[2]
    name = name.removeprefix("anthropic.").removeprefix("models/")
    while (shorter := _ENDINGS.sub("", name)) != name:
        name = shorter
    return name.replace(":", "-").replace("_", "-")
