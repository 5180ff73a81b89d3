"""Lines, tables and columns for a terminal: by the width that characters take there, not by their number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

from pytest_rageval.io.suggestions import and_more
from pytest_rageval.text import printable
from pytest_rageval.views.parts import FigureTable, Line, TableRow, Tone

LEAST = 10
"""Columns that a wrapped text has at least, however narrow the terminal."""
NAME = 24
"""Columns of a name that a table leaves before its figures stand elsewhere."""
Style = Literal["plain", "bold", "green", "red", "yellow"]
STYLES: Mapping[Tone, Style] = {
    "better": "green", "worse": "red", "doubtful": "yellow", "plain": "plain", "strong": "bold",
}  # fmt: skip


class StyledLine(NamedTuple):
    """A line and its style, which the face that prints it knows how to show."""

    text: str
    style: Style = "plain"


def styled(line: Line, width: int | None = None) -> Iterator[StyledLine]:
    """Yield a line of a view, wrapped to a width."""
    text = shown_line(line.text)
    yield from (StyledLine(part, STYLES[line.tone]) for part in (wrapped(text, width) if width else [text]))


def shown_line(text: str) -> str:
    """Return a text on one line, with nothing in it that steers a terminal."""
    return " ".join(printable(text).split())


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────


def table_lines(table: FigureTable, width: int, *, most: int | None = None, indent: str = "") -> Iterator[StyledLine]:
    """Yield the lines of a table, none wider than the terminal. `most`: rows that are shown."""
    shown = table.rows[:most]
    rows = [TableRow(table.heads, "strong"), *shown]
    words = ["" if number == 0 else row.cells[-1] for number, row in enumerate(rows)] if table.has_verdicts else []
    cells = [[*map(shown_line, row.cells[:-1] if words else row.cells)] for row in rows]
    named = _named_within(cells, max(width - len(indent), 0), NAME)
    is_narrow = _width(named) + len(indent) > width
    if is_narrow and table.least is None:
        yield from _in_blocks(rows, named, width - len(indent), indent)
    else:
        if is_narrow:
            words = _beyond(cells, words, table.least or 1)
            named = _named_within([row[: table.least] for row in cells], width - len(indent), LEAST)
        for row, text, word in zip(rows, aligned(named, indent=indent), words or [""] * len(rows), strict=True):
            yield from _with_words(text, word, STYLES[row.tone], width)
            yield from _note(row, indent)
    if len(table.rows) > len(shown):
        yield StyledLine(indent + and_more(len(table.rows) - len(shown), table.what))


def _width(rows: Sequence[Sequence[str]]) -> int:
    return max(map(cell_len, aligned(rows)))


def _named_within(rows: Sequence[Sequence[str]], width: int, least: int) -> list[list[str]]:
    """Cut the names, in the first column, to what the figures leave of a line."""
    room = max(width - _width([["", *row[1:]] for row in rows]), least)
    return [[shortened(row[0], room), *row[1:]] for row in rows]


def _beyond(cells: Sequence[Sequence[str]], words: Sequence[str], least: int) -> list[str]:
    """Return for each row what its line has no room for: `95 % -0.2 to 0.1, n 12: regressed`."""
    heads = cells[0][least:]
    rest = [", ".join(map("{} {}".format, heads, row[least:])) for row in cells]
    return ["", *(": ".join(filter(None, pair)) for pair in zip(rest[1:], words[1:] or [""] * len(rest), strict=False))]


def _with_words(text: str, words: str, style: Style, width: int) -> Iterator[StyledLine]:
    """Yield a row with its last column at the end of the line if it fits, else on lines of its own."""
    if not words or cell_len(text) + 2 + cell_len(words) <= width:
        yield StyledLine(f"{text}  {words}".rstrip(), style)
        return
    yield StyledLine(text, style)
    yield from (StyledLine(f"    {line}", style) for line in wrapped(words, max(width - 4, LEAST)))


def _note(row: TableRow, indent: str) -> Iterator[StyledLine]:
    if row.note:
        yield StyledLine(f"{indent}    {shown_line(row.note)}")


def _in_blocks(
    rows: Sequence[TableRow], cells: Sequence[Sequence[str]], width: int, indent: str
) -> Iterator[StyledLine]:
    """Yield a table whose columns without room stand below, under the same names."""
    for number, block in enumerate(blocks(cells, width)):
        yield from [StyledLine("")] * bool(number)
        for row, text in zip(rows, aligned(block, indent=indent), strict=True):
            yield StyledLine(text, STYLES[row.tone])
            yield from () if number else _note(row, indent)


# ── columns ───────────────────────────────────────────────────────────────────────────────────────────────────


def aligned(rows: Sequence[Sequence[str]], *, indent: str = "", to_the_left: bool = False) -> list[str]:
    """Rows as lines: the first column (or all) to the left, the others to the right, two spaces between."""
    widths = [max((cell_len(row[column]) for row in rows), default=0) for column in range(len(rows[0]) if rows else 0)]
    return [
        (
            indent
            + "  ".join(_cell(text, widths[column], column > 0 and not to_the_left) for column, text in enumerate(row))
        ).rstrip()
        for row in rows
    ]


def last_wrapped(rows: Sequence[Sequence[str]], width: int, *, indent: str = "") -> list[str]:
    """Rows as lines to the left, the last column in as many lines as the width asks for; of `LEAST` columns at least.

    Of a table of one column, further lines are indented.
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
    """The rows of a table cut into tables within a width: each has the first column and one more at least."""
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
    """The text on one line within a width, with … where it was cut."""
    line = " ".join(text.split())
    return line if cell_len(line) <= width else set_cell_size(line, width - 1).rstrip() + "…"


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines no wider than that, broken between words, and inside of those that are wider themselves."""
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
