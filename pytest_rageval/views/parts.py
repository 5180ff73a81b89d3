"""Parts of every view: lines and tables of formatted figures, with the tone in which they are meant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pytest_rageval.comparison.verdict_sentence import VerdictTone

Tone = Literal["better", "worse", "doubtful", "plain", "strong"]
TONES: Mapping[VerdictTone, Tone] = {"red": "worse", "amber": "doubtful", "green": "better", "grey": "plain"}
"""How a verdict is to be taken."""


class Line(NamedTuple):
    """A sentence."""

    text: str
    tone: Tone = "plain"


class TableRow(NamedTuple):
    """A row of a table; `note` stands below it."""

    cells: tuple[str, ...]
    tone: Tone = "plain"
    note: str = ""


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Rows of formatted cells: names in the first column, figures in the others.

    what          the rows, in `and 3 more metrics`
    has_verdicts  the last column holds verdicts in words
    least         columns that stand side by side however narrow the face is, the others follow in words; None if
                  columns without room stand in a table below
    """

    heads: tuple[str, ...]
    rows: tuple[TableRow, ...]
    what: str = ""
    has_verdicts: bool = False
    least: int | None = None
