"""The label page as values: rows of chunks with their marks, the text of the one pointed at, what was said so far."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.pools import Candidate, PoolView
from pytest_rageval.text import counted
from pytest_rageval.words import fold

MOST_LINES, LONGEST_LINE = 200, 2_000
"""Of the text of a chunk that are shown; a snippet may reach beyond them by its numbers."""
SYMBOLS = {"gold": "✔", "irrelevant": "✘", "": ""}


class RowView(NamedTuple):
    """One chunk of the list. `origin` says which group it is in, and who found it."""

    number: int
    mark: str
    symbol: str
    origin: str
    place: str
    heading: str
    is_meant: bool


class LineView(NamedTuple):
    """One line of a chunk; `is_marked`: it is part of a snippet."""

    number: int
    text: str
    is_marked: bool


@dataclass(frozen=True, slots=True)
class LabelView:
    """All that the page shows of a session."""

    session: LabelSession
    rows: list[RowView]
    lines: list[LineView]
    more_lines: int
    notes: list[str]
    groups: list[tuple[int, list[int]]]
    irrelevant: list[int]
    draft: str | None

    @property
    def title(self) -> str:
        """Who gave the chunks."""
        pool = self.session.pool
        parts = [counted(len(pool.systems), "system")] if pool.systems else []
        parts += ["search"] if pool.has_search else []
        return f"chunks of {' + '.join(parts) or 'the case'} ({len(pool.candidates)})"

    @property
    def neighbours(self) -> tuple[str | None, str | None]:
        """Ids of the cases before and after."""
        cases, at = self.session.cases, self.session.at
        return cases[at - 1].id if at else None, cases[at + 1].id if at + 1 < len(cases) else None


def label_view(session: LabelSession, *, hides_scores: bool = False) -> LabelView:
    """The session as it is now."""
    candidates, view = session.pool.candidates, session.view()
    golds_here = view.golds[min(session.row, len(candidates) - 1)] if candidates else frozenset()
    rows = [_row(session, view, at, candidate) for at, candidate in enumerate(candidates)]
    groups: dict[int, list[int]] = {}
    for number, golds in enumerate(view.golds, start=1):
        for group in sorted({session.marks.group_of(gold) or 0 for gold in golds}):
            groups.setdefault(group, []).append(number)
    lines, more = _lines(session, golds_here)
    notes = list(_notes(session, is_gold=bool(golds_here), hides_scores=hides_scores))
    return LabelView(
        session, rows, lines, more, notes, sorted(groups.items()),
        [row.number for row in rows if row.mark == "irrelevant"], _draft(session),
    )  # fmt: skip


def _row(session: LabelSession, view: PoolView, at: int, candidate: Candidate) -> RowView:
    golds = view.golds[at]
    mark = "gold" if golds else "irrelevant" if view.irrelevant[at] else ""
    groups = sorted({group for gold in golds if (group := session.marks.group_of(gold))})
    origin = " ".join(map(str, groups))
    if not session.is_blind:
        origin += "–" if candidate.is_listed else "" if candidate.is_retrieved else "S"
    chunk = candidate.chunk
    place = chunk.rel_path or chunk.chunk_id or chunk.doc_id or "no place"
    headings = (part.strip().lstrip("# ") for part in (chunk.heading_path or "").split(">"))
    heading = " › ".join(filter(None, headings))
    return RowView(at + 1, mark, SYMBOLS[mark], origin, place, heading, at in session.selected)


def _lines(session: LabelSession, golds_here: Iterable[int]) -> tuple[list[LineView], int]:
    """The text of the chunk pointed at, and how many more lines it has."""
    candidate = session.candidate
    text = (candidate.chunk.text or "") if candidate is not None else ""
    if not text:
        return [], 0
    spans = list(_snippet_spans(session, golds_here, text))
    lines, start = [], 0
    written = text.split("\n")
    for number, line in enumerate(written[:MOST_LINES], start=1):
        end = start + len(line)
        is_marked = any(first < end and last > start for first, last in spans)
        shown = line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}… ({len(line):,} characters)"
        lines.append(LineView(number, shown, is_marked))
        start = end + 1
    return lines, max(0, len(written) - MOST_LINES)


def _snippet_spans(session: LabelSession, golds_here: Iterable[int], text: str) -> Iterator[tuple[int, int]]:
    """Where snippets of the chunk's golds stand in its text."""
    for gold in golds_here:
        for snippet in getattr(session.marks.golds[gold], "snippets", ()):
            start = text.find(snippet)
            if start < 0:
                start = text.casefold().find(fold(snippet))
            if start >= 0:
                yield start, start + len(snippet)


def _notes(session: LabelSession, *, is_gold: bool, hides_scores: bool) -> Iterator[str]:
    """What else there is to say of the chunk pointed at."""
    candidate = session.candidate
    if candidate is None or session.is_blind:
        return
    if note := candidate.origin(is_gold=is_gold, hides_ranks=hides_scores):
        yield note


def _draft(session: LabelSession) -> str | None:
    """The draft as it would be written, laid out to be edited."""
    if session.drafts is None:
        return None
    record: Any = json.loads(session.drafts.text_of(session.case, session.marks))
    return json.dumps(record, ensure_ascii=False, indent=1)
