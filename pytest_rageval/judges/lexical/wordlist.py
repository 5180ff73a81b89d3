"""Lists of words, as one writes them."""

from __future__ import annotations


def words(written: str) -> frozenset[str]:
    """A set of words, written as a text of them."""
    return frozenset(written.split())
