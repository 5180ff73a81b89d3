"""Hashes of the notes that a label was made from, kept in the case, so that a changed note can be told later."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pytest_rageval.model import EvalCase

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
