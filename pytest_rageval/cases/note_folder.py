"""A folder of notes: which file a path of a case means, and the sections of a Markdown file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_rageval.cases.discovery import PRUNED
from pytest_rageval.io.suggestions import suggestion
from pytest_rageval.matching.places import path_form
from pytest_rageval.model import EvalCase

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

WITH_SECTIONS = frozenset({".md", ".markdown", ".txt"})
"""Files whose sections are known; of others there is nothing but that they are there."""
LIKE_PATH = 0.85
"""How alike a path must be to be suggested for one that is gone: most paths of a folder are somewhat alike."""
MOST_NOTE_BYTES = 4 * 2**20
"""Longer files are no notes, and their sections are not looked at."""


class NoteSection(NamedTuple):
    """A heading with all headings above it (`# Title > ## Section`; blank before the first), the text below it up to
    the next heading, without blank lines around, and the 1-based line of the file that the text begins at."""

    heading_path: str
    text: str
    line: int


class NoteFolder:
    """The files below a folder by the ends of their paths: cases name notes from the vault on, or from the root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root = path_form(folder.resolve().as_posix())
        self._by_name: dict[str, list[str]] = {}
        for rel_path in _files(folder):
            self._by_name.setdefault(path_form(rel_path).rpartition("/")[2], []).append(rel_path)
        self._sections: dict[str, tuple[NoteSection, ...] | None] = {}

    @property
    def rel_paths(self) -> list[str]:
        return sorted(rel_path for listed in self._by_name.values() for rel_path in listed)

    def meant(self, rel_path: str) -> list[str]:
        """The notes that a path of a case may mean: it is the end of theirs, or names folders above the notes too."""
        wanted = path_form(rel_path).removeprefix("./").strip("/")
        listed = self._by_name.get(wanted.rpartition("/")[2], ())
        return [there for there in listed if self._fits(path_form(there), wanted)]

    def _fits(self, there: str, wanted: str) -> bool:
        return f"/{there}".endswith(f"/{wanted}") or f"{self._root}/{there}".endswith(f"/{wanted}")

    def nearest(self, rel_path: str) -> str | None:
        """The note that a path which means none may have meant: one of that name elsewhere, else one spelled alike."""
        moved = self._by_name.get(path_form(rel_path).rpartition("/")[2])
        return moved[0] if moved else suggestion(rel_path, self.rel_paths, cutoff=LIKE_PATH)

    def sections(self, rel_path: str) -> tuple[NoteSection, ...] | None:
        """The sections of a note; None where it is of a kind that we do not read, too long, or cannot be read."""
        if rel_path not in self._sections:
            self._sections[rel_path] = _sections(self.folder / rel_path)
        return self._sections[rel_path]


def _files(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in PRUNED)
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(place, name).relative_to(folder).as_posix()


def _sections(note: Path) -> tuple[NoteSection, ...] | None:
    try:
        if note.suffix.lower() not in WITH_SECTIONS or note.stat().st_size > MOST_NOTE_BYTES:
            return None
        text = note.read_bytes().decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    except OSError:
        return None
    return tuple(note_sections(text))


def note_sections(text: str) -> Iterator[NoteSection]:
    """The sections of a Markdown text in their order, those without text among them; front matter is none of them."""
    for heading_path, line, lines in section_lines(text):
        blank = next((number for number, written in enumerate(lines) if written.strip()), len(lines))
        yield NoteSection(heading_path, "\n".join(lines[blank:]).rstrip(), line + blank)


def section_lines(text: str) -> Iterator[tuple[str, int, list[str]]]:
    """Of each section the path of its heading, the 1-based line that it begins at, and its lines as they stand."""
    lines = text.split("\n")
    first = _front_matter(lines)
    lines = lines[first:]
    heading_path, start = "", 0
    for heading, begin, end in [*_headings("\n".join(lines)), ("", len(lines), len(lines))]:
        yield heading_path, first + start + 1, lines[start:begin]
        heading_path, start = heading, end


def _front_matter(lines: list[str]) -> int:
    """How many lines at the top are front matter."""
    if lines and lines[0].strip() == "---":
        for number, line in enumerate(lines[1:], start=1):
            if line.strip() in ("---", "..."):
                return number + 1
    return 0


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt  # here, because most runs read no notes, and it is 60 modules

    markdown = MarkdownIt("commonmark").enable("table")
    markdown.core.ruler.enableOnly(["normalize", "block"])  # what stands inside a line is not looked at
    return markdown


def _headings(text: str) -> Iterator[tuple[str, int, int]]:
    """The path of each heading, with the 0-based lines that it begins and ends at."""
    tokens = _markdown().parse(text)
    trail: list[tuple[int, str]] = []
    for position, token in enumerate(tokens):
        if token.type == "heading_open" and not token.level and token.map:
            depth = int(token.tag[1:])
            trail = [above for above in trail if above[0] < depth]
            trail.append((depth, f"{'#' * depth} {' '.join(tokens[position + 1].content.split())}"))
            yield " > ".join(heading for _, heading in trail), token.map[0], token.map[1]


# ── versions of notes ───────────────────────────────────────────────────────────────────────────────────────────


NOTE_HASHES = "note_hashes"
"""The key in a case's metadata: an object of hashes by `rel_path`."""
HASH_DIGITS = 16


def note_hash(note: Path) -> str | None:
    """Sixteen hex digits of the SHA-256 of a note's bytes; None where there is no such file."""
    try:
        return hashlib.sha256(note.read_bytes()).hexdigest()[:HASH_DIGITS]
    except OSError:
        return None


def note_hashes(notes: Path, rel_paths: Iterable[str]) -> dict[str, str]:
    """The hash of each of these notes that is there, by path; a path may begin with the folder's own name."""
    hashes: dict[str, str] = {}
    for rel_path in dict.fromkeys(rel_paths):
        note = note_at(notes, rel_path)
        if note is not None and (digits := note_hash(note)):
            hashes[rel_path] = digits
    return hashes


def note_at(notes: Path, rel_path: str) -> Path | None:
    """The file that a path of a case means in a folder of notes, with or without the folder's own name before it."""
    folder = notes.resolve()
    steps = Path(rel_path.replace("\\", "/")).parts
    for skipped in range(min(len(steps), len(folder.parts) + 1)):
        if skipped and steps[:skipped] != folder.parts[len(folder.parts) - skipped :]:
            continue
        note = folder.joinpath(*steps[skipped:])
        if note.resolve().is_relative_to(folder) and note.is_file():
            return note
    return None


def changed_notes(case: EvalCase, notes: Path) -> Iterator[str]:
    """Paths of golds whose note is another one now than when the case was labelled, or is gone."""
    hashes = case.metadata.get(NOTE_HASHES)
    golds = {anchor.rel_path for anchor in (*(case.gold.supports or ()), *(case.gold.irrelevant_supports or ()))}
    for rel_path, digits in hashes.items() if isinstance(hashes, Mapping) else ():
        if rel_path in golds and note_hashes(notes, [rel_path]).get(rel_path) != digits:
            yield rel_path
