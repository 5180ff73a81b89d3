"""Text laid out in terminal cells: what steers a terminal made visible, wide characters counted as two."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from pytest_rageval.text import printable

LONGEST_LINE = 200_000
"""Characters of one source line that are laid out; more are counted, not shown."""


class Segment(NamedTuple):
    """One row of a laid-out text: what is shown, and where it stands in the text."""

    shown: str
    start: int
    end: int


def clean(text: str) -> str:
    """One line that a terminal shows as it is: line ends as spaces, what cannot be seen escaped."""
    return printable(" ".join(text.split()))


def fitted(text: str, width: int) -> str:
    """Exactly so many cells: cut with an ellipsis, or filled with spaces."""
    if cell_len(text) > width:
        text = set_cell_size(text, max(0, width - 1)).rstrip(" ") + "…" if width > 0 else ""
    return set_cell_size(text, width)


def fitted_end(text: str, width: int) -> str:
    """As `fitted`, but the end of the text stays: of a path it tells more."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    kept = text
    while kept and cell_len(kept) > width - 1:
        kept = kept[1:]
    return set_cell_size(f"…{kept}", width)


@lru_cache(maxsize=64)
def laid_out(text: str, width: int) -> tuple[Segment, ...]:
    """A text as rows of at most so many cells, cut between words where there are some."""
    rows: list[Segment] = []
    start = 0
    for line in text.split("\n"):
        rows.extend(_rows(line[:LONGEST_LINE], start, max(2, width)))
        start += len(line) + 1
    return tuple(rows)


def _rows(line: str, offset: int, width: int) -> Iterator[Segment]:
    begin = at = cells = 0
    space = -1
    shown: list[str] = []
    while at < len(line):
        piece = _piece(line[at])
        size = len(piece) if piece.isascii() else cell_len(piece)
        if cells + size > width and at > begin:
            end = space + 1 if space >= begin else at
            yield Segment("".join(shown[: end - begin]), offset + begin, offset + end)
            begin = at = end
            cells, space, shown = 0, -1, []
            continue
        if line[at] == " ":
            space = at
        shown.append(piece)
        cells += size
        at += 1
    yield Segment("".join(shown), offset + begin, offset + len(line))


@lru_cache(maxsize=4096)
def _piece(character: str) -> str:
    return "    " if character == "\t" else printable(character)
