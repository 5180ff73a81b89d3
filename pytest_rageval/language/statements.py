"""What a text says, clause by clause, to look for a short gold answer in a long one.

A statement holds words with their inflections folded, quantities with their units, and whether each is denied or one of
several alternatives. Seven languages are read by the tables of `pytest_rageval.language.polarity_words`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice, pairwise

from pytest_rageval.language.negation import denied_places
from pytest_rageval.language.openings import AnswerOpening, read_opening
from pytest_rageval.language.polarity_words import (
    CHOICES,
    CONTRASTS,
    HEDGES,
    LIMITS,
)
from pytest_rageval.language.spelled_quantities import with_plain_spellings
from pytest_rageval.language.stated_quantities import (
    Quantity,
    is_undecided,
    quantities_at,
    with_choices,
    with_open_lists,
    with_sums,
)
from pytest_rageval.language.stated_words import (
    StatedWord,
    folded_word,
    parts_of_run,
    read_piece,
)
from pytest_rageval.language.words import normalise

LONGEST = 20_000
"""Characters of a text that are read."""
ROMAN_NUMERALS = {
    "ii": "2",
    "iii": "3",
    "iv": "4",
    "vi": "6",
    "vii": "7",
    "viii": "8",
    "ix": "9",
    "xi": "11",
    "xii": "12",
}
SENTENCE, CLAUSE, REMARK = "\x01", "\x02", "\x03"
"""Marks at the end of a sentence and of a clause, and before a parenthesis: `normalise` keeps them as words."""
MARKS = frozenset((SENTENCE, CLAUSE, REMARK))


@dataclass(frozen=True)
class Statement:
    """What a text says."""

    words: tuple[StatedWord, ...]
    quantities: tuple[Quantity, ...]
    runs: tuple[StatedWord, ...]
    """Runs of a script without spaces, such as Han."""
    text: str = field(repr=False, default="")
    pieces: tuple[str, ...] = field(repr=False, default=())
    """Words, figures, runs and marks in their order."""

    @cached_property
    def plain(self) -> str:
        """Return the words and figures without marks."""
        return " ".join(piece for piece in self.pieces if piece not in MARKS)

    @cached_property
    def opening(self) -> AnswerOpening:
        return read_opening(list(islice(_clauses(self.pieces), _CLAUSES_OF_AN_OPENING)))

    @cached_property
    def is_denying(self) -> bool:
        """Check whether any word stands behind a negation."""
        return any(word.is_denied for word in self.words)

    @cached_property
    def roman(self) -> frozenset[str]:
        """Return the figures that stand as Roman numerals: Article II."""
        return frozenset(ROMAN_NUMERALS[word.written] for word in self.words if word.written in ROMAN_NUMERALS)

    @cached_property
    def affirmed(self) -> frozenset[str]:
        return frozenset(word.form for word in self.words if not (word.is_denied or word.is_open))

    @cached_property
    def open(self) -> frozenset[str]:
        """Return the words that stand as alternatives only."""
        return frozenset(word.form for word in self.words if word.is_open) - self.affirmed

    @cached_property
    def denied(self) -> frozenset[str]:
        return frozenset(word.form for word in self.words if word.is_denied)

    @cached_property
    def joined(self) -> frozenset[str]:
        """Return each two neighbours as one word, to find one that is written apart or together."""
        return frozenset(left.written + right.written for left, right in pairwise(self.words))


@lru_cache(maxsize=64)
def read(text: str) -> Statement:
    """Read a text of any length; only its beginning counts in a very long one."""
    text = text[:LONGEST]
    marked = with_plain_spellings(text)
    # Each look for what must be there, at the full speed of a search for a set, saves a pattern that tries every place.
    has_digit = _ANY_DIGIT.search(marked) is not None
    if has_digit and _FIVE_DIGITS.search(marked) is not None:
        marked = _GLUED_YEAR.sub(r"\1 ", marked)
    if has_digit and _NOTE_OR_FIGURE.search(marked) is not None:
        marked = _GLUED_NOTE.sub(r" ", marked)
    # Marked before `normalise`, which drops punctuation.
    marked = _END_OF_CLAUSE.sub(_mark, marked)
    pieces = list(_pieces(normalise(marked)))
    words: list[StatedWord] = []
    quantities: list[Quantity] = []
    runs: list[StatedWord] = []
    for sentence in _sentences(pieces):
        earlier = len(quantities)
        ends: list[int] = []
        for clause in _clauses(sentence):
            read_clause(clause, words, quantities, runs)
            if ends and words and words[-1].is_open and is_undecided(sentence):
                _open_ends(words, ends)
            ends.append(len(words) - 1)
        if len(quantities) > earlier + 1:
            quantities[earlier:] = with_open_lists(sentence, quantities[earlier:])
    if has_digit and _FIVE_DIGITS.search(text) is not None:
        quantities.extend(Quantity(glued[1] + glued[2]) for glued in _GLUED_YEAR.finditer(text))
    if _CAPITAL_WITHIN.search(text) is not None:
        for joined in _JOINED_WORDS.finditer(text):
            parts = [part.lower() for part in joined.groups()]
            words.extend(StatedWord(folded_word(part), is_denied=False, written=part) for part in parts)
    return Statement(
        words=tuple(words),
        quantities=tuple(dict.fromkeys(quantities)),
        runs=tuple(runs),
        text=text,
        pieces=tuple(pieces),
    )


def _open_ends(words: list[StatedWord], ends: Sequence[int]) -> None:
    """Mark the last word of each earlier clause as one of several alternatives: it could be red, green or blue."""
    for at in ends:
        if at >= 0:
            words[at] = words[at]._replace(is_open=True)


def _mark(match: re.Match[str]) -> str:
    mark = SENTENCE
    if match["clause"] == "(":
        mark = REMARK
    elif match["clause"]:
        mark = CLAUSE
    return f" {mark} "


def _pieces(normal: str) -> Iterator[str]:
    """Yield words, marks, figures, and runs of scripts without spaces."""
    if normal.isascii():
        yield from normal.split()
        return
    for word in normal.split():
        if word.isascii():
            yield word
        else:
            yield from _PIECE.findall(word)


def _sentences(pieces: Sequence[str]) -> Iterator[Sequence[str]]:
    begin = 0
    for at, piece in enumerate(pieces):
        if piece == SENTENCE:
            yield pieces[begin:at]
            begin = at + 1
    yield pieces[begin:]


def _clauses(pieces: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words between two marks; a contrast begins a clause of its own."""
    clause: list[str] = []
    for piece in pieces:
        if piece in MARKS or piece in CONTRASTS:
            if clause:
                yield clause
            clause = []
        else:
            clause.append(piece)
    if clause:
        yield clause


def read_clause(clause: list[str], words: list[StatedWord], quantities: list[Quantity], runs: list[StatedWord]) -> None:
    """Add what a clause says to the lists."""
    read_pieces = [read_piece(piece) for piece in clause]
    denied = denied_places(clause)
    found: list[tuple[int, Quantity]] = []
    choices = _places_of_choices(clause)
    is_behind_figure = False
    for at, piece in enumerate(read_pieces):
        if piece.is_figure:
            is_denied = denied[at] and not _is_limit(clause, at)
            found.extend((at, quantity) for quantity in quantities_at(clause, at, is_denied=is_denied))
        elif piece.is_run:
            runs.extend(parts_of_run(clause[at]))
        elif piece.bare and not (is_behind_figure and piece.bare in _ORDINAL_ENDINGS):
            is_open = bool(choices) and any(abs(place - at) <= _NEAR_A_CHOICE for place in choices)
            words.append(StatedWord(piece.form, denied[at], piece.bare, is_open))
        is_behind_figure = piece.is_figure
    if found:
        quantities.extend(with_choices(clause, with_sums(clause, found)))


def _places_of_choices(clause: list[str]) -> list[int]:
    """Return the places of each "or" with a word on both sides; in a long clause it joins something else."""
    if CHOICES.isdisjoint(clause):
        return []
    if len(clause) > _CLAUSE_OF_ALTERNATIVES and HEDGES.isdisjoint(clause):
        return []
    last = len(clause) - 1
    return [at for at, piece in enumerate(clause) if piece in CHOICES and 0 < at < last]


def _is_limit(clause: list[str], at: int) -> bool:
    """Check for the limit of what is denied, which holds itself: no child under 9 may enter, not before 10."""
    return at > 0 and clause[at - 1] in LIMITS


_END_OF_CLAUSE = re.compile(
    r"""
    (?=[.!?…。！？｡\n,;、，；:\s"“”„«»()「」『』])  # soon no
    (?:(?P<sentence>
        (?<!(?<![0-9])[\s.][A-Za-z])(?<!\b(?:[DMS][rst]|vs))(?<!\bNo(?=\.\s?[0-9]))[.]{1,3}(?=["'”’)\]]{0,3}(?:\s+[^\sa-z]|\s*$))(?<!(?<![0-9]{3})[0-9]\.(?=\s[A-ZÄÖÜa-z]))
        | [!?…]+ | [。！？｡] | \n+
    )
    | (?P<clause>
        (?<![0-9]),(?=\s) | (?<=[0-9]),(?=\s[^0-9]) | [;、，；] | :(?=\s) | \s[–—-]\s
        | ["“”„«»()「」『』]
    ))
    """,
    re.VERBOSE,
)
_ANY_DIGIT = re.compile("[0-9⁰¹²³⁴-⁹]")
_FIVE_DIGITS = re.compile("[12][0-9]{4}")
_NOTE_OR_FIGURE = re.compile("[a-zß-ÿ0-9][0-9⁰¹²³⁴-⁹]")
_CAPITAL_WITHIN = re.compile("[a-z][A-Z][a-z]")
_GLUED_YEAR = re.compile(r"(?<![\d.,])([12][0-9]{3})([0-9]{1,2})(?=\.(?:\s|$))")
_GLUED_NOTE = re.compile(
    r"(?<=[a-zß-ÿ]{3})[0-9]{1,2}(?=\.(?:\s|$))|(?<=[a-zß-ÿ]{3})(?=[0-9]+\s)|(?<=[0-9]{4})[⁰¹²³⁴-⁹]+"
)
"""A note's number behind a word: Holt1."""
_JOINED_WORDS = re.compile(r"\b([A-Z]?[a-z]{2,})([A-Z][a-z]{2,})\b")
_PIECE = re.compile(
    r"[0-9<>≤≥≠≈±$€£¥₩₹₽₺₫฿₴₪.,:/%‰°′+^-]*[0-9][0-9a-z.,:/%‰°′+^-]*|[가-힣]+|[぀-ヿ一-鿿々]+|[^\s가-힣぀-ヿ一-鿿々]+"
)
_ORDINAL_ENDINGS = frozenset(("st", "nd", "rd", "th"))
_NEAR_A_CHOICE = 2
_CLAUSE_OF_ALTERNATIVES = 5
_CLAUSES_OF_AN_OPENING = 4
