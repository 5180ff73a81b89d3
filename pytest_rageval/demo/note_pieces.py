"""The sections of a note and the pieces in them that chunking keeps whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pytest_rageval.demo.note_files import Note
from pytest_rageval.language.words import sentences

PARAGRAPH = "\n\n"
LINE = "\n"
SAME_PARAGRAPH = " "
"""What stands between two pieces of a chunk."""

_MARKDOWN = MarkdownIt("commonmark").enable("table")


class Piece(NamedTuple):
    """The smallest part of a section that chunking keeps whole: a sentence, a list item, a table row, a line of code.

    `text` is the source with its line breaks as spaces inside a sentence; `quotable` is what an answer may quote.
    `glue` stands between this piece and the one before it in the same chunk. `header` holds the head of the table
    that a row belongs to: a chunk that begins with the row repeats it. Lines are 1-based lines of the file.
    """

    text: str
    quotable: str
    start_line: int
    end_line: int
    glue: str = PARAGRAPH
    header: str = ""


def sections(note: Note) -> list[tuple[str, list[Piece]]]:
    """Return the sections of a note: heading path (`# Title > ## Section`, empty before the first) and pieces.

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
            title = " ".join(tokens[position + 1].content.split())
            trail = [above for above in trail if above[0] < depth]
            trail.append((depth, f"{'#' * depth} {title}"))
            outline.append((" > ".join(heading for _, heading in trail), []))
        elif token.type in _BLOCKS:
            _, pieces = outline[-1]
            pieces += _BLOCKS[token.type](note, tokens, position)
    return outline


def _source(note: Note, start: int, end: int) -> list[str]:
    """Return lines of the body by 0-based numbers, as markdown-it counts, without blank ones at the end."""
    lines = list(note.lines[start:end])
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _prose(note: Note, tokens: Sequence[Token], position: int) -> Iterator[Piece]:
    start, end = tokens[position].map or (0, 0)
    first_line = note.first_line + start
    lines = [line.strip().lstrip(">").strip() for line in _source(note, start, end)]
    text = " ".join(lines)
    at = 0
    for number, sentence in enumerate(sentences(text)):
        offset = text.find(sentence, at)
        begin = at if offset < 0 else offset
        at = begin + len(sentence)
        first = first_line + _line_of(lines, begin)
        last = first_line + _line_of(lines, max(begin, at - 1))
        glue = SAME_PARAGRAPH if number else PARAGRAPH
        yield Piece(sentence, sentence, first, last, glue)


def _line_of(lines: Sequence[str], offset: int) -> int:
    """Return the index of the line at this offset of the lines joined by one space."""
    for number, line in enumerate(lines):
        if offset <= len(line):
            return number
        offset -= len(line) + 1
    return len(lines) - 1


def _items(note: Note, tokens: Sequence[Token], position: int) -> Iterator[Piece]:
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
    start, _ = tokens[position].map or (0, 0)
    header = "\n".join(note.lines[start : start + 2])
    rows: list[tuple[int, list[str]]] = []
    for token in _inside(tokens, position):
        if token.type == "tr_open" and token.map is not None:
            rows.append((token.map[0], []))
        elif token.type == "inline":
            rows[-1][1].append(" ".join(token.content.split()))
    (_, columns), *below = rows
    glue = PARAGRAPH
    for at, cells in below:
        named = [(name, cell) for name, cell in zip(columns, cells, strict=False) if cell]
        text = "; ".join(f"{name}: {cell}" if name else cell for name, cell in named)
        line = note.first_line + at
        yield Piece(note.lines[at], text, line, line, glue, header)
        glue = LINE


def _code(note: Note, tokens: Sequence[Token], position: int) -> Iterator[Piece]:
    """Yield the lines of code, the fence's own among them, blank ones joined to the line above."""
    start, end = tokens[position].map or (0, 0)
    glue = PARAGRAPH
    for number, line in enumerate(_source(note, start, end), start=note.first_line + start):
        if line.strip():
            text = "" if line.lstrip().startswith(("```", "~~~")) else line.strip()
            yield Piece(line, text, number, number, glue)
            glue = LINE


def _inside(tokens: Sequence[Token], position: int) -> Iterator[Token]:
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
