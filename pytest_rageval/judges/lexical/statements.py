"""Which words does a sentence hold, in which order, and what do they weigh?"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from pytest_rageval.judges.lexical.negation import NEGATIONS, negates
from pytest_rageval.judges.lexical.number_words import DIGITS, is_figure, plain_figure, readings, with_korean_numbers
from pytest_rageval.judges.lexical.wordlist import words
from pytest_rageval.text import content_tokens, sentences

LONGEST_TEXT = 20_000
"""Characters of an answer or of a reference that are looked at; 3,000 words are no answer any more."""

LONGEST_PASSAGE = 200_000
"""Characters of one passage that are looked at: what comes from outside is bounded."""

SMALL_WEIGHT = 0.5
"""Of pronouns, prepositions, auxiliaries beside 1 for a word of content: they say who, when and how surely."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence, read.

    words    all in order, folded; figures in plain form, negations and articles left out
    content  those that carry meaning (all, where none does)
    figures  those in digits or number words, as written in `words`
    negates  is there a negation in it?
    """

    text: str
    words: tuple[str, ...]
    content: frozenset[str]
    figures: frozenset[str]
    negates: bool


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """A text that bears out statements, or does not: its sentences, and in which of them (by number) a word is."""

    sentences: tuple[str, ...]
    words: Mapping[str, tuple[int, ...]]


@lru_cache(maxsize=4096)
def read_statement(sentence: str) -> Statement:
    """Read one sentence; the last 4,096 are remembered."""
    found = words_in(sentence)
    kept = tuple([word for word in found if word not in NEGATIONS and word not in ARTICLES]) or tuple(found)
    content = frozenset(kept) - SMALL_WORDS or frozenset(kept)
    figures = frozenset([word for word in kept if is_figure(word)])
    return Statement(sentence, kept, content, figures, negates(sentence, found))


# Retrieval gives the same chunks for many questions, and several rubrics ask about the same ones.
@lru_cache(maxsize=256)
def read_passage(text: str) -> ReadPassage:
    """Read a passage; the last 256 are remembered."""
    found: dict[str, list[int]] = {}
    said = tuple(sentences(text[:LONGEST_PASSAGE]))
    for number, sentence in enumerate(said):
        for word in {*words_in(sentence)} - NEGATIONS - ARTICLES:
            for form in readings(word) if is_figure(word) else (word,):
                where = found.setdefault(form, [])
                if len(where) < MOST_PLACES:
                    where.append(number)
    return ReadPassage(said, {word: tuple(where) for word, where in found.items()})


def words_in(text: str) -> list[str]:
    """The words of a text in order, folded; figures in plain form, a contracted "not" as a word of its own.

    Small words are among them where a script has spaces and no particles; else these are the content tokens.
    """
    text = cleaned(text)
    if has_particles(text):
        found = content_tokens(text) if any(map(str.isalnum, text)) else []
        parts = [part for word in found for part in (_WORD.findall(word) or [word])]
        return with_korean_numbers([_plain_word(part) for part in parts])
    found = _WORD.findall(text.casefold())
    return [plain_figure(word) if is_figure(word) else DIGITS.get(word, word) for word in found]


def cleaned(text: str) -> str:
    """The text in one spelling: NFKC, no commas in numbers, contractions of "not" and possessives resolved."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("−", "-")
    text = _NUMBER_COMMA.sub("", text)
    if "'" in text or "annot" in text:
        for pattern, written in _CONTRACTED:
            text = pattern.sub(written, text)
    return text


def has_particles(text: str) -> bool:
    """Is it written, in part, in a script without spaces or with particles that hang on the words?"""
    return not text.isascii() and _particle_script().search(text) is not None


@lru_cache(maxsize=1024)
def neighbours(sentence: str) -> frozenset[tuple[str, str]]:
    """Pairs of words that follow one another in the sentence, at most three apart; the last 1,024 are remembered."""
    said = read_statement(sentence).words
    return frozenset(pair for apart in (1, 2, 3) for pair in zip(said, said[apart:], strict=False))


def weight(word: str) -> float:
    """What a word weighs in a claim."""
    return SMALL_WEIGHT if word in SMALL_WORDS else 1.0


def _plain_word(word: str) -> str:
    if is_figure(word):
        return plain_figure(word)
    if word.startswith(_KOREAN_NOT):
        return "안"
    verb = _KOREAN_VERB.fullmatch(word)
    return verb["stem"] if verb else DIGITS.get(word, word)


@cache
def _particle_script() -> re.Pattern[str]:
    return re.compile("[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u3005-\u30ff\u3131-\u318e\u31f0-\u9fff\uac00-\ud7a3]")


MOST_PLACES = 64
"""Sentences of a passage that are remembered for a word: a word that is everywhere tells no sentence from another."""

SMALL_WORDS = words(
    """
    about above after again all also am and any are as at be because been before being below between both but by
    can could did do does doing down during each few for from further had has have having he her here hers him
    his how if in into is it its itself just may might more most must of off on once one only or other our ours
    out over own same she should so some such than that their theirs them themselves then there these they this
    those through to too under until up upon us very was we were what when where which while who whom whose why
    will with would you your yours
    """
)
"""English words of grammar. `i`, `me` and `my` are not among them: who speaks of himself says what no passage holds."""
ARTICLES = frozenset(("a", "an", "the"))
_NUMBER_COMMA = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_WORD = re.compile(r"(?:(?<![^\s(])-)?\d+(?:\.\d+)*|[^\W\d_][^\W_]*|\d+")
_KOREAN_NOT = ("않", "없", "못하", "못한", "못할", "못합", "못해", "못했", "아니", "아닌", "아닙", "아닐")
_KOREAN_VERB = re.compile(
    "(?P<stem>[가-힣]{2,8}?)(?:[하한할함합해했]|하였|[되된될됨됩돼됐])"
    "(?:습니다|니다|는다|다|였다|였습니다|었다|었습니다|지|며|고|여|여서|서|는|던|면|게|기|기로|도록|어|야|요)?"
)
"""A noun made a verb, 동작합니다 or 증가했다: what counts is the noun."""
_CONTRACTED = (
    (re.compile(r"(?i)\bca(?:n't|nnot)\b|\bca n't\b"), "can not"),
    (re.compile(r"(?i)\bwon't\b|\bwo n't\b"), "will not"),
    (re.compile(r"(?i)(?<=[a-z]) ?n't\b"), " not"),
    (re.compile(r"(?i)'(?:s|re|ve|ll|d|m)\b"), " "),
    (re.compile(r"'"), ""),
)
