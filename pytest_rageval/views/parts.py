"""Parts of every view: lines, tables, facts and folds of formatted text, each with its tone.

A view is a frozen dataclass of sections, in the order in which they are shown. Nothing in it is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

from pytest_rageval.comparison.verdict_sentence import VerdictTone

Tone = Literal["better", "worse", "doubtful", "plain", "strong"]
TONES: Mapping[VerdictTone, Tone] = {"red": "worse", "amber": "doubtful", "green": "better", "grey": "plain"}
"""Tones of a verdict."""


class Line(NamedTuple):
    """A sentence: the title of a view, a remark on it, a point of a list, a detail below a line, or a line."""

    text: str
    tone: Tone = "plain"
    form: Literal["line", "title", "remark", "point", "detail"] = "line"


class TableRow(NamedTuple):
    """A row of a table; `note` follows below it."""

    cells: tuple[str, ...]
    tone: Tone = "plain"
    note: str = ""


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Rows of formatted cells: names in the first column, figures in the others.

    title, what   of the table, and of its rows in `and 3 more metrics`
    has_verdicts  the last column holds verdicts in words
    has_texts     all columns hold texts of cases, systems or settings
    least         columns shown side by side even without room, the others follow in words; None if columns without
                  room follow in a table below
    most          rows that a face with little room shows
    """

    heads: tuple[str, ...]
    rows: tuple[TableRow, ...]
    title: str = ""
    what: str = ""
    has_verdicts: bool = False
    has_texts: bool = False
    least: int | None = None
    most: int | None = None


class LabelledText(NamedTuple):
    """A labelled fact: our words, a quoted text, or both."""

    label: str
    words: str
    quoted: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.words, self.quoted)))


class NameList(NamedTuple):
    """Names under a title that counts them."""

    title: str
    names: tuple[str, ...]
    tone: Tone = "plain"


class Fold(NamedTuple):
    """A case with its facts. `reasons`: why it fails; `table`: more than the facts, if there is room."""

    title: str
    reasons: tuple[str, ...]
    facts: tuple[LabelledText, ...]
    table: FigureTable | None = None


class FoldList(NamedTuple):
    """Cases under a title. `most`: those that a face with little room shows; `elsewhere`: where the others are."""

    title: str
    tone: Tone
    folds: tuple[Fold, ...]
    most: int
    elsewhere: str = ""


Block = Line | FigureTable | LabelledText | NameList | FoldList
Section = tuple[Block, ...]


def sections_of(view: Any) -> Iterator[Section]:
    """Yield the sections of a view that are not empty."""
    return filter(None, (getattr(view, field.name) for field in fields(view)))
