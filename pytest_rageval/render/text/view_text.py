"""A view as lines for a terminal: no wider than it, and without control characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from rich.cells import cell_len

from pytest_rageval.io.suggestions import and_more, listed
from pytest_rageval.render.text.columns import LEAST, aligned, blocks, shortened, wrapped
from pytest_rageval.text import printable
from pytest_rageval.views.parts import (
    Block,
    FigureTable,
    Fold,
    FoldList,
    LabelledText,
    Line,
    NameList,
    Section,
    TableRow,
    Tone,
    sections_of,
)

NAME = 24
"""Minimum columns of a name in a table; below it the figures move to lines of their own."""
LABEL = 8
"""Columns of a label."""
INNER_LABEL = 15
"""Columns of a label within a case."""
SHOWN_NAMES = 5
Style = Literal["plain", "bold", "green", "red", "yellow"]
STYLES: Mapping[Tone, Style] = {
    "better": "green", "worse": "red", "doubtful": "yellow", "plain": "plain", "strong": "bold",
}  # fmt: skip


class StyledLine(NamedTuple):
    """A line and its style, for the face that prints it."""

    text: str
    style: Style = "plain"


def view_lines(view: Any, width: int) -> Iterator[StyledLine]:
    """Yield the lines of a view, with an empty one between two sections."""
    for number, section in enumerate(sections_of(view)):
        if number:
            yield StyledLine("")
        yield from lines_of_section(section, width)


def lines_of_section(section: Section, width: int) -> Iterator[StyledLine]:
    """Yield the lines of a section."""
    for block in section:
        yield from _block(block, width)


def _block(block: Block, width: int) -> Iterator[StyledLine]:
    match block:
        case Line(text, tone, form):
            one_line = " ".join(printable(text).splitlines())
            for part in _parts(one_line, form, width):
                # Wrapping may bring to the beginning of a line what a CI service takes for a command there.
                yield StyledLine(printable(part), STYLES[tone])
        case FigureTable():
            yield from table_lines(block, width)
        case LabelledText(label):
            yield StyledLine(f"{label:<{LABEL}}{_cut(str(block), width - LABEL)}")
        case NameList():
            yield from _names(block, width)
        case FoldList():
            yield from _folds(block, width)


def _parts(text: str, form: str, width: int) -> list[str]:
    """Wrap the parts that no program searches: titles, and details below a line."""
    if form == "title":
        return wrapped(text, width)
    if form != "detail":
        return [text]
    first, *others = wrapped(text, max(width - 4, LEAST))
    return [f"  {first}", *(f"    {other}" for other in others)]


def _names(block: NameList, width: int) -> Iterator[StyledLine]:
    """Yield as many names as fit, at least one, and the number of others; below a title that ends with a colon."""
    style = STYLES[block.tone]
    if block.title.endswith(":"):
        yield StyledLine(block.title, style)
        start = "  "
    else:
        start = f"{_on_one_line(block.title)} ({len(block.names)}): "
    for shown in range(min(len(block.names), SHOWN_NAMES), 0, -1):
        text = start + _on_one_line(listed(block.names, shown))
        if cell_len(text) <= 3 * width:
            break
    yield StyledLine(text, style)


def _folds(block: FoldList, width: int) -> Iterator[StyledLine]:
    style = STYLES[block.tone]
    yield StyledLine(f"{block.title} ({len(block.folds)})", style)
    for fold in block.folds[: block.most]:
        yield StyledLine("")
        yield StyledLine("  " + _cut(fold.title, width - 2), style)
        yield from _facts(fold, width)
    if len(block.folds) > block.most:
        yield StyledLine("")
        elsewhere = f": {block.elsewhere}" if block.elsewhere else ""
        yield StyledLine(f"  {and_more(len(block.folds) - block.most)}{elsewhere}")


def _facts(fold: Fold, width: int) -> Iterator[StyledLine]:
    for fact in fold.facts:
        text = _cut(str(fact), width - INNER_LABEL - 4)
        yield StyledLine(f"    {fact.label:<{INNER_LABEL}}{text}".rstrip())


def _on_one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _cut(text: str, width: int) -> str:
    return shortened(printable(text), max(width, LEAST))


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────


def table_lines(table: FigureTable, width: int) -> Iterator[StyledLine]:
    """Yield the lines of a table, none wider than the terminal."""
    shown = table.rows[: table.most]
    if table.has_texts:
        yield from _texts(shown, width)
    else:
        head = [TableRow(table.heads, "strong")] if table.heads else []
        yield from _figures(table, [*head, *shown], width)
    if len(table.rows) > len(shown):
        more = and_more(len(table.rows) - len(shown), table.what)
        yield StyledLine(f"  {more}" if table.has_texts else more)


def _texts(rows: Sequence[TableRow], width: int) -> Iterator[StyledLine]:
    """Yield texts without their heads: name, before, now."""
    room = max((width - 8) // 3, LEAST)
    cells = []
    for row in rows:
        name, before, now = row.cells
        cells.append([_cut(name, min(room, 40)), _cut(before, room), f"→ {_cut(now, room)}"])
    yield from map(StyledLine, aligned(cells, indent="  ", to_the_left=True))


def _figures(table: FigureTable, rows: Sequence[TableRow], width: int) -> Iterator[StyledLine]:
    words = [_verdict(table, row) for row in rows]
    cells = [list(map(_on_one_line, _figure_cells(table, row))) for row in rows]
    named = _named_within(cells, width, NAME)
    is_narrow = max(map(cell_len, aligned(named))) > width
    if is_narrow and table.least is None:
        yield from _in_blocks(rows, named, width)
        return
    if is_narrow and table.heads:
        words = [_overflow(table, row, table.least or 1) for row in rows]
        named = _named_within([row[: table.least] for row in cells], width, LEAST)
    lines = aligned(named)
    widest = max(map(cell_len, lines))
    for row, text, word in zip(rows, lines, words, strict=True):
        filled = text + " " * (widest - cell_len(text))
        yield from _with_words(filled, word, STYLES[row.tone], width)
        yield from _note(row, width)


def _figure_cells(table: FigureTable, row: TableRow) -> tuple[str, ...]:
    return row.cells[:-1] if table.has_verdicts else row.cells


def _verdict(table: FigureTable, row: TableRow) -> str:
    """Return the verdict of a row, which stands behind the figures; '' without one, and for the heads."""
    if not table.has_verdicts or row.cells == table.heads:
        return ""
    return row.cells[-1]


def _note(row: TableRow, width: int) -> Iterator[StyledLine]:
    """Yield the note of a row below it, wrapped between words."""
    if row.note:
        lines = wrapped(_on_one_line(row.note), max(width - 4, LEAST))
        yield from (StyledLine(f"    {line}") for line in lines)


def table_width(table: FigureTable) -> int:
    """Return the width of a table that has all the columns it needs."""
    rows = [table.heads, *(row.cells for row in table.rows)]
    lines = aligned([list(map(_on_one_line, row)) for row in rows])
    return max(map(cell_len, lines))


def _named_within(rows: Sequence[Sequence[str]], width: int, least: int) -> list[list[str]]:
    """Cut the names, in the first column, to the room that the figures leave."""
    figures = aligned([["", *row[1:]] for row in rows])
    room = max(width - max(map(cell_len, figures)), least)
    return [[shortened(row[0], room), *row[1:]] for row in rows]


def _overflow(table: FigureTable, row: TableRow, least: int) -> str:
    """Return the cells that do not fit into a row's line: `95 % -0.2 to 0.1, n 12: regressed`."""
    if row.cells == table.heads:
        return ""
    figures = [f"{head} {cell}" for head, cell in zip(table.heads, row.cells, strict=True)]
    verdict = _verdict(table, row)
    if table.has_verdicts:
        figures = figures[:-1]
    hidden_figures = ", ".join(figures[least:])
    return ": ".join(filter(None, (hidden_figures, verdict)))


def _with_words(text: str, words: str, style: Style, width: int) -> Iterator[StyledLine]:
    """Yield a row with its last column at the end of the line if it fits, else on lines of its own."""
    if not words or cell_len(text) + 2 + cell_len(words) <= width:
        yield StyledLine(f"{text}  {words}".rstrip(), style)
        return
    yield StyledLine(text.rstrip(), style)
    yield from (StyledLine(f"    {line}", style) for line in wrapped(words, max(width - 4, LEAST)))


def _in_blocks(rows: Sequence[TableRow], cells: Sequence[Sequence[str]], width: int) -> Iterator[StyledLine]:
    """Yield a table whose columns that do not fit follow below, under the same names."""
    for number, block in enumerate(blocks(cells, width)):
        if number:
            yield StyledLine("")
        for row, text in zip(rows, aligned(block), strict=True):
            yield StyledLine(text, STYLES[row.tone])
            if number == 0:
                yield from _note(row, width)
