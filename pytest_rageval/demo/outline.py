"""The sections of a note, with the sentences, items, rows and lines of code in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pytest_rageval.demo.notes import Note
from pytest_rageval.words import sentences

PARAGRAPH, LINE, SAME_PARAGRAPH = "\n\n", "\n", " "

_MARKDOWN = MarkdownIt("commonmark").enable("table")


class Piece(NamedTuple):
    """The smallest part of a section that chunking keeps whole: a sentence, a list item, a table row, a line of code.

    `text` is the source with its line breaks as spaces inside a sentence; `said` is what an answer may quote.
    `glue` stands between this piece and the one before it in the same chunk. `header` holds the head of the table
    that a row belongs to: a chunk that begins with the row repeats it. Lines are 1-based lines of the file.
    """

    text: str
    said: str
    start_line: int
    end_line: int
    glue: str = PARAGRAPH
    header: str = ""


class Section(NamedTuple):
    """A heading with all headings above it (`# Title > ## Section`; empty before the first), and the text below."""

    heading_path: str
    pieces: tuple[Piece, ...]


def sections(note: Note) -> tuple[Section, ...]:
    """The sections of a note in order; those without text have no pieces.

    A `#` inside fenced code, a quotation or a list is no heading.
    """
    tokens = _MARKDOWN.parse("\n".join(note.lines))
    outline: list[tuple[str, list[Piece]]] = [("", [])]
    trail: list[tuple[int, str]] = []
    for position, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        if token.type == "heading_open":
            depth = int(token.tag[1:])
            trail = [above for above in trail if above[0] < depth]
            trail.append((depth, f"{'#' * depth} {' '.join(tokens[position + 1].content.split())}"))
            outline.append((" > ".join(heading for _, heading in trail), []))
        elif (cut := _BLOCKS.get(token.type)) is not None:
            outline[-1][1].extend(cut(note, tokens, position))
    return tuple(Section(heading_path, tuple(pieces)) for heading_path, pieces in outline)


def _source(note: Note, start: int, end: int) -> list[str]:
    """Lines of the body by 0-based numbers, the way markdown-it counts, without blank ones at the end."""
    lines = list(note.lines[start:end])
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _prose(note: Note, tokens: Sequence[Token], position: int) -> Iterator[Piece]:
    """A paragraph or a quotation: its sentences."""
    start, end = tokens[position].map or (0, 0)
    lines = [line.strip().lstrip(">").strip() for line in _source(note, start, end)]
    text = " ".join(lines)
    at = 0
    for number, sentence in enumerate(sentences(text)):
        offset = text.find(sentence, at)
        begin = at if offset < 0 else offset
        at = begin + len(sentence)
        first, last = _line_of(lines, begin), _line_of(lines, max(begin, at - 1))
        glue = SAME_PARAGRAPH if number else PARAGRAPH
        yield Piece(sentence, sentence, note.first_line + start + first, note.first_line + start + last, glue)


def _line_of(lines: Sequence[str], offset: int) -> int:
    """Index of the line that holds this offset of the lines joined by one space."""
    for number, line in enumerate(lines):
        if offset <= len(line):
            return number
        offset -= len(line) + 1
    return len(lines) - 1


def _items(note: Note, tokens: Sequence[Token], position: int) -> Iterator[Piece]:
    """A list: its items, each with all that is nested in it."""
    glue = PARAGRAPH
    for token in _inside(tokens, position):
        if token.type == "list_item_open" and token.level == 1 and token.map:
            lines = _source(note, *token.map)
            text = " ".join(line.strip() for line in lines).removeprefix(token.info + token.markup).lstrip("-*+ ")
            if text:
                first = note.first_line + token.map[0]
                yield Piece("\n".join(lines), text, first, first + len(lines) - 1, glue)
                glue = LINE


def _rows(note: Note, tokens: Sequence[Token], position: int) -> Iterator[Piece]:
    """A table: its rows, each said with the names of its columns."""
    inside = list(_inside(tokens, position))
    start = (tokens[position].map or (0, 0))[0]
    header = "\n".join(note.lines[start : start + 2])
    columns: list[str] = []
    glue = PARAGRAPH
    for at, token in enumerate(inside):
        if token.type != "tr_open" or token.map is None:
            continue
        cells = _cells(inside, at)
        if not columns:
            columns = cells
            continue
        text = "; ".join(
            f"{name}: {cell}" if name else cell for name, cell in zip(columns, cells, strict=False) if cell
        )
        line = note.first_line + token.map[0]
        yield Piece(note.lines[token.map[0]], text, line, line, glue, header)
        glue = LINE


def _cells(inside: Sequence[Token], at: int) -> list[str]:
    row: list[str] = []
    for token in inside[at + 1 :]:
        if token.type == "tr_close":
            break
        if token.type == "inline":
            row.append(" ".join(token.content.split()))
    return row


def _code(note: Note, tokens: Sequence[Token], position: int) -> Iterator[Piece]:
    """Code: its lines, the fence's own among them, blank ones joined to the line above."""
    start, end = tokens[position].map or (0, 0)
    glue = PARAGRAPH
    for number, line in enumerate(_source(note, start, end), start=note.first_line + start):
        if line.strip():
            text = "" if line.lstrip().startswith(("```", "~~~")) else line.strip()
            yield Piece(line, text, number, number, glue)
            glue = LINE


def _inside(tokens: Sequence[Token], position: int) -> Iterator[Token]:
    """The tokens between an opening one and the one that closes it."""
    for token in tokens[position + 1 :]:
        if token.level == 0:
            return
        yield token


_BLOCKS: dict[str, Callable[[Note, Sequence[Token], int], Iterator[Piece]]] = {
    "paragraph_open": _prose,
    "blockquote_open": _prose,
    "bullet_list_open": _items,
    "ordered_list_open": _items,
    "table_open": _rows,
    "fence": _code,
    "code_block": _code,
}
