"""The difference of two texts by words, which are single characters in Han and kana."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import compress, count
from operator import ne
from typing import Literal, NamedTuple

Kind = Literal["same", "gone", "new"]
MOST_WORDS = 1500
"""Words of a text that are compared: the time grows with the product of both."""
_SINGLE = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_ASCII = map(chr, range(128))
_ASCII_LETTERS = "".join(sign.lower() if sign.isalnum() else " " for sign in _ASCII).encode().ljust(256)
"""A table for `bytes.translate`: letters and digits in lower case, all else as a space."""


class DiffPiece(NamedTuple):
    """A part of either text, or of both."""

    kind: Kind
    text: str


def word_diff(before: str, after: str) -> list[DiffPiece]:
    """Return both texts as one: words in both, gone and new. Words beyond the limit are compared as one."""
    return list(_pieces(_words(before), _words(after)))


def marked_diff(before: str, after: str) -> Sequence[DiffPiece]:
    """Return both texts as one if at least half of their words are shared, else ().

    Marks in texts that have little in common are harder to read than both texts.
    """
    words_before = word_set(before)
    words_after = word_set(after)
    shared = len(words_before & words_after)
    if 2 * shared < max(len(words_before), len(words_after), 1):
        return ()
    return word_diff(before, after)


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, without punctuation."""
    if text.isascii():  # a tenth of the time
        return frozenset(text.encode().translate(_ASCII_LETTERS).decode().split())
    return frozenset(_letters().findall(text.lower()))


# Compiled when two texts are compared: patterns with so many letters cost a run of one case as much as ten modules.
@cache
def _word() -> re.Pattern[str]:
    # Han and kana are written without spaces: each character is a word. White space belongs to the word before it.
    return re.compile(rf"(?:[{_SINGLE}]|[^\W{_SINGLE}]+|[^\w\s]|\A)\s*")


@cache
def _letters() -> re.Pattern[str]:
    return re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+")


def _words(text: str) -> list[str]:
    if not text:
        return []
    words = _word().findall(text)
    if len(words) <= MOST_WORDS:
        return words
    rest = "".join(words[MOST_WORDS:])
    return [*words[:MOST_WORDS], rest]


def _pieces(before: list[str], after: list[str]) -> Iterator[DiffPiece]:
    # Words are compared without the space after them: a line break is no change.
    bare_before = [word.strip() for word in before]
    bare_after = [word.strip() for word in after]
    head = _shared(bare_before, bare_after)
    tail = _shared(bare_before[head:][::-1], bare_after[head:][::-1])
    end_before = len(before) - tail
    end_after = len(after) - tail
    if head:
        yield DiffPiece("same", "".join(after[:head]))
    for tag, i, j, m, n in _opcodes(bare_before[head:end_before], bare_after[head:end_after]):
        if tag == "equal":
            yield DiffPiece("same", "".join(after[head + m : head + n]))
            continue
        if i < j:
            yield DiffPiece("gone", "".join(before[head + i : head + j]))
        if m < n:
            yield DiffPiece("new", "".join(after[head + m : head + n]))
    if tail:
        yield DiffPiece("same", "".join(after[end_after:]))


def _opcodes(before: Sequence[str], after: Sequence[str]) -> Iterable[tuple[str, int, int, int, int]]:
    """Return the operations that turn one list into the other; lists without a common word are not matched."""
    if not before and not after:
        return []
    if set(before).isdisjoint(after):
        return [("replace", 0, len(before), 0, len(after))]
    return SequenceMatcher(None, before, after, autojunk=False).get_opcodes()


def _shared(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many words both begin with: equal ends, the usual case, need no matching."""
    # itertools walk the words in C: a report compares the texts of each of its cases.
    different = compress(count(), map(ne, before, after))
    return next(different, min(len(before), len(after)))
