"""Aligned columns for a terminal, by the width of characters, not by their number."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, chop_cells, set_cell_size

LEAST = 10
"""Minimum width of a wrapped text, even in a narrower terminal."""


def aligned(rows: Sequence[Sequence[str]], *, indent: str = "", to_the_left: bool = False) -> list[str]:
    """Return rows as lines: the first column (or all) to the left, the others to the right, two spaces between."""
    widths = [max((cell_len(row[column]) for row in rows), default=0) for column in range(len(rows[0]) if rows else 0)]
    return [
        (
            indent
            + "  ".join(_cell(text, widths[column], column > 0 and not to_the_left) for column, text in enumerate(row))
        ).rstrip()
        for row in rows
    ]


def last_wrapped(rows: Sequence[Sequence[str]], width: int, *, indent: str = "") -> list[str]:
    """Return rows as lines, the last column wrapped to the width, of at least `LEAST` columns.

    Further lines of a table with one column are indented.
    """
    *names, last = zip(*rows, strict=True)
    hanging = "" if names else "  "
    room = width - len(indent) - sum(max(map(cell_len, column)) + 2 for column in names) - len(hanging)
    lines: list[Sequence[str]] = []
    for row, text in zip(zip(*names, strict=True) if names else [()] * len(last), last, strict=True):
        first, *others = wrapped(text, max(room, LEAST))
        lines += [(*row, first), *((*[""] * len(row), hanging + line) for line in others)]
    return aligned(lines, indent=indent, to_the_left=True)


def blocks(rows: Sequence[Sequence[str]], width: int) -> list[list[list[str]]]:
    """Cut the rows of a table into tables within a width: each has the first column and at least one more."""
    widths = [max(cell_len(row[column]) for row in rows) + 2 for column in range(len(rows[0]))]
    groups: list[list[int]] = [[]]
    for column in range(1, len(widths)):
        if groups[-1] and widths[0] - 2 + sum(widths[each] for each in (*groups[-1], column)) > width:
            groups.append([])
        groups[-1].append(column)
    return [[[row[0], *(row[column] for column in group)] for row in rows] for group in groups]


def _cell(text: str, width: int, to_the_right: bool) -> str:
    fill = " " * (width - cell_len(text))
    return fill + text if to_the_right else text + fill


def shortened(text: str, width: int) -> str:
    """Return the text on one line within a width, with … where it is cut."""
    line = " ".join(text.split())
    return line if cell_len(line) <= width else set_cell_size(line, width - 1).rstrip() + "…"


def wrapped(text: str, width: int) -> list[str]:
    """Wrap the text to a width, between words, and inside words that are wider themselves."""
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        line = ""
        for word in paragraph.split(" "):
            if line and cell_len(line) + 1 + cell_len(word) <= width:
                line = f"{line} {word}"
                continue
            lines += [line] if line else []
            *whole, line = chop_cells(word, width) or [""]
            lines += whole
        lines.append(line)
    return lines
