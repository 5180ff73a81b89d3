"""Aligned columns for a terminal, by the width of characters, not by their number."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, chop_cells, set_cell_size

LEAST = 10
"""Minimum width of a wrapped text, even in a narrower terminal."""


def aligned(rows: Sequence[Sequence[str]], *, indent: str = "", to_the_left: bool = False) -> list[str]:
    """Return rows as lines: the first column (or all) to the left, the others to the right, two spaces between."""
    if not rows:
        return []
    widths = column_widths(rows)
    lines = []
    for row in rows:
        cells = []
        for column, text in enumerate(row):
            is_to_the_right = column > 0 and not to_the_left
            cells.append(_cell(text, widths[column], is_to_the_right))
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of the widest cell of each column."""
    columns = range(len(rows[0]))
    return [max(cell_len(row[column]) for row in rows) for column in columns]


def last_wrapped(rows: Sequence[Sequence[str]], width: int, *, indent: str = "") -> list[str]:
    """Return rows as lines, the last column wrapped to the width, of at least `LEAST` columns.

    Further lines of a table with one column are indented.
    """
    name_widths = column_widths(rows)[:-1]
    hanging = "" if name_widths else "  "
    taken = sum(name_width + 2 for name_width in name_widths)
    room = width - len(indent) - taken - len(hanging)
    blanks = [""] * len(name_widths)
    lines: list[Sequence[str]] = []
    for *names, text in rows:
        first, *others = wrapped(text, max(room, LEAST))
        lines.append([*names, first])
        lines += [[*blanks, hanging + line] for line in others]
    return aligned(lines, indent=indent, to_the_left=True)


def blocks(rows: Sequence[Sequence[str]], width: int) -> list[list[list[str]]]:
    """Cut the rows of a table into tables within a width: each has the first column and at least one more."""
    name_width, *widths = column_widths(rows)
    groups: list[list[int]] = [[]]
    room = width - name_width
    for column, column_width in enumerate(widths, start=1):
        taken = column_width + 2
        # A column wider than the terminal still gets a table.
        if groups[-1] and taken > room:
            groups.append([])
            room = width - name_width
        groups[-1].append(column)
        room -= taken
    return [_columns_of(rows, group) for group in groups]


def _columns_of(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> list[list[str]]:
    """Return the first column and some others."""
    return [[row[0], *(row[column] for column in columns)] for row in rows]


def _cell(text: str, width: int, to_the_right: bool) -> str:
    fill = " " * (width - cell_len(text))
    return fill + text if to_the_right else text + fill


def shortened(text: str, width: int) -> str:
    """Return the text on one line within a width, with … where it is cut."""
    line = " ".join(text.split())
    # By cells: a Han character takes two columns of a terminal.
    if cell_len(line) <= width:
        return line
    return set_cell_size(line, width - 1).rstrip() + "…"


def wrapped(text: str, width: int) -> list[str]:
    """Wrap the text to a width, between words, and inside words that are wider themselves."""
    lines: list[str] = []
    # An empty text is one empty line: callers unpack the first.
    for paragraph in text.splitlines() or [""]:
        line = ""
        for word in paragraph.split(" "):
            if line and cell_len(line) + 1 + cell_len(word) <= width:
                line = f"{line} {word}"
                continue
            if line:
                lines.append(line)
            *full_lines, line = chop_cells(word, width) or [""]
            lines += full_lines
        lines.append(line)
    return lines
