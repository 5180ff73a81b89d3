"""The chunks of a corpus: notes are read and cut to fit a token budget. Ids of chunks outlive re-indexing."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pytest_rageval.language.words import index_terms, sentences

NOTE_BYTES = 4 * 1024 * 1024
"""A larger file is no note: it is left out and counted as unreadable."""

_META = re.compile(r"([A-Za-z_][\w-]*):(?:\s+(.*?))?\s*$")


@dataclass(frozen=True, slots=True)
class Note:
    """One Markdown file. `rel_path` is relative to its vault's folder, with POSIX separators.

    `lines` are the lines of the body, without front matter; the first of them is line `first_line` of the file
    (1-based). `problem` says why the file could not be read; it has no lines then.
    """

    vault: str
    rel_path: str
    lines: tuple[str, ...] = ()
    first_line: int = 1
    meta: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None


def read_notes(corpus: Path) -> tuple[Note, ...]:
    """Read every `*.md` file below the vaults of the corpus, sorted by vault and path, without hidden files."""
    return tuple(
        _read_note(path, vault.name, path.relative_to(vault).as_posix())
        for vault in sorted(corpus.iterdir())
        if vault.is_dir() and not vault.name.startswith(".")
        for path in sorted(vault.rglob("*.md"), key=lambda path: path.relative_to(vault).as_posix())
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(vault).parts)
    )


def _read_note(path: Path, vault: str, rel_path: str) -> Note:
    if not rel_path.isprintable():  # a name that is not UTF-8 has lone surrogates, which must not reach JSON
        return Note(vault, ascii(rel_path), problem="unprintable_name")
    if path.stat().st_size > NOTE_BYTES:
        return Note(vault, rel_path, problem="too_large")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        return Note(vault, rel_path, problem="not_utf8")
    lines = tuple(text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}").split("\n"))
    meta, taken = _front_matter(lines)
    return Note(vault, rel_path, lines[taken:], taken + 1, meta)


def _front_matter(lines: tuple[str, ...]) -> tuple[dict[str, str], int]:
    """Return the `key: value` lines between two `---` at the very top, and the number of lines.

    A leading rule that no second one closes, or that encloses anything else, is text of the note.
    """
    if lines[0].rstrip() != "---":
        return {}, 0
    meta: dict[str, str] = {}
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return meta, number + 1
        if not line.strip():
            continue
        match = _META.match(line)
        if match is None:
            return {}, 0
        meta[match[1]] = (match[2] or "").strip("\"'")
    return {}, 0


CHUNKER = "headings-1"
"""Version of the rules below: it changes when they cut the same note into other chunks."""

OVER_BUDGET = "context_limit_exceeded"
PARAGRAPH, LINE, SAME_PARAGRAPH = "\n\n", "\n", " "

_MARKDOWN = MarkdownIt("commonmark").enable("table")


class TokenBudget(NamedTuple):
    """Sizes in tokens: of a chunk at most, and of what it may repeat from the previous one in its section."""

    chunk_max_tokens: int = 200
    chunk_overlap: int = 0


@dataclass(frozen=True, slots=True)
class NoteChunk:
    """A passage of one section. `text` is the source below the heading; `quotable` are its parts for answers."""

    chunk_id: str
    vault: str
    rel_path: str
    heading_path: str
    start_line: int
    end_line: int
    text: str
    token_count: int
    quotable: tuple[str, ...]
    meta: Mapping[str, str]

    @property
    def folder(self) -> str:
        """Return the folder of the note inside its vault; empty at the top."""
        return self.rel_path.rpartition("/")[0]


class CutNote(NamedTuple):
    """The result of cutting a note: its chunks, and how many passages are beyond the budget."""

    chunks: tuple[NoteChunk, ...]
    skipped: int


def cut_note(note: Note, budget: TokenBudget) -> CutNote:
    """Cut a note into chunks in order. A section without text gives none; a word beyond the budget is left out."""
    chunks: list[NoteChunk] = []
    skipped = 0
    seen: Counter[str] = Counter()
    for heading_path, pieces in sections(note):
        parts = [part for piece in pieces for part in _fit(piece, budget.chunk_max_tokens)]
        fitting = [part for part in parts if _size(part.text) <= budget.chunk_max_tokens]
        skipped += len(parts) - len(fitting)
        chunks.extend(_chunk(note, heading_path, pack, seen) for pack in _packed(fitting, budget))
    return CutNote(tuple(chunks), skipped)


def _fit(piece: Piece, most: int) -> Iterator[Piece]:
    """Yield the piece, or parts of it that fit: cut between words, each word whole."""
    if _size(piece.header) + _size(piece.text) <= most:
        yield piece
        return
    glue = piece.glue
    taken: list[str] = []
    tokens = 0
    for word in [*piece.text.split(), None]:
        size = most if word is None else _size(word)
        if taken and tokens + size > most:
            text = " ".join(taken)
            yield Piece(text, text, piece.start_line, piece.end_line, glue)
            glue, taken, tokens = SAME_PARAGRAPH, [], 0
        if word is not None:
            taken.append(word)
            tokens += size


def _packed(pieces: Iterable[Piece], budget: TokenBudget) -> Iterator[list[Piece]]:
    """Yield pieces in runs within the budget; a run begins with the last of the previous one, as overlap allows."""
    most = budget.chunk_max_tokens
    pack: list[Piece] = []
    for piece in pieces:
        if pack and _total([*pack, piece]) > most:
            yield pack
            tail = _tail(pack, budget.chunk_overlap)
            pack = tail if _total([*tail, piece]) <= most else []
        pack.append(piece)
    if pack:
        yield pack


def _total(pack: Sequence[Piece]) -> int:
    """Return the tokens of a chunk of these pieces; one that begins with a row includes the head of its table."""
    return _size(pack[0].header) + sum(_size(piece.text) for piece in pack)


def _tail(pack: Sequence[Piece], most: int) -> list[Piece]:
    tail: list[Piece] = []
    for piece in reversed(pack):
        most -= _size(piece.text)
        if most < 0:
            break
        tail.insert(0, piece)
    return tail


def _chunk(note: Note, heading_path: str, pieces: Sequence[Piece], seen: Counter[str]) -> NoteChunk:
    head = f"{pieces[0].header}\n" if pieces[0].header else ""
    text = head + pieces[0].text + "".join(piece.glue + piece.text for piece in pieces[1:])
    # No index and no offset: a chunk keeps its id when text is added above it. NUL stands in no path and no text.
    identity = "\0".join((note.vault, note.rel_path, heading_path, text))
    seen[identity] += 1
    if seen[identity] > 1:
        identity += f"\0{seen[identity]}"
    return NoteChunk(
        chunk_id=hashlib.sha256(identity.encode()).hexdigest()[:32],
        vault=note.vault,
        rel_path=note.rel_path,
        heading_path=heading_path,
        start_line=pieces[0].start_line,
        end_line=pieces[-1].end_line,
        text=text,
        token_count=_size(text),
        quotable=tuple(piece.quotable for piece in pieces if piece.quotable),
        meta=note.meta,
    )


@lru_cache(maxsize=20_000)
def _size(text: str) -> int:
    return len(index_terms(text))


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
            trail = [above for above in trail if above[0] < depth]
            trail.append((depth, f"{'#' * depth} {' '.join(tokens[position + 1].content.split())}"))
            outline.append((" > ".join(heading for _, heading in trail), []))
        elif (cut := _BLOCKS.get(token.type)) is not None:
            outline[-1][1].extend(cut(note, tokens, position))
    return outline


def _source(note: Note, start: int, end: int) -> list[str]:
    """Return lines of the body by 0-based numbers, as markdown-it counts, without blank ones at the end."""
    lines = list(note.lines[start:end])
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _prose(note: Note, tokens: Sequence[Token], position: int) -> Iterator[Piece]:
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
    start = (tokens[position].map or (0, 0))[0]
    header = "\n".join(note.lines[start : start + 2])
    rows: list[tuple[int, list[str]]] = []
    for token in _inside(tokens, position):
        if token.type == "tr_open" and token.map is not None:
            rows.append((token.map[0], []))
        elif token.type == "inline":
            rows[-1][1].append(" ".join(token.content.split()))
    (_, columns), *below = rows
    for number, (at, cells) in enumerate(below):
        named = zip(columns, cells, strict=False)
        text = "; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)
        line = note.first_line + at
        yield Piece(note.lines[at], text, line, line, LINE if number else PARAGRAPH, header)


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
