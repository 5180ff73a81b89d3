"""The versions of its parts that a system reports."""

from __future__ import annotations

VERSION_NAMES = ("llm", "prompt", "embedding", "chunker", "index")
"""The names that reports and hashes read; a system may send others, of any kind."""
LONGEST_VERSION = 1_000
"""Characters of a version."""
A_VERSION = f"a text of at most {LONGEST_VERSION:,} characters, or a number"


def is_version(value: object) -> bool:
    """Return True for a value that can name a version."""
    if isinstance(value, str):
        return len(value) <= LONGEST_VERSION
    return isinstance(value, int | float)
