"""Plain word search over a folder of notes: BM25 of their sections, independent of any tested system."""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from pytest_rageval.cases.discovery import PRUNED
from pytest_rageval.cases.notes.note_folder import MOST_NOTE_BYTES, section_lines
from pytest_rageval.model import Chunk
from pytest_rageval.words import index_terms

SUFFIXES = frozenset({".md", ".markdown", ".txt"})
K1, B = 1.2, 0.75
"""Of BM25. Source: Robertson and Zaragoza 2009; the usual values."""


class NotesSearch:
    """The sections of all notes below a folder, read at the first question. Paths are relative to the folder.

    May be used from any thread.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._reading = threading.Lock()
        self._sections: list[Chunk] | None = None
        self._lengths: list[int] = []
        self._postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)

    def find(self, question: str, k: int) -> list[Chunk]:
        """The k sections that say most of the question's words, best first; those that say none are not among them."""
        with self._reading:  # the next cases are asked for at the same time, and the notes are read once
            sections = self._read() if self._sections is None else self._sections
        mean = sum(self._lengths) / len(sections) if sections else 0.0
        scores: defaultdict[int, float] = defaultdict(float)
        for term in dict.fromkeys(index_terms(question)):
            postings = self._postings.get(term, ())
            weight = math.log(1 + (len(sections) - len(postings) + 0.5) / (len(postings) + 0.5))
            for section, count in postings:
                norm = K1 * (1 - B + B * self._lengths[section] / mean)
                scores[section] += weight * count * (K1 + 1) / (count + norm)
        best = sorted(scores, key=lambda section: (-scores[section], section))[:k]
        return [sections[section] for section in best]

    def _read(self) -> list[Chunk]:
        sections = [section for note in self._notes() for section in _sections(note, self.folder)]
        for number, section in enumerate(sections):
            terms = index_terms(f"{section.heading_path or ''}\n{section.text}")
            self._lengths.append(len(terms))
            for term, count in Counter(terms).items():
                self._postings[term].append((number, count))
        self._sections = sections
        return sections

    def _notes(self) -> Iterator[Path]:
        for path in sorted(self.folder.rglob("*")):
            steps = path.relative_to(self.folder).parts
            is_hidden = any(step.startswith(".") or step in PRUNED for step in steps)
            if path.suffix.lower() in SUFFIXES and not is_hidden and path.is_file():
                yield path


def _sections(note: Path, folder: Path) -> Iterator[Chunk]:
    """The text below each heading, with the headings above it; sections without text are left out."""
    try:
        if note.stat().st_size > MOST_NOTE_BYTES:
            return
        text = note.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n").removeprefix("\ufeff")
    except OSError:
        return  # gone, or not ours to read: the search goes on without it
    rel_path = note.relative_to(folder).as_posix()
    for heading_path, line, lines in section_lines(text):
        blank = next((number for number, written in enumerate(lines) if written.strip()), len(lines))
        body = "\n".join(lines[blank:]).rstrip()
        if body:
            last = line + blank + body.count("\n")
            yield Chunk(None, None, rel_path, heading_path, body, start_line=line + blank, end_line=last)
