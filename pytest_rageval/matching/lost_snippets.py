"""Golds whose place was retrieved without their snippet: the chunker cut it, or the index is outdated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_rageval.model import Anchor, Chunk
from pytest_rageval.text import excerpt, printable

_SHOWN = 60
_LOST = "but does not hold the snippet"


def lost_snippets(
    golds: Sequence[Anchor], missed: Sequence[int], places: Sequence[frozenset[int]], chunks: Sequence[Chunk]
) -> Iterator[str]:
    """Yield a note for each missed gold whose place a chunk has.

    places  the golds that each chunk matches if their snippets do not count
    """
    for gold in missed:
        at = next((at for at, found in enumerate(places) if gold in found), None)
        # A chunk without a text may hold anything.
        if at is None or not golds[gold].snippets or chunks[at].text is None or chunks[at].text_truncated:
            continue
        chunk = f"chunk {at + 1} from {printable(golds[gold].rel_path)}"
        snippet = excerpt(golds[gold].snippets[0], _SHOWN)
        why = "the chunker cut it, or the index is older than the document"
        yield f"gold {gold + 1}: {chunk} was retrieved, {_LOST} `{snippet}`: {why}"


def has_lost_snippet(flag: str) -> bool:
    """Return True if a recorded flag is of a gold that was retrieved without its snippet."""
    return _LOST in flag
