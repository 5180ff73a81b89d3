"""The notes that a system answers from, as far as matching needs them: the text of a gold's section."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pytest_rageval.language.words import fold
from pytest_rageval.matching.spellings import FilePath, is_under_heading
from pytest_rageval.model import Anchor


class Section(Protocol):
    """A section of a note."""

    @property
    def heading_path(self) -> str: ...
    @property
    def text(self) -> str: ...


class Notes(Protocol):
    """The notes that a system answers from."""

    def meant(self, rel_path: str, /) -> Sequence[str]:
        """Return the notes that a path can mean."""

    def called(self, path: FilePath, /) -> Sequence[str]:
        """Return the paths of the notes that can have the name of this file."""

    def sections(self, rel_path: str, /) -> Sequence[Section] | None:
        """Return the sections of a note, if it can be read."""


def text_below(notes: Notes, anchor: Anchor) -> str | None:
    """Return the text of a gold's section and of those below it; None if the notes lack it or have several."""
    meant = notes.meant(anchor.rel_path)
    if len(meant) != 1:
        return None
    sections = notes.sections(meant[0]) or ()
    below = [section.text for section in sections if is_under_heading(section.heading_path, anchor.heading_path)]
    return "\n".join(below) if below else None


def is_of_section(text: str, section: str) -> bool:
    """Return True if a text is a part of a section, holds it, or shares most of its lines with it."""
    folded = fold(text)
    whole = fold(section)
    if not folded or folded in whole or (whole and whole in folded):
        return True
    # Chunkers add headings, overlap and file names: most of the text, not all of it, must be the section's.
    lines = list(filter(None, map(fold, text.splitlines())))
    shared = sum(len(line) for line in lines if line in whole)
    return 2 * shared > sum(map(len, lines))
