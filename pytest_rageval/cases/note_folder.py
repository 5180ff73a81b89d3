"""A folder of notes: lookup by a case's path, and the sections of Markdown files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_rageval.cases.discovery import PRUNED
from pytest_rageval.io.suggestions import suggestion
from pytest_rageval.matching.dialects import FileNames
from pytest_rageval.matching.spellings import FilePath, path_form
from pytest_rageval.model import EvalCase

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

WITH_SECTIONS = frozenset({".md", ".markdown", ".txt"})
"""Suffixes of files whose sections are read."""
LIKE_PATH = 0.85
"""Minimum similarity of a path suggested for a missing one; most paths of a folder are somewhat similar."""
MOST_NOTE_BYTES = 4 * 2**20
"""Longest note in bytes; sections of longer files are not read."""


class NoteSection(NamedTuple):
    """A section of a note: the path of its heading, its text without surrounding blank lines, its 1-based first line.

    The path includes all headings above (`# Title > ## Section`); it is empty before the first heading.
    """

    heading_path: str
    text: str
    line: int


class NoteFolder:
    """The files below a folder by the end of their path: cases name notes relative to the vault or to the root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root = path_form(folder.resolve().as_posix())
        self._sections: dict[str, tuple[NoteSection, ...] | None] = {}

    @cached_property
    def _by_name(self) -> Mapping[str, list[str]]:
        by_name: dict[str, list[str]] = {}
        for rel_path in _files(self.folder):
            by_name.setdefault(path_form(rel_path).rpartition("/")[2], []).append(rel_path)
        return by_name

    @cached_property
    def _names(self) -> FileNames:
        return FileNames(self.rel_paths)

    def called(self, path: FilePath) -> list[str]:
        """Return the notes that can have the name of this file."""
        return self._names.called(path)

    @property
    def rel_paths(self) -> list[str]:
        return sorted(chain.from_iterable(self._by_name.values()))

    def meant(self, rel_path: str) -> list[str]:
        """Return the notes that a case's path can mean: it ends theirs, or has folders above the notes too."""
        wanted = path_form(rel_path).removeprefix("./").strip("/")
        listed = self._by_name.get(wanted.rpartition("/")[2], ())
        return [there for there in listed if self._fits(path_form(there), wanted)]

    def _fits(self, there: str, wanted: str) -> bool:
        return f"/{there}".endswith(f"/{wanted}") or f"{self._root}/{there}".endswith(f"/{wanted}")

    def nearest(self, rel_path: str) -> str | None:
        """Return the likely note for a path without a match: of the same name elsewhere, else of a similar path."""
        moved = self._by_name.get(path_form(rel_path).rpartition("/")[2])
        return moved[0] if moved else suggestion(rel_path, self.rel_paths, cutoff=LIKE_PATH)

    def sections(self, rel_path: str) -> tuple[NoteSection, ...] | None:
        """Return the sections of a note; None if it is of another kind, too long or unreadable."""
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
    """Yield the sections of a Markdown text in order, including empty ones, without front matter."""
    for heading_path, line, lines in section_lines(text):
        blank = next((number for number, written in enumerate(lines) if written.strip()), len(lines))
        yield NoteSection(heading_path, "\n".join(lines[blank:]).rstrip(), line + blank)


def section_lines(text: str) -> Iterator[tuple[str, int, list[str]]]:
    """Yield each section's heading path, its 1-based first line, and its lines unchanged."""
    lines = text.split("\n")
    first = _front_matter(lines)
    lines = lines[first:]
    heading_path = ""
    start = 0
    for heading, begin, end in [*_headings("\n".join(lines)), ("", len(lines), len(lines))]:
        yield heading_path, first + start + 1, lines[start:begin]
        heading_path = heading
        start = end


def _front_matter(lines: list[str]) -> int:
    """Return the number of lines of front matter."""
    if lines and lines[0].strip() == "---":
        for number, line in enumerate(lines[1:], start=1):
            if line.strip() in ("---", "..."):
                return number + 1
    return 0


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt  # here, because most runs read no notes, and it is 60 modules

    markdown = MarkdownIt("commonmark").enable("table")
    markdown.core.ruler.enableOnly(["normalize", "block"])  # inline syntax is not needed
    return markdown


def _headings(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the path of each heading with its 0-based first line and the line after it."""
    tokens = _markdown().parse(text)
    trail: list[tuple[int, str]] = []
    for position, token in enumerate(tokens):
        if token.type == "heading_open" and not token.level and token.map:
            depth = int(token.tag[1:])
            title = " ".join(tokens[position + 1].content.split())
            trail = [above for above in trail if above[0] < depth]
            trail.append((depth, f"{'#' * depth} {title}"))
            first_line, line_after = token.map
            yield " > ".join(heading for _, heading in trail), first_line, line_after


NOTE_HASHES = "note_hashes"
"""The key in a case's metadata: an object of hashes by `rel_path`."""
HASH_DIGITS = 16


def note_hash(note: Path) -> str | None:
    """Return 16 hex digits of the SHA-256 of a note's bytes; None if the file does not exist."""
    try:
        return hashlib.sha256(note.read_bytes()).hexdigest()[:HASH_DIGITS]
    except OSError:
        return None


def note_hashes(notes: Path, rel_paths: Iterable[str]) -> dict[str, str]:
    """Return the hashes of the notes that exist, by path; a path may begin with the folder's own name."""
    hashes: dict[str, str] = {}
    for rel_path in dict.fromkeys(rel_paths):
        note = note_at(notes, rel_path)
        if note is not None and (digits := note_hash(note)):
            hashes[rel_path] = digits
    return hashes


def note_at(notes: Path, rel_path: str) -> Path | None:
    """Return the file that a case's path means in a folder of notes, with or without the folder's own name."""
    folder = notes.resolve()
    steps = Path(rel_path.replace("\\", "/")).parts
    for skipped in range(min(len(steps), len(folder.parts) + 1)):
        if skipped and steps[:skipped] != folder.parts[len(folder.parts) - skipped :]:
            continue
        note = folder.joinpath(*steps[skipped:])
        # `..` or a link in a case file must not lead out of the notes.
        if note.resolve().is_relative_to(folder) and note.is_file():
            return note
    return None


def changed_notes(case: EvalCase, notes: Path) -> Iterator[str]:
    """Yield the paths of golds whose note was changed or deleted since the case was labelled."""
    hashes = case.metadata.get(NOTE_HASHES)
    if not isinstance(hashes, Mapping):
        return
    anchors = (*(case.gold.supports or ()), *(case.gold.irrelevant_supports or ()))
    golds = {anchor.rel_path for anchor in anchors}
    for rel_path, digits in hashes.items():
        if rel_path in golds and note_hashes(notes, [rel_path]).get(rel_path) != digits:
            yield rel_path
