"""The full-text index of chunks: BM25 by SQLite FTS5 over text that we cut into terms."""

from __future__ import annotations

import hashlib
import math
import sqlite3
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_rageval.demo.chunking import CHUNKER, NoteChunk, TokenBudget
from pytest_rageval.demo.terms import text_terms

HEADING_WEIGHT = 1.5
"""A term in the headings counts this many times as much as one in the text."""

HALF = 10.0
"""The BM25 value that becomes a score of 0.5."""

QUERY_TERMS = 64
"""At most so many terms of a question are looked up, the rarest ones."""


class Hit(NamedTuple):
    """A chunk that came back, and its score in [0, 1)."""

    chunk: NoteChunk
    score: float


class Scope(NamedTuple):
    """Where a search may look; empty means everywhere. A folder includes everything below it."""

    vaults: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def admits(self, vault: str, folder: str) -> bool:
        return (not self.vaults or vault in self.vaults) and (
            not self.folders or any(is_below(folder, above) for above in self.folders)
        )


def is_below(folder: str, above: str) -> bool:
    """True if the folder is the one `above`, or inside it. The root is written as the empty string."""
    return not above or folder == above or folder.startswith(f"{above}/")


def bm25_score(bm25: float) -> float:
    """BM25 (≥ 0, without an upper end) as a score in [0, 1): s / (s + 10), rising, and the same for every question.

    A hyperbola rather than 1 - exp(-s / 10), because it keeps strong hits apart: 30 and 60 become 0.75 and 0.86, not
    0.95 and 0.998.
    """
    return bm25 / (bm25 + HALF)


class Index:
    """The chunks of a corpus, searchable from any thread. `budget` is what they were cut with."""

    def __init__(self, chunks: Sequence[NoteChunk], budget: TokenBudget) -> None:
        self.chunks = tuple(chunks)
        self.budget = budget
        self._headings = [text_terms(f"{chunk.heading_path} {chunk.folder}") for chunk in self.chunks]
        bodies = [text_terms(chunk.text) for chunk in self.chunks]
        self._frequency = Counter(
            term for pair in zip(self._headings, bodies, strict=True) for term in set(pair[0]).union(pair[1])
        )
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._database.close)
        # Terms hold letters, digits and marks; whatever unicode61 makes of the marks, it makes of a question's too.
        self._database.execute(
            "CREATE VIRTUAL TABLE chunk USING fts5 (heading, body, tokenize = 'unicode61', detail = full)"
        )
        self._database.executemany(
            "INSERT INTO chunk (rowid, heading, body) VALUES (?, ?, ?)",
            ((row, " ".join(self._headings[row]), " ".join(bodies[row])) for row in range(len(self.chunks))),
        )
        self._database.commit()

    @property
    def version(self) -> str:
        """A hash of the chunker, its parameters and every chunk: two builds with one version answer alike."""
        parts = [CHUNKER, *map(str, self.budget), *(chunk.chunk_id for chunk in self.chunks)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def search(self, terms: Iterable[str], scope: Scope, limit: int, min_score: float) -> list[Hit]:
        """The best `limit` chunks of the scope that score at least `min_score`, best first; ties in corpus order."""
        looked_up = sorted((term for term in terms if term in self._frequency), key=self._frequency.__getitem__)
        if not looked_up:
            return []
        # A quoted string is one term (or a phrase) to FTS5 whatever stands in it; terms hold no quotation mark.
        query = " OR ".join(f'"{term}"' for term in looked_up[:QUERY_TERMS])
        hits: list[Hit] = []
        with self._lock:
            rows = self._database.execute(
                "SELECT rowid, -bm25(chunk, ?, 1.0) FROM chunk WHERE chunk MATCH ? ORDER BY 2 DESC, rowid",
                (HEADING_WEIGHT, query),
            )
            for row, bm25 in rows:
                value = round(bm25_score(max(bm25, 0.0)), 6)
                if value < min_score or len(hits) == limit:
                    break
                if scope.admits(self.chunks[row].vault, self.chunks[row].folder):
                    hits.append(Hit(self.chunks[row], value))
            rows.close()
        return hits

    def rarity(self, term: str) -> float:
        """Inverse document frequency, ≥ 0: the fewer chunks have a term, the more it says; most where none has it.

        A pair of syllables that no chunk has counts half: it is more often an ending than a word.
        """
        frequency = self._frequency[term]
        idf = math.log(1 + len(self.chunks) / (frequency + 0.5))
        return idf if frequency or term.isascii() else idf / 2
