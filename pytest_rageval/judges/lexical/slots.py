"""Which words of a sentence could others stand for, and what is around them?

A slot is a figure, a name, a word with an opposite or a unit, or whether a word is negated. Two sentences about the
same thing can be laid over one another by the words around their slots, and then compared slot by slot.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from pytest_rageval.judges.lexical.negation import CLAUSE_ENDS, NEGATIONS, REACH_OF_NOT, SOFTENERS, SUPPOSING, is_idle
from pytest_rageval.judges.lexical.number_words import DIGITS, is_figure, plain_figure, readings
from pytest_rageval.judges.lexical.opposites import one_spelling, sides
from pytest_rageval.judges.lexical.statements import ARTICLES, SMALL_WORDS, cleaned, has_particles, words_in

NOT = "¬"
"""Stands in a gap for any word that negates."""

START, END = "^", "$"
"""Anchors at the ends of a sentence."""

NEGATION = "negation of "
"""Begins the kind of a slot that says whether a word is negated."""

MOST_WORDS = 120
"""Content words of one sentence that are looked at; the rest of a page without a full stop is left alone."""

_REACH = 4
"""Content words on either side that make up a frame."""

_WIDEST_GAP = 3
"""Words between two anchors."""


class Slot(NamedTuple):
    """One exchangeable word.

    kind    "figure", "name", NEGATION and a word, or the axis that the word lies on
    values  what it says, in every spelling; two slots of a kind agree where they share one
    frame   the content words around it, marked by side
    said    as written
    """

    kind: str
    values: frozenset[str]
    frame: frozenset[str]
    said: str


@dataclass(frozen=True, slots=True)
class Outline:
    """A sentence by its slots.

    written   forms as first written
    gaps      what stands between two content words (anchors) near one another: forms, in order
    names     forms that are written as names
    content   forms of all content words
    negates   is there any negation, outright or softly (avoid, without)?
    """

    slots: Mapping[str, tuple[Slot, ...]]
    written: Mapping[str, str]
    gaps: Mapping[tuple[str, str], frozenset[tuple[str, ...]]]
    names: frozenset[str]
    content: frozenset[str]
    negates: bool


class _Word(NamedTuple):
    form: str
    written: str
    is_negated: bool
    is_small: bool
    is_first: bool
    """It begins a sentence, a list item or what follows a colon: a capital says nothing there."""
    follows_break: bool
    is_supposed: bool
    """It is in a clause that begins with "if": what is said there is not stated."""


# Sentences of the same chunks come up again and again; one that is read takes some 20 kB.
@lru_cache(maxsize=512)
def outline(sentence: str) -> Outline:
    """The sentence by its slots; the last 512 are remembered."""
    words, sequence, negates = _words(sentence)
    found: dict[str, list[Slot]] = {}
    for slot in _slots(words):
        found.setdefault(slot.kind, []).append(slot)
    names = frozenset([word.form for word in words if _is_capital(word) and not word.is_first])
    return Outline(
        {kind: tuple(slots) for kind, slots in found.items()},
        {word.form: word.written for word in reversed(words)},
        _gaps(sequence),
        names,
        frozenset([word.form for word in words if not word.is_small]),
        negates,
    )


def _words(sentence: str) -> tuple[list[_Word], list[str], bool]:
    """The words that may be slots or anchors; their forms in order with every negation; and whether there is any."""
    words: list[_Word] = []
    sequence: list[str] = []
    negates, reach, is_first, follows_break, is_supposed = False, 0, True, False, False
    written = _written(sentence)
    folds = ["", *map(str.casefold, written), ""]
    for at, token in enumerate(written):
        folded = folds[at + 1]
        if folded in NEGATIONS:
            if is_idle(folded, folds[at], folds[at + 2]):
                continue
            negates = True
            if not is_supposed:
                reach = REACH_OF_NOT
                sequence.append(NOT)
        elif folded in CLAUSE_ENDS:
            reach = 0
            is_supposed = folded in SUPPOSING or (is_supposed and folded.isalnum())
            is_first, follows_break = is_first or folded in ":—–", not folded.isalnum()
        elif folded not in ARTICLES:
            form = _form(folded)
            negates = negates or folded in SOFTENERS
            is_small = folded in SMALL_WORDS or folded in _SPEAKER
            if not is_small or sides(folded):
                words.append(_Word(form, token, reach > 0, is_small, is_first, follows_break, is_supposed))
                if not is_small:
                    sequence.append(form)
            reach -= 1
            is_first = follows_break = False
        if len(words) == MOST_WORDS:
            break
    return words, sequence, negates


def _written(sentence: str) -> list[str]:
    text = cleaned(_ADDRESS.sub(" ", sentence))
    return words_in(sentence) if has_particles(text) else _TOKEN.findall(text)


def _form(folded: str) -> str:
    if is_figure(folded):
        return plain_figure(folded)
    if folded in DIGITS:
        return DIGITS[folded]
    if (one := one_spelling(folded)) != folded:
        return one
    if not folded.isascii():
        folded = _MARKS.sub("", unicodedata.normalize("NFD", folded)) if folded[0] < "\u1100" else folded
    is_plural = len(folded) > 3 and folded.endswith("s") and not folded.endswith("ss")
    return folded[:-1] if is_plural else folded


def _slots(words: list[_Word]) -> Iterator[Slot]:
    capitals = sum(map(_is_capital, words))
    is_heading = len(words) > 3 and capitals > 0.6 * len(words)
    at = 0
    while at < len(words):
        word, end = words[at], at + 1
        if is_figure(word.form):
            yield Slot("figure", frozenset(readings(word.form)), _frame(words, at, end), word.written)
        for axis, side in sides(word.written.casefold()):
            yield Slot(axis, frozenset((side,)), _frame(words, at, end), word.written)
        if not (word.is_small or is_figure(word.form)):
            if not word.is_supposed:
                yield _sign(words, at)
            end = at + 1 if is_heading else _name_end(words, at)
            if end > at + 1 or (not is_heading and _is_name(word)):
                yield _name(words, at, end)
        at = end


def _sign(words: list[_Word], at: int) -> Slot:
    word = words[at]
    value, said = (NOT, f"not {word.written}") if word.is_negated else ("", word.written)
    return Slot(NEGATION + word.form, frozenset((value,)), _frame(words, at, at + 1), said)


def _name(words: list[_Word], at: int, end: int) -> Slot:
    parts = [word.form for word in words[at:end]]
    initials = ["".join(part[0] for part in parts)] if len(parts) > 1 else []
    said = " ".join(word.written for word in words[at:end])
    return Slot("name", frozenset(parts + initials), _frame(words, at, end), said)


def _name_end(words: list[_Word], at: int) -> int:
    end = at + 1
    if _is_capital(words[at]):
        while end < len(words) and _is_capital(words[end]) and not words[end].follows_break:
            end += 1
    return end


def _is_capital(word: _Word) -> bool:
    return word.written[:1].isupper() and word.written.isalpha() and not sides(word.written.casefold())


def _is_name(word: _Word) -> bool:
    return _is_capital(word) and len(word.written) > 1 and (not word.is_first or word.written.isupper())


def _frame(words: list[_Word], at: int, end: int) -> frozenset[str]:
    own = {word.form for word in words[at:end]}
    before = [f"<{word.form}" for word in words[max(0, at - _REACH) : at] if not word.is_small and word.form not in own]
    after = [f">{word.form}" for word in words[end : end + _REACH] if not word.is_small and word.form not in own]
    return frozenset(before + after)


def _gaps(sequence: list[str]) -> dict[tuple[str, str], frozenset[tuple[str, ...]]]:
    anchors = [START, *sequence, END]
    found: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for at, left in enumerate(anchors[:-1]):
        if left == NOT:
            continue
        for width in range(min(_WIDEST_GAP + 1, len(anchors) - at - 1)):
            right = anchors[at + width + 1]
            if right != NOT:
                found.setdefault((left, right), set()).add(tuple(anchors[at + 1 : at + width + 1]))
    return {ends: frozenset(between) for ends, between in found.items()}


_SPEAKER = frozenset(("i", "me", "my", "mine", "myself"))
_ADDRESS = re.compile(r"\b(?:https?://|www\.)[^\s()<>]{1,500}|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.]{1,64}")
_TOKEN = re.compile(r"(?:(?<![^\s(])-)?\d+(?:\.\d+)*|[^\W\d_][^\W_]*|\d+|[,;:()—–]")
_MARKS = re.compile(r"[\u0300-\u036f]")
