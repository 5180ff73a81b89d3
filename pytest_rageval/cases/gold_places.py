"""Golds looked for in the notes: which of a case's places are gone, and whether it can still be won without them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pytest_rageval.cases.note_folder import NoteFolder, NoteSection
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import suggestion
from pytest_rageval.matching.places import headings
from pytest_rageval.model import Anchor, EvalCase
from pytest_rageval.text import counted
from pytest_rageval.words import fold

ALL_NEEDED = frozenset({"multi_hop", "synthesis"})
"""Categories whose cases need all of their golds, where they do not group them."""


LIKE_HEADING = 0.75
"""How alike a heading must be to be suggested for one that is gone."""


class LostPlace(NamedTuple):
    """A gold place that is not in the notes: the position in `gold_supports`, what is gone, and what to do."""

    gold: int
    kind: Literal["file", "heading", "snippet"]
    message: str
    remedy: str


def lost_places(case: EvalCase, notes: NoteFolder) -> list[LostPlace]:
    """The golds of a case that no note holds any more."""
    places = (_lost(gold, anchor, notes) for gold, anchor in enumerate(case.gold.supports or ()))
    return [place for place in places if place is not None]


def cannot_be_won(case: EvalCase, lost: Collection[int], golds: int) -> bool:
    """Is what is left of the golds too little, whatever a system retrieves?

    Of groups one must be whole; without groups a case of `multi_hop` or `synthesis` needs all, any other one of them.
    """
    if not lost or not golds:
        return False
    if case.gold.support_groups:
        return all(set(group) & set(lost) for group in case.gold.support_groups)
    return case.category in ALL_NEEDED or len(set(lost)) == golds


def unwinnable(cases: Iterable[EvalCase], notes: NoteFolder) -> list[str]:
    """Keys of the cases that the notes do not let anybody win."""
    return [
        case.key
        for case in cases
        if cannot_be_won(case, {place.gold for place in lost_places(case, notes)}, len(case.gold.supports or ()))
    ]


def cannot_be_won_line(config: Mapping[str, Any]) -> str | None:
    """What config.json says of such cases, in one line; None where there are none, or no notes are configured."""
    labels = config.get("labels")
    if not labels or not labels["cannot_be_won"]:
        return None
    many = f"{len(labels['cannot_be_won'])} of {counted(labels['cases'], 'case')}"
    return f"{many} cannot be won: the notes lack their golds"


def unwinnable_line(config: Mapping[str, Any]) -> str | None:
    """The same with the command that tells more."""
    line = cannot_be_won_line(config)
    return f"{line}; rageval cases audit says which and why" if line else None


def _lost(gold: int, anchor: Anchor, notes: NoteFolder) -> LostPlace | None:
    there = notes.meant(anchor.rel_path)
    path = shown_value(anchor.rel_path)
    if not there:
        message = f"rel_path {path} is no note below {notes.folder}"
        return LostPlace(
            gold, "file", message, _remedy(notes.nearest(anchor.rel_path), "name the note that holds it now")
        )
    outlines = [sections for rel_path in there if (sections := notes.sections(rel_path)) is not None]
    if not outlines:
        return None
    wanted = headings(anchor.heading_path)
    below = [[section for section in sections if _is_below(section, wanted)] for sections in outlines]
    if not any(below):
        known = [section.heading_path for sections in outlines for section in sections if section.heading_path]
        close = suggestion(anchor.heading_path, known, cutoff=LIKE_HEADING)
        message = f"heading_path {shown_value(anchor.heading_path)} is no heading of {path}"
        return LostPlace(gold, "heading", message, _remedy(close, "name a heading of that note"))
    if anchor.snippets and not any(_quotes(sections, anchor.snippets) for sections in below):
        message = f"snippet {shown_value(anchor.snippets[0])} does not stand there in {path}"
        return LostPlace(gold, "snippet", message, "choose one from its text")
    return None


def _remedy(close: str | None, otherwise: str) -> str:
    return f"did you mean {close!r}?" if close is not None else f"{otherwise}, or drop the gold"


def _is_below(section: NoteSection, wanted: tuple[str, ...]) -> bool:
    return headings(section.heading_path)[: len(wanted)] == wanted


def _quotes(sections: Sequence[NoteSection], snippets: Sequence[str]) -> bool:
    """Does one of the snippets stand in the text, with its marks or without them?"""
    text = "\n".join(section.text for section in sections)
    forms = (fold(text), fold(_MARKS.sub("", text)))
    wanted = {form for snippet in snippets for form in (fold(snippet), fold(_MARKS.sub("", snippet))) if form}
    return not wanted or any(snippet in form for snippet in wanted for form in forms)


_MARKS = re.compile(r"[*_`~]+|^[ \t]*(?:>|[-+]|\d+[.)])[ \t]+", re.MULTILINE)
"""Emphasis, code, and the marks of quotations and lists, which a chunk's text may lack."""
