"""Golds checked against the notes: places that no longer exist, and whether the case can still pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, NamedTuple

from pytest_rageval.cases.note_folder import NoteFolder, NoteSection
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import listed, suggestion
from pytest_rageval.language.words import fold
from pytest_rageval.matching.dialects import PlaceRules
from pytest_rageval.matching.places import match
from pytest_rageval.matching.spellings import is_under_heading, read_path, snippet_form
from pytest_rageval.model import Anchor, Answer, Chunk, EvalCase, Gold
from pytest_rageval.text import counted

ALL_NEEDED = frozenset({"multi_hop", "synthesis"})
"""Categories whose cases need all golds unless they group them."""


LIKE_HEADING = 0.75
"""Minimum similarity of a heading suggested for a missing one."""


class MissingPlace(NamedTuple):
    """A gold place that the notes lack: its position in `gold_supports`, what is missing, and the remedy."""

    gold: int
    kind: Literal["file", "heading", "snippet"]
    message: str
    remedy: str


def missing_places(case: EvalCase, notes: NoteFolder) -> list[MissingPlace]:
    """Return the golds of a case that no note contains, and that a run would match with no section of the notes."""
    places = (_missing(gold, anchor, notes) for gold, anchor in enumerate(case.gold.supports or ()))
    return [place for place in places if place is not None and not _is_matched(case, place.gold, notes)]


def _is_matched(case: EvalCase, gold: int, notes: NoteFolder) -> bool:
    """Return True if a run matches a gold with a section of the notes, however its path and headings are spelled."""
    anchor = (case.gold.supports or ())[gold]
    alone = replace(case, gold=Gold(supports=(anchor,)))
    chunks = []
    for rel_path in notes.called(read_path(anchor.rel_path)):
        for section in notes.sections(rel_path) or ():
            last = section.heading_path.rpartition(" > ")[2]
            reported = dict.fromkeys(filter(None, (section.heading_path, last)))  # in full, or the last heading alone
            chunks += [Chunk(rel_path=rel_path, heading_path=heading, text=section.text) for heading in reported]
    if not chunks:
        return False
    return any(match(alone, Answer(chunks=tuple(chunks)), rules=PlaceRules(notes=notes)).hits or ())


class WideGold(NamedTuple):
    """A gold that covers all sections of a note: its position in `gold_supports`, and their number."""

    gold: int
    sections: int


def wide_golds(case: EvalCase, notes: NoteFolder) -> Iterator[WideGold]:
    """Yield the golds whose heading is the only one at the top of a note, so that each of its sections matches."""
    for gold, anchor in enumerate(case.gold.supports or ()):
        if not anchor.heading_path or anchor.snippets:
            continue
        for rel_path in notes.meant(anchor.rel_path)[:1]:
            headed = [section.heading_path for section in notes.sections(rel_path) or () if section.heading_path]
            if len(headed) > 1 and all(is_under_heading(heading, anchor.heading_path) for heading in headed):
                yield WideGold(gold, len(headed))


def whole_notes_line(cases: Iterable[EvalCase], notes: NoteFolder) -> str | None:
    """Return a line that names the golds which cover a whole note; None if there are none."""
    named: list[str] = []
    for case in cases:
        wide = wide_golds(case, notes)
        named += [f"{case.id} (gold {gold + 1}, {sections} sections)" for gold, sections in wide]
    if not named:
        return None
    golds = counted(len(named), "gold covers", "golds cover")
    remedy = "name the section that holds the answer, or add a snippet"
    return f"{golds} a whole note, any section of which is a hit: {listed(named)}; {remedy}"


def cannot_be_won(case: EvalCase, lost: Collection[int], golds: int) -> bool:
    """Return True if too few golds are left for the case to pass.

    One group must be complete; without groups, cases of `multi_hop` or `synthesis` need all golds, others need one.
    """
    if not lost or not golds:
        return False
    if case.gold.support_groups:
        return all(set(group) & set(lost) for group in case.gold.support_groups)
    return case.category in ALL_NEEDED or len(set(lost)) == golds


def unwinnable(cases: Iterable[EvalCase], notes: NoteFolder) -> list[str]:
    """Return the keys of the cases that cannot pass because the notes lack their golds."""
    keys = []
    for case in cases:
        lost = {place.gold for place in missing_places(case, notes)}
        if cannot_be_won(case, lost, len(case.gold.supports or ())):
            keys.append(case.key)
    return keys


def cannot_be_won_line(config: Mapping[str, Any]) -> str | None:
    """Return one line about such cases from config.json; None if there are none or no notes are configured."""
    labels = config.get("labels")
    if not labels or not labels["cannot_be_won"]:
        return None
    lost = len(labels["cannot_be_won"])
    return f"{lost} of {counted(labels['cases'], 'case')} cannot be won: the notes lack their golds"


def unwinnable_line(config: Mapping[str, Any]) -> str | None:
    """Return the same line with the command that shows details."""
    line = cannot_be_won_line(config)
    return f"{line}; rageval cases audit says which and why" if line else None


def _missing(gold: int, anchor: Anchor, notes: NoteFolder) -> MissingPlace | None:
    there = notes.meant(anchor.rel_path)
    path = shown_value(anchor.rel_path)
    if not there:
        message = f"rel_path {path} is no note below {notes.folder}"
        remedy = _remedy(notes.nearest(anchor.rel_path), "name the note that holds it now")
        return MissingPlace(gold, "file", message, remedy)
    sections_of_notes = map(notes.sections, there)
    # A note that cannot be read (a PDF, say) may well have the heading.
    outlines = [sections for sections in sections_of_notes if sections is not None]
    if not outlines:
        return None
    below = [_sections_under(anchor.heading_path, sections) for sections in outlines]
    if not any(below):
        every = chain.from_iterable(outlines)
        known = [section.heading_path for section in every if section.heading_path]
        close = suggestion(anchor.heading_path, known, cutoff=LIKE_HEADING)
        message = f"heading_path {shown_value(anchor.heading_path)} is no heading of {path}"
        return MissingPlace(gold, "heading", message, _remedy(close, "name a heading of that note"))
    if anchor.snippets and not any(_quotes(sections, anchor.snippets) for sections in below):
        message = f"snippet {shown_value(anchor.snippets[0])} does not stand there in {path}"
        return MissingPlace(gold, "snippet", message, "choose one from its text")
    return None


def _sections_under(heading_path: str, sections: Iterable[NoteSection]) -> list[NoteSection]:
    return [section for section in sections if is_under_heading(section.heading_path, heading_path)]


def _remedy(close: str | None, otherwise: str) -> str:
    return f"did you mean {close!r}?" if close is not None else f"{otherwise}, or drop the gold"


def _quotes(sections: Sequence[NoteSection], snippets: Sequence[str]) -> bool:
    """Return True if the text contains one of the snippets, with or without Markdown marks."""
    text = "\n".join(section.text for section in sections)
    wanted = [snippet for snippet in snippets if snippet.strip()]
    if not wanted:
        return True
    for form in (fold, snippet_form):
        formed = form(text)
        if any(form(snippet) in formed for snippet in wanted):
            return True
    return False
