"""Texts of a case's page: as long as they are shown, and chunks with the quotations of their golds marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

LONGEST_TEXT = 4_000
"""Characters of a question or an answer; chunks stand as far as results.jsonl keeps them."""


def limited(text: str | None) -> str | None:
    """A text as long as a page shows it."""
    return text if text is None or len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"


class TextPart(NamedTuple):
    """A part of a text; marked where it is a quotation."""

    is_marked: bool
    text: str


def marked_text(text: str, snippets: Iterable[str]) -> Sequence[TextPart]:
    """The text with its first occurrence of each snippet marked, whatever white space and case; () without any."""
    spans = sorted(span for snippet in snippets if (span := _span(text, snippet)) is not None)
    parts: list[TextPart] = []
    end = 0
    for start, stop in spans:
        if stop <= end:
            continue
        start = max(start, end)
        parts += [TextPart(is_marked=False, text=text[end:start])] * (start > end)
        parts.append(TextPart(is_marked=True, text=text[start:stop]))
        end = stop
    if parts and end < len(text):
        parts.append(TextPart(is_marked=False, text=text[end:]))
    return parts


def _span(text: str, snippet: str) -> tuple[int, int] | None:
    words = snippet.split()
    if words and (at := text.find(snippet)) >= 0:
        return at, at + len(snippet)
    # Compiled only where the plain search fails: it takes longer than the whole rest of a chunk's row.
    match = re.search(r"\s+".join(map(re.escape, words)), text, re.IGNORECASE) if words else None
    return match.span() if match else None
