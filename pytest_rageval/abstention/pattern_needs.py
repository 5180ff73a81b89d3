"""What a text must have that a pattern matches: most patterns of a long list need not be tried on a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class PatternNeeds(NamedTuple):
    """What all texts have in common that a pattern matches.

    first_letters  the letters with which they begin; None if they may be any
    is_foreign     each holds a character beyond ASCII
    """

    first_letters: frozenset[str] | None
    is_foreign: bool

    def are_met(self, first_letter: str, *, is_ascii: bool) -> bool:
        """Return True if the pattern may match a text that begins with this letter."""
        if is_ascii and self.is_foreign:
            return False
        return self.first_letters is None or first_letter in self.first_letters


def needs_of(pattern: str) -> PatternNeeds:
    """Return what a text needs that a pattern matches.

    Reads the part of the syntax that lists of phrases use: letters, escapes, sets, groups without a name, lookarounds,
    repetitions and alternatives.

    >>> sorted(needs_of("(?:so |very )*(?:glad|happy) to help").first_letters)
    ['g', 'h', 's', 'v']
    >>> needs_of(".{0,20}(?:谢谢|感谢)")
    PatternNeeds(first_letters=None, is_foreign=True)
    """
    part = _Reader(pattern).alternatives()
    is_any = part.may_be_empty or _ANY in part.first_letters
    return PatternNeeds(None if is_any else part.first_letters, part.is_foreign)


class _Part(NamedTuple):
    """A part of a pattern."""

    first_letters: frozenset[str] = frozenset()
    may_be_empty: bool = False
    is_foreign: bool = False


_ANY = "any letter"
_NO_LETTER = _Part(may_be_empty=True)
_ANY_LETTER = _Part(frozenset({_ANY}))
_LETTERS = re.compile(r"[^\\()\[\]|?*+{}.^$]+(?![?*+{])")
"""Letters that stand for themselves, each once."""
_LOOKAROUND = re.compile(r"\(\?<?[=!]")
_SET = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]")
_REPETITION = re.compile(r"(?:[*+?]|\{[0-9,]+\})[?+]?")
_MAY_BE_NONE = ("*", "?", "{0", "{,")


class _Reader:
    """A pattern that is read from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def alternatives(self) -> _Part:
        """Read up to the end of a group, or of the pattern."""
        parts = [self._sequence()]
        while self._is_next("|"):
            self._at += 1
            parts.append(self._sequence())
        return _one_of(parts)

    def _sequence(self) -> _Part:
        first_letters: frozenset[str] = frozenset()
        may_be_empty = True
        is_foreign = False
        while self._at < len(self._pattern) and not (self._is_next("|") or self._is_next(")")):
            item = self._item()
            if may_be_empty:
                first_letters |= item.first_letters
                may_be_empty = item.may_be_empty
            is_foreign = is_foreign or item.is_foreign
        return _Part(first_letters, may_be_empty, is_foreign)

    def _item(self) -> _Part:
        """Read letters, or one thing with its repetition."""
        letters = _LETTERS.match(self._pattern, self._at)
        if letters is not None:
            self._at = letters.end()
            return _Part(frozenset({letters[0][0]}), is_foreign=not letters[0].isascii())
        item = self._single()
        repetition = _REPETITION.match(self._pattern, self._at)
        if repetition is None:
            return item
        self._at = repetition.end()
        if repetition[0].startswith(_MAY_BE_NONE):
            return _Part(item.first_letters, may_be_empty=True)
        return item

    def _single(self) -> _Part:
        if self._is_next("(?:"):
            return self._group(len("(?:"))
        lookaround = _LOOKAROUND.match(self._pattern, self._at)
        if lookaround is not None:
            self._group(len(lookaround[0]))
            return _NO_LETTER
        if self._is_next("("):
            raise ValueError(f"a group that is not read here, at {self._at} of the pattern {self._pattern!r}")
        letters = _SET.match(self._pattern, self._at)
        if letters is not None:
            self._at = letters.end()
            return _ANY_LETTER
        if self._is_next("\\"):
            self._at += len("\\b")
            return _escaped(self._pattern[self._at - 1])
        letter = self._pattern[self._at]
        self._at += 1
        if letter in "^$":
            return _NO_LETTER
        return _ANY_LETTER if letter == "." else _letter(letter)

    def _group(self, opening: int) -> _Part:
        """Read a group with an opening of so many characters."""
        self._at += opening
        part = self.alternatives()
        self._at += len(")")
        return part

    def _is_next(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)


def _letter(letter: str) -> _Part:
    return _Part(frozenset({letter}), is_foreign=not letter.isascii())


def _escaped(letter: str) -> _Part:
    if letter in "bB":
        return _NO_LETTER
    if letter.isalnum():  # a class of letters, such as \w
        return _ANY_LETTER
    return _letter(letter)


def _one_of(parts: Sequence[_Part]) -> _Part:
    first_letters: frozenset[str] = frozenset()
    for part in parts:
        first_letters |= part.first_letters
    return _Part(
        first_letters,
        may_be_empty=any(part.may_be_empty for part in parts),
        is_foreign=all(part.is_foreign for part in parts),
    )
