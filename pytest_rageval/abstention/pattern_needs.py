"""What a text must have that a pattern matches: most patterns of a long list need not be tried on a text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

READ = 2
"""Characters of a beginning: two tell most patterns of a list apart."""
ANY = "\0"
"""Stands for any character in a beginning."""


class PatternNeeds(NamedTuple):
    """What all texts have in common that a pattern matches.

    beginnings  their first characters, `READ` at most; '' if there may be none
    is_foreign  each holds a character beyond ASCII
    """

    beginnings: frozenset[str]
    is_foreign: bool

    def are_met(self, beginning: str, *, is_ascii: bool) -> bool:
        """Return True if the pattern may match a text that begins so."""
        if is_ascii and self.is_foreign:
            return False
        return any(_agrees(needed, beginning) for needed in self.beginnings)


def _agrees(needed: str, beginning: str) -> bool:
    if len(needed) > len(beginning):
        return False
    return all(one in (ANY, other) for one, other in zip(needed, beginning, strict=False))


def needs_of(pattern: str) -> PatternNeeds:
    """Return what a text needs that a pattern matches.

    Reads the part of the syntax that lists of phrases use: letters, escapes, sets, groups without a name, lookarounds,
    repetitions and alternatives.

    >>> sorted(needs_of("(?:so |very )?(?:glad|happy) to help").beginnings)
    ['gl', 'ha', 'so', 've']
    >>> needs_of("(?:再次)?(?:谢谢|感谢)").is_foreign
    True
    """
    return _Reader(pattern).alternatives()


_EMPTY = frozenset({""})
_NOTHING = PatternNeeds(_EMPTY, is_foreign=False)
_ANY_LETTER = PatternNeeds(frozenset({ANY}), is_foreign=False)
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

    def alternatives(self) -> PatternNeeds:
        """Read up to the end of a group, or of the pattern."""
        sequence = self._sequence()
        beginnings = sequence.beginnings
        is_foreign = sequence.is_foreign
        while self._is_next("|"):
            self._at += 1
            sequence = self._sequence()
            beginnings |= sequence.beginnings
            # One alternative in ASCII is enough for a text in ASCII.
            is_foreign = is_foreign and sequence.is_foreign
        return PatternNeeds(beginnings, is_foreign)

    def _sequence(self) -> PatternNeeds:
        beginnings = _EMPTY
        is_foreign = False
        while self._at < len(self._pattern) and not (self._is_next("|") or self._is_next(")")):
            item = self._item()
            beginnings = _followed(beginnings, item.beginnings)
            is_foreign = is_foreign or item.is_foreign
        return PatternNeeds(beginnings, is_foreign)

    def _item(self) -> PatternNeeds:
        """Read letters, or one thing with its repetition."""
        letters = _LETTERS.match(self._pattern, self._at)
        if letters is not None:
            self._at = letters.end()
            return _written(letters[0])
        item = self._single()
        repetition = _REPETITION.match(self._pattern, self._at)
        if repetition is None:
            return item
        self._at = repetition.end()
        beginnings = item.beginnings
        # Repeated, the item may follow itself within the beginning.
        if not repetition[0].startswith("?"):
            beginnings |= _followed(beginnings, beginnings)
        if repetition[0].startswith(_MAY_BE_NONE):
            return PatternNeeds(beginnings | _EMPTY, is_foreign=False)
        return PatternNeeds(beginnings, item.is_foreign)

    def _single(self) -> PatternNeeds:
        if self._is_next("(?:"):
            return self._group(len("(?:"))
        lookaround = _LOOKAROUND.match(self._pattern, self._at)
        if lookaround is not None:
            # A lookaround takes no characters: it says nothing of the beginning.
            self._group(len(lookaround[0]))
            return _NOTHING
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
            return _NOTHING
        return _ANY_LETTER if letter == "." else _written(letter)

    def _group(self, opening: int) -> PatternNeeds:
        """Read a group with an opening of so many characters."""
        self._at += opening
        part = self.alternatives()
        self._at += len(")")
        return part

    def _is_next(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)


def _written(letters: str) -> PatternNeeds:
    return PatternNeeds(frozenset({letters[:READ]}), is_foreign=not letters.isascii())


def _escaped(letter: str) -> PatternNeeds:
    if letter in "bB":
        return _NOTHING
    if letter.isalnum():  # a class of letters, such as \w
        return _ANY_LETTER
    return _written(letter)


def _followed(beginnings: frozenset[str], following: Iterable[str]) -> frozenset[str]:
    """Return the beginnings of texts that consist of two parts."""
    joined: set[str] = set()
    for beginning in beginnings:
        if len(beginning) == READ:
            joined.add(beginning)
        else:
            joined.update((beginning + other)[:READ] for other in following)
    return frozenset(joined)
