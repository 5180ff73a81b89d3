"""Whether an answer says yes or no to its question.

An opening yes or no decides. Without one, the part of the answer decides that says what the question asks, or its
opposite: "The canteen stays closed on Fridays" says no to "Is it open on Fridays?". Of several such parts the one
counts that shares most of the question's other words. Where none is found, the part that shares most words decides by
whether it denies.
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
from pytest_rageval.language.question_fit import shared_words
from pytest_rageval.language.statements import MARKS, read


@lru_cache(maxsize=64)
def says_yes(answer: str, question: str) -> bool | None:
    """Return whether an answer says yes, None for one without words."""
    stated = read(answer)
    if stated.answers_yes is None:
        return None
    if stated.is_plain:
        return stated.answers_yes
    parts = list(_parts(stated.pieces))
    asked = " ".join(piece for piece in read(question).pieces if piece not in MARKS)
    for opposites in OPPOSITES:
        side = _side(asked, opposites)
        if side is None:
            continue
        said = [(part, _side(part, opposites)) for part in parts]
        telling = [(part, its_side) for part, its_side in said if its_side is not None]
        if telling:
            _, its_side = max(telling, key=lambda one: len(shared_words(one[0], _without(question, opposites))))
            return its_side is side
    # "Is the pool heated?": "It is unheated."
    denied = {f"un{word}" for word in asked.split() if len(word) >= _SHORTEST_WITH_UN}
    if any(not denied.isdisjoint(part.split()) for part in parts):
        return False
    best = max(parts, key=lambda part: len(shared_words(part, question)), default="")
    if not shared_words(best, question):
        return stated.answers_yes
    return not (_denies(best) or ALLOWED.negative.search(best) is not None)


def _side(text: str, opposites: Opposites) -> bool | None:
    """Return whether a text says the positive side, None if it says neither."""
    negative = opposites.negative.search(text)
    positive = opposites.positive.search(text)
    if negative is not None and (positive is None or _is_first(negative.span(), positive.span())):
        return _denies(text[: negative.start()] + " " + text[negative.end() :])
    if positive is not None:
        return not _denies(text[: positive.start()] + " " + text[positive.end() :])
    return None


def _is_first(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Check that a span begins before another, or has it within: 불가능, 不可以."""
    begin, end = one
    other_begin, other_end = other
    if begin == other_begin:
        return end >= other_end
    return begin < other_begin


def _denies(text: str) -> bool:
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
    asked = " ".join(piece for piece in read(question).pieces if piece not in MARKS)
    return opposites.negative.sub(" ", opposites.positive.sub(" ", asked))


def _parts(pieces: Sequence[str]) -> Iterator[str]:
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
_HAN = re.compile("[一-鿿]+$")
_MORE_NEGATORS = frozenset(("rien", "nada", "nichts", "non", "neednt", "mustnt", "havent"))
