"""Read the notes of a corpus, `<corpus>/<vault>/<folder>/<note>.md`, front matter and all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

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

    @property
    def folder(self) -> str:
        """The folder of the note inside its vault; empty at the top."""
        return self.rel_path.rpartition("/")[0]


def read_notes(corpus: Path) -> tuple[Note, ...]:
    """Every `*.md` file below the vaults of the corpus, sorted by vault and path. Hidden files are no notes."""
    return tuple(
        _read_note(path, vault.name, path.relative_to(vault).as_posix())
        for vault in sorted(corpus.iterdir())
        if vault.is_dir() and not vault.name.startswith(".")
        for path in sorted(vault.rglob("*.md"), key=lambda path: path.relative_to(vault).as_posix())
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(vault).parts)
    )


def _read_note(path: Path, vault: str, rel_path: str) -> Note:
    if not rel_path.isprintable():  # a name that is no UTF-8 comes as lone surrogates, which must not reach JSON
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
    """The `key: value` lines between two `---` at the very top, and how many lines they take.

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
