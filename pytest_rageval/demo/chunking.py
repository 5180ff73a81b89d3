"""The chunks of a note, cut to fit a token budget. Ids of chunks outlive re-indexing."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from pytest_rageval.demo.note_files import Note
from pytest_rageval.demo.note_pieces import SAME_PARAGRAPH, Piece, sections
from pytest_rageval.language.words import index_terms

CHUNKER = "headings-1"
"""Version of the rules below: it changes when they cut the same note into other chunks."""

OVER_BUDGET = "context_limit_exceeded"


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
        parts: list[Piece] = []
        for piece in pieces:
            parts += _fit(piece, budget.chunk_max_tokens)
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
    for words in _lines_of_words(piece.text, most):
        text = " ".join(words)
        yield Piece(text, text, piece.start_line, piece.end_line, glue)
        glue = SAME_PARAGRAPH


def _lines_of_words(text: str, most: int) -> Iterator[list[str]]:
    """Yield the words of a text in runs of at most so many tokens; a longer word is a run of its own.

    Last words without a token, such as a dash, are left out.
    """
    words: list[str] = []
    tokens = 0
    for word in text.split():
        size = _size(word)
        if words and tokens + size > most:
            yield words
            words = []
            tokens = 0
        words.append(word)
        tokens += size
    if tokens:
        yield words


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
    first, *others = pieces
    head = f"{first.header}\n" if first.header else ""
    body = first.text + "".join(piece.glue + piece.text for piece in others)
    text = head + body
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
        start_line=first.start_line,
        end_line=pieces[-1].end_line,
        text=text,
        token_count=_size(text),
        quotable=tuple(piece.quotable for piece in pieces if piece.quotable),
        meta=note.meta,
    )


@lru_cache(maxsize=20_000)
def _size(text: str) -> int:
    return len(index_terms(text))
