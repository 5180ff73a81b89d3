"""Suggestions for misspelt names, and shortened lists."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice

LONGEST_NAME = 80
"""Longest name in characters that is compared: difflib takes quadratic time."""
KEY_CUTOFF = 0.7
"""Minimum similarity of keys and columns: at 0.6 `session` would mean `question`, and `notes` would mean `contexts`."""
MOST_KNOWN = 2000
"""Number of names compared: with many thousands, for each of as many wrong ones, it would take minutes."""
MOST_NAMES = 5
"""Number of names in a message."""


def suggestion(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name most similar to this one, ignoring case; None if none is close.

    The last part of a dotted name is enough: `rel_path` means `gold_supports.rel_path`.
    """
    if len(name) > LONGEST_NAME:
        return None
    by_folded: dict[str, list[str]] = {}
    for candidate in names:
        by_folded.setdefault(_folded(candidate), []).append(candidate)
    close = _nearest(_folded(name), by_folded, cutoff)
    # Of names that differ only in case, the one with the closest case.
    return None if close is None else get_close_matches(name, by_folded[close], n=1, cutoff=0)[0]


def did_you_mean(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """Return `; did you mean 'mrr'?` for the end of a message, or `otherwise` if no known name is close."""
    close = suggestion(name, names)
    return f"; did you mean {close!r}?" if close is not None else otherwise


def listed(names: Collection[str], most: int = MOST_NAMES) -> str:
    """Format `a, b and 3 more`: the first names and the number of the others."""
    shown = ", ".join(islice(names, most))
    hidden = len(names) - most
    return shown if hidden <= 0 else f"{shown} {and_more(hidden)}".lstrip()


def and_more(hidden: int, what: str = "") -> str:
    """Format `and 1,200 more cases`, the end of a shortened list."""
    return f"and {hidden:,} more {what}".rstrip()


def _nearest(name: str, names: Collection[str], cutoff: float) -> str | None:
    if name in names:
        return name
    if len(names) > MOST_KNOWN:
        return None
    inner = next((candidate for candidate in names if candidate.rpartition(".")[2] == name), None)
    return inner or next(iter(get_close_matches(name, names, n=1, cutoff=cutoff)), None)


def _folded(name: str) -> str:
    # Full-width letters, as Japanese keyboards give them, look alike and are others.
    return unicodedata.normalize("NFKC", name).casefold().strip()
