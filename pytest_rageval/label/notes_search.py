"""Plain word search over a folder of notes: BM25 of their sections by SQLite, independent of any tested system."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

from pytest_rageval.cases.note_folder import NoteFolder
from pytest_rageval.language.words import index_terms
from pytest_rageval.model import Chunk


class NotesSearch:
    """The sections of all notes below a folder, read at the first question. Paths are relative to the folder.

    May be used from any thread.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._sections: list[Chunk] | None = None

    def find(self, question: str, k: int) -> list[Chunk]:
        """Return the k sections that contain most of the question's words, best first; none without a word of it."""
        with self._lock:  # the next cases are asked for at the same time, and the notes are read once
            sections = self._read() if self._sections is None else self._sections
            # A quoted string is one term to FTS5 whatever it holds; terms hold no quotation mark.
            terms = [f'"{term}"' for term in dict.fromkeys(index_terms(question))]
            if not terms:
                return []
            found = "SELECT rowid FROM section WHERE terms MATCH ? ORDER BY rank, rowid LIMIT ?"
            rows = self._index.execute(found, (" OR ".join(terms), k))
            return [sections[row] for (row,) in rows]

    def _read(self) -> list[Chunk]:
        sections = list(self._sections_with_text())
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._index.close)
        self._index.execute("CREATE VIRTUAL TABLE section USING fts5 (terms, tokenize = 'unicode61', content = '')")
        terms = (" ".join(index_terms(f"{section.heading_path or ''}\n{section.text}")) for section in sections)
        self._index.executemany("INSERT INTO section (rowid, terms) VALUES (?, ?)", enumerate(terms))
        self._sections = sections
        return sections

    def _sections_with_text(self) -> Iterator[Chunk]:
        notes = NoteFolder(self.folder)
        for rel_path in notes.rel_paths:
            for heading_path, text, line in notes.sections(rel_path) or ():
                if text:
                    last = line + text.count("\n")
                    yield Chunk(None, None, rel_path, heading_path, text, start_line=line, end_line=last)
