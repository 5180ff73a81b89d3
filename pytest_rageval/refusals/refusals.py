"""Refusals: whether an answer declines, judged by phrases and by what stands around them.

An answer that says that the sources do not hold what was asked declines, whatever related facts, advice or regrets it
gives beside, unless it gives an answer first, or after a "but".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from pytest_rageval.refusals.refusal_phrases import CONCLUSION, COURTESY, LANGUAGES, SOURCES, TURN
from pytest_rageval.words import sentences

LONGEST_TEXT = 20_000
"""Characters of an answer that are looked at."""


class Declined(NamedTuple):
    """Whether an answer declines, how sure that is (0.5 a toss-up, 1 certain), and the phrase that says so."""

    abstained: bool
    confidence: float
    phrase: str | None = None


def declines(answer: str, phrases: Sequence[str] = ()) -> Declined:
    """Does the answer as a whole decline? `phrases` are refusals of one bot: an answer that holds one declines.

    Its sentences, cut at words like "but", either decline, are courtesies (regrets, advice where to turn, questions),
    tell of the sources, or say something of the matter. The answer declines where one part does, unless one before it
    says something, or one after it that follows a "but". A refusal that concludes ("Therefore, I cannot answer") in the
    last sentence decides whatever stands before it.
    """
    return _declines(answer[:LONGEST_TEXT], tuple(phrases))


@lru_cache(maxsize=16)  # several metrics and the judge ask about the same answer, one after the other
def _declines(answer: str, phrases: tuple[str, ...]) -> Declined:
    folded = _folded(answer) if phrases else ""
    for phrase in phrases:
        if _folded(phrase) in folded:
            return Declined(True, 0.95, phrase)
    parts = [part for sentence in sentences(answer) for part in _parts(sentence)]
    first = next((place for place, part in enumerate(parts) if part.kind == "declines"), None)
    if first is None:
        return Declined(False, 0.9)
    refusal = parts[first].text
    conclusion = next((part for part in reversed(parts) if part.kind != "courtesy"), parts[first])
    if conclusion.kind == "declines" and CONCLUSION.search(_folded(conclusion.text[:600])):
        return Declined(True, 0.8, conclusion.text)
    if any(part.kind == "says" for part in parts[:first]):
        return Declined(False, 0.7, refusal)
    after = parts[first + 1 :]
    if any(part.kind == "says" and part.turns for part in after):
        return Declined(False, 0.6, refusal)
    return Declined(True, 0.8 if any(part.kind == "says" for part in after) else 0.95, refusal)


def only_declines(sentence: str) -> bool:
    """Does the sentence decline and say nothing beside?"""
    kinds = {part.kind for part in _parts(sentence)}
    return "declines" in kinds and "says" not in kinds


class _Part(NamedTuple):
    text: str
    kind: Literal["declines", "courtesy", "sources", "says"]
    turns: bool
    """It follows a word like "but"."""


@lru_cache(maxsize=4096)
def _parts(sentence: str) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    borders = [(0, 0), *(turn.span() for turn in TURN.finditer(sentence))]
    ends = [start for start, _ in borders[1:]] + [len(sentence)]
    for place, ((_, start), end) in enumerate(zip(borders, ends, strict=True)):
        part = _part(sentence[start:end], turns=place > 0)
        # "The text notes that he used the terms but rejected the theory": still what the text notes.
        if part.kind == "says" and parts and parts[-1].kind == "sources":
            part = part._replace(kind="sources")
        parts.append(part)
    return tuple(parts)


def _part(text: str, *, turns: bool) -> _Part:
    # A refusal is said early; the bound also keeps a page without a full stop cheap.
    folded = _folded(text[:600])
    kind: Literal["declines", "courtesy", "sources", "says"] = "says"
    said = _without_quotes(folded)
    if any(language.refuses(said) for language in LANGUAGES):
        kind = "declines"
    elif not re.search(r"\w", folded) or folded.endswith("?") or COURTESY.search(folded):
        kind = "courtesy"
    elif SOURCES.search(folded) and not CONCLUSION.search(folded):
        kind = "sources"
    return _Part(text.strip(), kind, turns)


_QUOTED = re.compile('"[^"]*"|[“„«「『][^”“»」』]*[”“»」』]')


def _without_quotes(folded: str) -> str:
    """The text without what it quotes, a message or somebody's words; a text that is one quotation stays."""
    unquoted = _QUOTED.sub('""', folded)
    return unquoted if re.search(r"\w", unquoted) else folded


def _folded(text: str) -> str:
    """The form that the patterns are written for: no emphasis, one space, NFKC, case-folded."""
    folded = " ".join(text.replace("*", "").replace("_", " ").strip(" ,;:—–、，；#\n").split())
    return unicodedata.normalize("NFKC", folded).casefold().replace("’", "'")
