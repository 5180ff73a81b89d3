"""Whether an answer says yes or no to its question.

An opening yes or no decides, and so do assent and bare denial: "Of course", "Unfortunately not". Without one, what is
allowed or reported in place of what is asked says no: "Only by post" and "It is held in German". Then the part of the
answer decides that says what the question asks, or its opposite: "The canteen stays closed on Fridays" says no to "Is
it open on Fridays?". Of several such parts the one counts that shares most of the question's other words. Where none is
found, the part that shares most words decides by whether it denies. An answer that shares none and denies nothing says
neither yes nor no.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from pytest_rageval.language.opposites import ALLOWED, OPPOSITES, Opposites
from pytest_rageval.language.polarity_words import (
    CHINESE_NEGATIONS,
    CONTRASTS,
    JAPANESE_NEGATIONS,
    KOREAN_NEGATIONS,
    NEGATORS,
    NOT_DENYING_BEFORE,
)
from pytest_rageval.language.question_fit import has_most_of, shared_words
from pytest_rageval.language.restrictions import fails, is_exclusive, says_otherwise
from pytest_rageval.language.statements import MARKS, read


@lru_cache(maxsize=64)
def says_yes(answer: str, question: str) -> bool | None:
    """Return whether an answer says yes, None where it cannot be read."""
    stated = read(answer)
    if stated.opening.says_yes is None or stated.opening.is_plain:
        return stated.opening.says_yes
    parts = list(parts_of(stated.pieces))
    asked = asked_words(question)
    deciding = parts[:_DECIDING_PARTS]
    # Where a later part names what is asked for, it decides: "It is held in German. Mondays it is in English."
    if any(says_otherwise(part, asked) for part in deciding) and says_otherwise(" ".join(parts), asked):
        return any(denies(part) for part in deciding if says_otherwise(part, asked))
    if _excludes(deciding, question):
        return False
    by_opposites = _by_opposites(parts, question)
    if by_opposites is not None:
        return by_opposites
    # "Is the pool heated?": "It is unheated."
    denied = {f"un{word}" for word in asked.split() if len(word) >= _SHORTEST_WITH_UN}
    if any(not denied.isdisjoint(part.split()) for part in parts):
        return False
    best = max(parts, key=lambda part: len(shared_words(part, question)), default="")
    is_about_it = bool(shared_words(best, question))
    if not is_about_it:
        best = parts[0] if parts else ""
    if stated.opening.is_regret or denies(best) or fails(best, asked):
        return False
    if not is_about_it:
        # It may say either in words that no table has.
        return None if stated.opening.says_yes else False
    return ALLOWED.negative.search(best) is None


@lru_cache(maxsize=256)
def asked_words(question: str) -> str:
    """Return the words of a question without marks."""
    return " ".join(piece for piece in read(question).pieces if piece not in MARKS)


@lru_cache(maxsize=256)
def _content(question: str) -> str:
    """Return the words of a question without those that only ask whether it is so: allowed, available, free."""
    content = asked_words(question)
    for opposites in OPPOSITES:
        content = opposites.negative.sub(" ", opposites.positive.sub(" ", content))
    return content


def _excludes(parts: Sequence[str], question: str) -> bool:
    """Check whether a part allows only something else than the question asks for: only by post.

    Behind a part that says all that is asked, a restriction is of a detail: "in German only on Sundays".
    """
    content = _content(question)
    for part in parts:
        if has_most_of(part, content):
            return False
        if is_exclusive(part):
            return True
    return False


def _by_opposites(parts: Sequence[str], question: str) -> bool | None:
    """Return what an answer says of the pair of opposites that a question names; None if it says nothing of any."""
    for opposites, side in asked_sides(question):
        said = [(part, side_of(part, opposites)) for part in parts]
        telling = [(part, its_side) for part, its_side in said if its_side is not None]
        if telling:
            _, its_side = max(telling, key=lambda one: len(shared_words(one[0], _without(question, opposites))))
            return its_side is side
    return None


@lru_cache(maxsize=256)
def asked_sides(question: str) -> tuple[tuple[Opposites, bool], ...]:
    """Return each pair of opposites that a question names, and whether it asks for the positive side."""
    asked = asked_words(question)
    sides = [(opposites, side_of(asked, opposites)) for opposites in OPPOSITES]
    return tuple((opposites, side) for opposites, side in sides if side is not None)


def side_of(text: str, opposites: Opposites) -> bool | None:
    """Return whether a text says the positive side, None if it says neither."""
    negative = opposites.negative.search(text)
    positive = opposites.positive.search(text)
    if negative is not None and (positive is None or _is_first(negative.span(), positive.span())):
        return denies(text[: negative.start()] + " " + text[negative.end() :])
    if positive is not None:
        return not denies(text[: positive.start()] + " " + text[positive.end() :])
    return None


def _is_first(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Check that a span begins before another, or has it within: 불가능, 不可以."""
    begin, end = one
    other_begin, other_end = other
    if begin == other_begin:
        return end >= other_end
    return begin < other_begin


def denies(text: str) -> bool:
    """Check whether any word of a text denies."""
    for word, following in pairwise((*text.split(), "")):
        if word in NEGATORS or word in _MORE_NEGATORS:
            if following not in NOT_DENYING_BEFORE:
                return True
        elif "가" <= word[0] <= "힣":
            if word == "안" or any(negation in word for negation in KOREAN_NEGATIONS):
                return True
        else:
            negations = CHINESE_NEGATIONS if _HAN.match(word) else JAPANESE_NEGATIONS
            if any(negation in word for negation in negations):
                return True
    return False


def _without(question: str, opposites: Opposites) -> str:
    """Return a question without the words of the pair, which both sides have."""
    return opposites.negative.sub(" ", opposites.positive.sub(" ", asked_words(question)))


def parts_of(pieces: Sequence[str]) -> Iterator[str]:
    """Yield the parts of an answer between marks, contrasts and words that join."""
    part: list[str] = []
    for piece in (*pieces, *MARKS):
        if piece not in MARKS and piece not in CONTRASTS and piece not in _JOINING:
            part.append(piece)
            continue
        if part:
            yield " ".join(part)
        part = []


_JOINING = frozenset(
    (
        *("and", "so", "because", "therefore", "while", "whereas", "und", "also", "weil", "denn", "daher", "während"),
        *("et", "donc", "car", "parce", "y", "porque", "pues", "así"),
    )
)
_SHORTEST_WITH_UN = 4
_DECIDING_PARTS = 2
"""The first parts, which answer; what follows explains."""
_HAN = re.compile("[一-鿿]+$")
_MORE_NEGATORS = frozenset(("rien", "nada", "nichts", "non", "neednt", "mustnt", "havent"))
