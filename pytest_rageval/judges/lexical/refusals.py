"""Does an answer decline to answer? Its sentences are sorted by phrase, then weighed."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal, NamedTuple

from pytest_rageval.judges.lexical.refusal_phrases import COURTESY, LANGUAGES, TURN
from pytest_rageval.judges.lexical.terms import LONGEST_TEXT
from pytest_rageval.text import content_tokens, sentences


class Declined(NamedTuple):
    """Whether an answer declines, how sure that is (0.5 a toss-up, 1 certain), and the phrase that says so."""

    abstained: bool
    confidence: float
    phrase: str | None = None


def declines(answer: str) -> Declined:
    """Does the answer as a whole decline?

    Its sentences, cut at words like "but", either decline, are courtesies (regrets, advice where to turn), or say
    something. It declines when what declines outweighs what says something, by content words: 40 % suffice where it
    comes first, 60 % are needed elsewhere. What follows a "but" and says something is an answer after all.
    """
    said = sentences(answer[:LONGEST_TEXT])
    if not any(map(_holds_refusal, said)):
        return Declined(False, 0.9)
    parts = [part for sentence in said for part in _parts(sentence)]
    phrase = next((part.text for part in parts if part.kind == "declines"), None)
    if phrase is None or any(part.kind == "says" and part.turns for part in parts):
        return Declined(False, 0.6, phrase)
    declining, saying = _size(parts, "declines"), _size(parts, "says")
    if not saying:
        return Declined(True, 0.95, phrase)
    comes_first = next(part.kind for part in parts if part.kind != "courtesy") == "declines"
    needed = 0.4 if comes_first else 0.6
    share = declining / (declining + saying)
    return Declined(share >= needed, round(0.5 + abs(share - needed) / 2, 2), phrase)


def only_declines(sentence: str) -> bool:
    """Does the sentence decline and say nothing beside?"""
    return _holds_refusal(sentence) and all(part.kind != "says" for part in _parts(sentence))


class _Part(NamedTuple):
    text: str
    kind: Literal["declines", "courtesy", "says"]
    turns: bool
    """It follows a word like "but"."""


def _parts(sentence: str) -> list[_Part]:
    found: list[_Part] = []
    turns, start = False, 0
    for turn in TURN.finditer(sentence):
        found.append(_part(sentence[start : turn.start()], turns))
        turns, start = True, turn.end()
    found.append(_part(sentence[start:], turns))
    return found


def _part(text: str, turns: bool) -> _Part:
    if _holds_refusal(text):
        return _Part(text.strip(), "declines", turns)
    is_courtesy = COURTESY.search(_folded(text)) or not re.search(r"\w", text)
    return _Part(text.strip(), "courtesy" if is_courtesy else "says", turns)


@lru_cache(maxsize=4096)
def _holds_refusal(text: str) -> bool:
    folded = _folded(text)
    return any(language.refuses(folded) for language in LANGUAGES)


def _folded(text: str) -> str:
    # A refusal is said early; the bound also keeps a page without a full stop cheap.
    folded = text[:600].strip(" ,;:—–、，；")
    return unicodedata.normalize("NFKC", folded).casefold().replace("’", "'").replace("_", " ")


def _size(parts: list[_Part], kind: str) -> int:
    return sum(len(content_tokens(part.text)) for part in parts if part.kind == kind)
