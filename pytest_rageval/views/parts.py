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
    """A row of a table."""

    cells: tuple[str, ...]
    tone: Tone = "plain"
    note: str = ""
    """A remark that follows below the row."""


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Rows of formatted cells: names in the first column, figures in the others."""

    heads: tuple[str, ...]
    rows: tuple[TableRow, ...]
    title: str = ""
    what: str = ""
    """The noun for its rows in `and 3 more metrics`."""
    has_verdicts: bool = False
    """The last column holds verdicts in words."""
    has_texts: bool = False
    """All columns hold texts of cases, systems or settings."""
    least: int | None = None
    """The columns shown side by side even without room, the others follow in words; None if columns without room
    follow in a table below."""
    most: int | None = None
    """The rows that a face with little room shows."""


class LabelledText(NamedTuple):
    """A labelled fact."""

    label: str
    words: str
    """Words of ours; '' if the fact is a text alone."""
    quoted: str = ""
    """A text of a case or a system."""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.words, self.quoted)))


class NameList(NamedTuple):
    """Names under a title that counts them."""

    title: str
    names: tuple[str, ...]
    tone: Tone = "plain"


class Fold(NamedTuple):
    """A case with its facts."""

    title: str
    reasons: tuple[str, ...]
    """Why the case fails."""
    facts: tuple[LabelledText, ...]
    table: FigureTable | None = None
    """More than the facts, for a face with room."""


class FoldList(NamedTuple):
    """Cases under a title."""

    title: str
    tone: Tone
    folds: tuple[Fold, ...]
    most: int
    """The cases that a face with little room shows."""
    elsewhere: str = ""
    """Where the other cases are."""


Block = Line | FigureTable | LabelledText | NameList | FoldList
Section = tuple[Block, ...]


def sections_of(view: Any) -> Iterator[Section]:
    """Yield the sections of a view that are not empty."""
    return filter(None, (getattr(view, field.name) for field in fields(view)))
