"""Whether a text has any of some names: asked of each text before the patterns that only a few need."""

from __future__ import annotations

from collections.abc import Iterable


def has_any(text: str, names: Iterable[str]) -> bool:
    """Check whether any name stands in a text.

    A loop takes half as long as `any` with a generator, and a search for each name a fifth of one pattern of all.
    """
    for name in names:  # noqa: SIM110
        if name in text:
            return True
    return False
