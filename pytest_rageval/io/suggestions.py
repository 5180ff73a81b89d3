"""The name that was probably meant, and lists cut to what a reader takes in."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice

LONGEST_NAME = 80
"""Characters; difflib needs quadratic time, and nobody mistypes that much."""
MOST_KNOWN = 2000
"""Names that are compared: with many thousands, for each of as many wrong ones, it would take minutes."""
MOST_NAMES = 5
"""Names of a list that a message holds."""


def suggestion(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name closest to this one, whatever its case; None where none is close.

    Of names in parts the last part is enough: `rel_path` means `gold_supports.rel_path`.
    """
    if len(name) > LONGEST_NAME:
        return None
    by_folded: dict[str, list[str]] = {}
    for candidate in names:
        by_folded.setdefault(_folded(candidate), []).append(candidate)
    close = _nearest(_folded(name), by_folded, cutoff)
    # Names that differ in their case alone: the one written more alike.
    return None if close is None else get_close_matches(name, by_folded[close], n=1, cutoff=0)[0]


def did_you_mean(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """`; did you mean 'mrr'?`, to be put behind a message; `otherwise` where no known name is close."""
    close = suggestion(name, names)
    return f"; did you mean {close!r}?" if close is not None else otherwise


def listed(names: Collection[str], most: int = MOST_NAMES) -> str:
    """`a, b and 3 more`: the first names, and how many there are beside."""
    shown = ", ".join(islice(names, most))
    hidden = len(names) - most
    return shown if hidden <= 0 else f"{shown} {and_more(hidden)}".lstrip()


def and_more(hidden: int, what: str = "") -> str:
    """`and 1,200 more cases`: the end of a list of which so many are not shown."""
    return f"and {hidden:,} more {what}".rstrip()


def _nearest(name: str, names: Collection[str], cutoff: float) -> str | None:
    if name in names:
        return name
    if len(names) > MOST_KNOWN:
        return None
    inner = next((candidate for candidate in names if candidate.rpartition(".")[2] == name), None)
    return inner or next(iter(get_close_matches(name, names, n=1, cutoff=cutoff)), None)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()
