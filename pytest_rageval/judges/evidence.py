"""How far do passages of text bear out a statement? By its words, its figures and its negations; no model.

Words can show that something is missing, seldom that something is wrong: a claim made of the passage's own words
passes. The two errors that can be seen are weighed heavily: a figure that no passage has, a negation turned around.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pytest_rageval.text import content_tokens, sentences

LONGEST_TEXT = 20_000
"""Characters of an answer or of a reference that are looked at; 3,000 words are no answer any more."""

LONGEST_PASSAGE = 200_000
"""Characters of one passage that are looked at: what comes from outside is bounded."""

SUPPORTED = 0.75
"""A claim counts as supported from this value on."""

WRONG_FIGURE = 0.5
"""What is left of a claim's value when none of its figures is in the passages: the scale's 2 of 5 at best."""

CONTRADICTED = 0.2
"""The most that a contradicted claim is worth: the scale's 1 of 5."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence, read: its words without negations, its figures, and whether it negates."""

    text: str
    words: frozenset[str]
    figures: tuple[str, ...]
    negates: bool


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that bears out statements, or does not."""

    text: str
    words: frozenset[str]
    figures: frozenset[str]
    negates: bool
    """Is there a negation anywhere in it?"""


@dataclass(frozen=True, slots=True)
class Support:
    """How far a claim is borne out: value in [0, 1], and what speaks against it."""

    claim: Statement
    value: float
    missing: tuple[str, ...] = ()
    contradicted_by: str | None = None


def read_claims(text: str) -> list[Statement]:
    """The sentences of a text as claims; citation marks are no part of them, sentences without a word are dropped."""
    claims = (read_statement(sentence) for sentence in sentences(_CITATION.sub(" ", text[:LONGEST_TEXT])))
    return [claim for claim in claims if claim.words]


@lru_cache(maxsize=4096)
def read_statement(sentence: str) -> Statement:
    """Read one sentence."""
    found = _content(sentence)
    all_words = frozenset(_DIGITS.get(word, word) for word in found)
    figures = tuple(_FIGURE.findall(" ".join(found)))
    return Statement(sentence, all_words - _NEGATIONS or all_words, figures, _negates(sentence, all_words))


# Retrieval gives the same chunks for many questions, and several rubrics ask about the same ones.
@lru_cache(maxsize=256)
def read_passage(text: str) -> Passage:
    """Read a passage; the last 256 are remembered."""
    text = text[:LONGEST_PASSAGE]
    found = _content(text)
    all_words = frozenset(_DIGITS.get(word, word) for word in found)
    figures = {*_FIGURE.findall(" ".join(found)), *all_words & _DIGIT_WORDS}
    readings = frozenset(reading for figure in figures for reading in _readings(figure))
    return Passage(text, all_words, readings, _negates(text, all_words))


@lru_cache(maxsize=256)
def _statements(text: str) -> tuple[Statement, ...]:
    return tuple(read_statement(sentence) for sentence in sentences(text))


def _content(text: str) -> list[str]:
    return content_tokens(text) if any(map(str.isalnum, text)) else []


def _negates(text: str, found: frozenset[str]) -> bool:
    return not found.isdisjoint(_NEGATIONS) or (not text.isascii() and _NEGATED.search(text) is not None)


def support(claim: Statement, passages: Sequence[Passage]) -> Support:
    """How far the passages together bear out the claim.

    The share of the claim's content words that any passage has; times 0.5 to 1 by the share of its figures (numbers
    in digits) found; at most 0.2 where the sentence most alike negates and the claim does not, or the other way.
    """
    wrong = {f for f in claim.figures if not any(_readings(f) & passage.figures for passage in passages)}
    # A figure is found in any spelling of its number, other words in their own.
    found_figures = {*claim.figures} - wrong
    missing = [w for w in claim.words if w not in found_figures and not any(w in passage.words for passage in passages)]
    value = 1 - len(missing) / len(claim.words)
    if claim.figures:
        value *= 1 - (1 - WRONG_FIGURE) * len(wrong) / len({*claim.figures})
    # Nothing can be nearly the same sentence where so much is missing.
    opposite = _contradiction(claim, passages) if len(missing) <= 0.4 * len(claim.words) else None
    if opposite is not None:
        value = min(value, CONTRADICTED)
    return Support(claim, value, tuple(sorted({*missing, *wrong})), opposite)


def weighted(supports: Iterable[Support]) -> float:
    """The mean value of claims, each weighing as many content words as it has; at least one claim is needed."""
    rated = [(len(one.claim.words), one.value) for one in supports]
    return sum(weight * value for weight, value in rated) / sum(weight for weight, _ in rated)


def words(written: str) -> frozenset[str]:
    """A set of words, written as a text of them."""
    return frozenset(written.split())


def _contradiction(claim: Statement, passages: Sequence[Passage]) -> str | None:
    """The sentence that says nearly the same with the other sign, unless another says it with the same.

    Nearly: shared words / all words of both at least 0.6; a long sentence with a "not" elsewhere does not count.
    """
    if not claim.negates and not any(passage.negates for passage in passages):
        return None
    nearest, nearest_alike = None, 0.6
    for passage in passages:
        for statement in _statements(passage.text):
            shared = len(claim.words & statement.words)
            alike = shared / (len(claim.words) + len(statement.words) - shared)
            if alike > nearest_alike or (alike == nearest_alike and statement.negates == claim.negates):
                nearest, nearest_alike = statement, alike
    return nearest.text if nearest is not None and nearest.negates != claim.negates else None


def _readings(figure: str) -> frozenset[str]:
    """The numbers that a spelling may mean, in one form each: 3.50 is 3.5, 007 is 7, 1.000 is 1 or, in German, 1000."""
    whole, _, part = figure.partition(".")
    readings = {".".join(filter(None, (whole.lstrip("0") or "0", part.rstrip("0"))))}
    if _GROUPED.fullmatch(figure):
        readings.add(figure.replace(".", ""))
    return frozenset(readings)


_CITATION = re.compile(r"\[\^?\d{1,3}(?:[,;\s–-]+\d{1,3})*\]|【[^】\n]{1,80}】")
_FIGURE = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
_DIGITS = {word: str(value) for value, word in enumerate(_NUMBER_WORDS.split())}
_DIGIT_WORDS = frozenset(_DIGITS.values())
_NEGATIONS = words(
    """
    not no never none neither nor cannot without dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont
    wouldnt cant couldnt shouldnt mustnt
    nicht kein keine keinen keiner keinem nie niemals ohne
    ne pas aucun aucune jamais sans
    nunca ningún ninguna ninguno jamás sin
    안 못
    """
)
_NEGATED = re.compile(
    r"지 ?(?:않|못|말)|(?:이|가|수) 없|아니(?:다|며|고|라|었|ㅂ|에|요)|아닙|아닌"
    r"|ません|ない(?:$|[。、でとがのわ])|なかった|ではなく|不[能是会會会在可需要支得]|没有|沒有|[无無][法须須需]|未[曾能经經]"
)
