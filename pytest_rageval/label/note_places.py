"""Golds of chunks in the spelling of the notes: the note's own heading, and a snippet for an introduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_rageval.cases.marks import Kind, Place, label_place
from pytest_rageval.cases.note_folder import NoteFolder, NoteSection
from pytest_rageval.language.words import fold
from pytest_rageval.matching.dialects import PlaceRules
from pytest_rageval.matching.places import match
from pytest_rageval.matching.spellings import heading_fit, is_under_heading, read_headings, read_path
from pytest_rageval.model import Anchor, Answer, Chunk, EvalCase, Gold

LONGEST_SNIPPET = 200
"""Characters of the snippet of an introduction."""


def gold_place(chunk: Chunk, kind: Kind, notes: NoteFolder | None) -> Place | None:
    """Return the place by which a chunk is labelled; None if it has no name of this kind.

    The heading is the note's own, if the notes are known and it matches the chunk. A chunk above the first inner
    heading of its section gets a snippet: the heading alone would cover all that stands below it, too.
    """
    place = label_place(chunk, kind)
    if notes is None or not isinstance(place, Anchor) or not place.heading_path:
        return place
    sections = _sections(place, notes)
    own = _own_section(place, sections)
    if own is None:
        return place
    named = replace(place, heading_path=own.heading_path)
    below = [each for each in sections if each != own and is_under_heading(each.heading_path, own.heading_path)]
    if snippet := _introduction(chunk, own, below):
        named = replace(named, snippets=(snippet,))
    return named if _matches(named, chunk) else place


def _sections(place: Anchor, notes: NoteFolder) -> Sequence[NoteSection]:
    paths = notes.meant(place.rel_path)
    if len(paths) != 1:
        return ()
    return notes.sections(paths[0]) or ()


def _own_section(place: Anchor, sections: Sequence[NoteSection]) -> NoteSection | None:
    """Return the deepest section whose headings are those of a place; None if there are several."""
    headings = read_headings(place.heading_path)
    path = read_path(place.rel_path)
    fitting = [each for each in sections if each.heading_path and heading_fit(each.heading_path, headings, path)]
    depths = [len(read_headings(each.heading_path, is_whole=True).parts) for each in fitting]
    greatest = max(depths, default=0)
    deepest = [each for each, depth in zip(fitting, depths, strict=True) if depth == greatest]
    return deepest[0] if len(deepest) == 1 else None


def _introduction(chunk: Chunk, own: NoteSection, below: Sequence[NoteSection]) -> str:
    """Return the first line of a section if a chunk quotes it, and nothing of the sections below; else nothing."""
    if not below:
        return ""
    text = fold(chunk.text or "")
    if any(fold(_first_line(section.text)) in text for section in below if section.text):
        return ""
    first = _first_line(own.text)[:LONGEST_SNIPPET]
    return first if first and fold(first) in text else ""


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _matches(place: Anchor, chunk: Chunk) -> bool:
    """Return True if a chunk is shown as marked by this place."""
    case = EvalCase("", "?", gold=Gold(supports=(place,)))
    return any(match(case, Answer(chunks=(chunk,)), rules=PlaceRules(is_strict=True)).hits or ())
