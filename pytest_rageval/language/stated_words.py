"""Words of a statement: their inflections folded, and the parts of runs of a script without spaces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from pytest_rageval.language.korean import without_particles
from pytest_rageval.language.polarity_words import (
    CHINESE_CONTRASTS,
    CHINESE_NEGATIONS,
    GRAMMAR,
    JAPANESE_NEGATIONS,
    KOREAN_NEGATIONS,
    NEGATORS,
)
from pytest_rageval.language.stated_quantities import FIGURE
from pytest_rageval.language.words import STOP_WORDS


class StatedWord(NamedTuple):
    """A word with its inflection folded."""

    form: str
    is_denied: bool
    written: str
    is_open: bool = False
    """Whether it stands beside an "or" in a clause that does not decide."""


class ClausePiece(NamedTuple):
    """What a piece of a clause is, wherever it stands.

    bare      a word without particles; '' for a word of grammar, a figure or a run
    form      the word with its inflection folded
    may_deny  whether it may deny its neighbours
    """

    is_figure: bool
    is_run: bool
    bare: str
    form: str
    may_deny: bool


@lru_cache(maxsize=8192)  # the words of one text stand in many others, and reading one takes four patterns
def read_piece(piece: str) -> ClausePiece:
    is_run = UNSPACED_RUN.match(piece) is not None
    may_deny = is_run or piece in NEGATORS or piece == "non"
    if is_korean(piece):
        may_deny = may_deny or any(negation in piece for negation in KOREAN_NEGATIONS)
    if FIGURE.fullmatch(piece):
        return ClausePiece(is_figure=True, is_run=is_run, bare="", form="", may_deny=may_deny)
    bare = "" if is_run or piece in _GRAMMAR else _bare(piece)
    if bare in _GRAMMAR:
        bare = ""
    return ClausePiece(is_figure=False, is_run=is_run, bare=bare, form=folded_word(bare), may_deny=may_deny)


@lru_cache(maxsize=4096)
def folded_word(word: str) -> str:
    """Fold the inflection of a word: years and year, tested and testing, marks of accents."""
    if not word.isascii():
        # Marks are dropped if only Latin letters remain: a dakuten makes another kana.
        decomposed = unicodedata.normalize("NFKD", word)
        bare = "".join(character for character in decomposed if not unicodedata.combining(character))
        if bare.isascii():
            word = bare
    if not word.isascii() or len(word) <= _SHORTEST_STEMMED:
        return word
    # Crude beside a stemmer, but the same on both sides, and without a dictionary for seven languages.
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: len(word) - len(ending)] + instead
    return word


def are_alike(word: str, other: str) -> bool:
    """Check whether two words are equal or have the same beginning, as forms of one word do."""
    if word == other:
        return True
    if word[0] != other[0]:
        return False
    if min(len(word), len(other)) < _SHORTEST_ALIKE:
        return False
    if abs(len(word) - len(other)) > _MOST_ENDING:
        return False
    beginning = max(_SHORTEST_ALIKE, len(word) - 2)
    return word[:beginning] == other[:beginning]


def has_alike(word: str, others: Iterable[str]) -> bool:
    """Check whether any other word is alike."""
    # Most differ in the first letter, and need no call.
    first = word[:1]
    return any(other[:1] == first and are_alike(word, other) for other in others)


def _bare(piece: str) -> str:
    """Return a Korean word without its particles, a city without its kind, any other word as it is."""
    if not piece or not is_korean(piece):
        return piece
    word = without_particles(piece)
    for kind in _KOREAN_KINDS_OF_PLACES:
        if word.endswith(kind) and len(word) > len(kind) + 1:
            return word.removesuffix(kind)
    return word


def parts_of_run(run: str) -> Iterator[StatedWord]:
    """Yield the affirmed and denied parts of a run of Han or kana."""
    for negation in JAPANESE_NEGATIONS:  # behind what it denies
        if negation in run:
            denied, _, rest = run.partition(negation)
            yield StatedWord(denied, is_denied=True, written=denied)
            if rest:
                yield from parts_of_run(rest)
            return
    negations = CHINESE_NEGATIONS if KANA.search(run) is None else ()
    for negation in negations:  # before what it denies
        if negation in run:
            affirmed, _, behind = run.partition(negation)
            if affirmed:
                yield StatedWord(affirmed, is_denied=False, written=affirmed)
            denied, rest = _parted_at_contrast(behind)
            if denied:
                yield StatedWord(denied, is_denied=True, written=denied)
            if rest:
                yield from parts_of_run(rest)
            return
    yield StatedWord(run, is_denied=False, written=run)


def _parted_at_contrast(run: str) -> tuple[str, str]:
    """Return what stands before and behind a Chinese contrast, which ends a denial."""
    for contrast in CHINESE_CONTRASTS:
        if contrast in run:
            before, _, behind = run.partition(contrast)
            return before, behind
    return run, ""


def is_korean(piece: str) -> bool:
    return "가" <= piece[0] <= "힣"


_KOREAN_KINDS_OF_PLACES = ("특별시", "광역시", "특별자치시", "특별자치도")
UNSPACED_RUN = re.compile("[぀-ヿ一-鿿々]")
KANA = re.compile("[぀-ヿ]")
_GRAMMAR = (STOP_WORDS | GRAMMAR) - NEGATORS
# "Gas" and "his" end in no plural, and "sing" is not "s" with an ending.
_SHORTEST_STEMMED = 3
_SHORTEST_STEM = 3
# Shorter words that begin alike are others: "form" and "fork".
_SHORTEST_ALIKE = 5
_MOST_ENDING = 4
_ENDINGS = (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("ly", ""))
