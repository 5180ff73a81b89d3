"""The notes of a corpus: Markdown files in vaults, read with their front matter."""

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


def read_notes(corpus: Path) -> tuple[Note, ...]:
    """Read every `*.md` file below the vaults of the corpus, sorted by vault and path, without hidden files."""
    notes: list[Note] = []
    for vault in sorted(corpus.iterdir()):
        if vault.is_dir() and not vault.name.startswith("."):
            notes += [_read_note(vault / name, vault.name, name) for name in _names_in(vault)]
    return tuple(notes)


def _names_in(vault: Path) -> list[str]:
    """Return the paths of a vault's notes, relative to it, sorted."""
    rel_paths = [path.relative_to(vault) for path in vault.rglob("*.md") if path.is_file()]
    return sorted(rel_path.as_posix() for rel_path in rel_paths if not _is_hidden(rel_path))


def _is_hidden(rel_path: Path) -> bool:
    return any(part.startswith(".") for part in rel_path.parts)


def _read_note(path: Path, vault: str, rel_path: str) -> Note:
    if not rel_path.isprintable():  # a name that is not UTF-8 has lone surrogates, which must not reach JSON
        return Note(vault, ascii(rel_path), problem="unprintable_name")
    if path.stat().st_size > NOTE_BYTES:
        return Note(vault, rel_path, problem="too_large")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        return Note(vault, rel_path, problem="not_utf8")
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")
    lines = tuple(text.split("\n"))
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
