"""Cut a note into chunks that fit a token budget, each with an id that outlives re-indexing."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_rageval.demo.notes import Note
from pytest_rageval.demo.outline import SAME_PARAGRAPH, Piece, sections
from pytest_rageval.words import index_terms

CHUNKER = "headings-1"
"""Version of the rules below: it changes when the same note would give other chunks."""

OVER_BUDGET = "context_limit_exceeded"


class TokenBudget(NamedTuple):
    """Sizes in tokens: of a chunk at most, and of what it may repeat from the chunk before it in its section."""

    chunk_max_tokens: int = 200
    chunk_overlap: int = 0


@dataclass(frozen=True, slots=True)
class NoteChunk:
    """A passage of one section. `text` is the source below the heading; `said` is what an answer may quote of it."""

    chunk_id: str
    vault: str
    rel_path: str
    heading_path: str
    start_line: int
    end_line: int
    text: str
    token_count: int
    said: tuple[str, ...]
    meta: Mapping[str, str]

    @property
    def folder(self) -> str:
        """The folder of the note inside its vault; empty at the top."""
        return self.rel_path.rpartition("/")[0]


class Cut(NamedTuple):
    """What became of one note: its chunks, and why passages were left out (reason → how many)."""

    chunks: tuple[NoteChunk, ...]
    skipped: Mapping[str, int]


def cut_note(note: Note, budget: TokenBudget) -> Cut:
    """The chunks of a note in order. A section without text gives none; a word beyond the budget is left out."""
    chunks: list[NoteChunk] = []
    skipped: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for section in sections(note):
        fitting: list[_Sized] = []
        for piece in section.pieces:
            for part in _fit(piece, budget.chunk_max_tokens):
                if part.tokens > budget.chunk_max_tokens:
                    skipped[OVER_BUDGET] += 1
                else:
                    fitting.append(part)
        chunks.extend(_chunk(note, section.heading_path, pack, seen) for pack in _packed(fitting, budget))
    return Cut(tuple(chunks), dict(skipped))


class _Sized(NamedTuple):
    """A piece and its size; `head` is the size of its table's head, paid where a chunk begins with the piece."""

    piece: Piece
    tokens: int
    head: int = 0


def _fit(piece: Piece, most: int) -> Iterator[_Sized]:
    """The piece, or parts of it that fit: cut between words, each word whole."""
    sized = _Sized(piece, _size(piece.text), _size(piece.header))
    if sized.head + sized.tokens <= most:
        yield sized
        return
    words = [(word, _size(word)) for word in piece.text.split()]
    glue = piece.glue
    taken: list[str] = []
    tokens = 0
    for word, size in [*words, ("", most)]:
        if taken and tokens + size > most:
            text = " ".join(taken)
            yield _Sized(Piece(text, text, piece.start_line, piece.end_line, glue), tokens)
            glue, taken, tokens = SAME_PARAGRAPH, [], 0
        if word:
            taken.append(word)
            tokens += size


def _packed(pieces: Sequence[_Sized], budget: TokenBudget) -> Iterator[list[_Sized]]:
    """Pieces in runs within the budget; a run begins with the last ones of the run before, as far as overlap allows."""
    most = budget.chunk_max_tokens
    pack: list[_Sized] = []
    for sized in pieces:
        if pack and _total(pack) + sized.tokens > most:
            yield pack
            tail = _tail(pack, budget.chunk_overlap)
            pack = tail if _total([*tail, sized]) <= most else []
        pack.append(sized)
    if pack:
        yield pack


def _total(pack: Sequence[_Sized]) -> int:
    return pack[0].head + sum(sized.tokens for sized in pack)


def _tail(pack: Sequence[_Sized], most: int) -> list[_Sized]:
    tail: list[_Sized] = []
    for sized in reversed(pack):
        most -= sized.tokens
        if most < 0:
            break
        tail.insert(0, sized)
    return tail


def _chunk(note: Note, heading_path: str, pack: Sequence[_Sized], seen: Counter[str]) -> NoteChunk:
    pieces = [sized.piece for sized in pack]
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
        said=tuple(piece.said for piece in pieces if piece.said),
        meta=note.meta,
    )


def _size(text: str) -> int:
    return len(index_terms(text))
