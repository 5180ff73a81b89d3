"""The name that was probably meant, and lists cut to what a reader takes in."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice

LONGEST_NAME = 80
"""Characters; difflib needs quadratic time, and nobody mistypes that much."""
MOST_NAMES = 5
"""Names of a list that a message holds."""


def suggestion(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name closest to this one, whatever its case; None where none is close.

    Of names in parts the last part is enough: `rel_path` means `gold_supports.rel_path`.
    """
    if len(name) > LONGEST_NAME:
        return None
    by_folded = {_folded(candidate): candidate for candidate in known}
    folded = _folded(name)
    if folded in by_folded:
        return by_folded[folded]
    inner = next((candidate for candidate in by_folded if candidate.rpartition(".")[2] == folded), None)
    close = inner or next(iter(get_close_matches(folded, by_folded, n=1, cutoff=cutoff)), None)
    return None if close is None else by_folded[close]


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """`; did you mean 'mrr'?`, to be put behind a message; `otherwise` where no known name is close."""
    close = suggestion(name, known)
    return f"; did you mean {close!r}?" if close is not None else otherwise


def listed(names: Collection[str], most: int = MOST_NAMES) -> str:
    """`a, b and 3 more`: the first names, and how many there are beside."""
    shown = ", ".join(islice(names, most))
    hidden = len(names) - most
    return shown if hidden <= 0 else f"{shown} {and_more(hidden)}".lstrip()


def and_more(hidden: int, what: str = "") -> str:
    """`and 1,200 more cases`: the end of a list of which so many are not shown."""
    return f"and {hidden:,} more {what}".rstrip()


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()
