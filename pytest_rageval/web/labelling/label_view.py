"""The values and the form of the label page: chunks with their marks, the selected chunk's text, the actions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field

from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.pools import Candidate, PoolView
from pytest_rageval.text import counted
from pytest_rageval.words import fold

MOST_LINES, LONGEST_LINE = 200, 2_000
"""Limits of a chunk's displayed text; a snippet may include lines beyond them by number."""
SYMBOLS = {"gold": "✔", "irrelevant": "✘", "": ""}


class RowView(NamedTuple):
    """One chunk of the list. `origin` shows its groups of golds, and whether it is listed, retrieved or searched."""

    number: int
    mark: str
    symbol: str
    origin: str
    place: str
    heading: str
    is_meant: bool


class LineView(NamedTuple):
    """One line of a chunk; `is_marked` if it is part of a snippet."""

    number: int
    text: str
    is_marked: bool


@dataclass(frozen=True, slots=True)
class LabelView:
    """The values that the label page shows of a session."""

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
        """Return the title of the list: the sources and the number of its chunks."""
        pool = self.session.pool
        parts = [counted(len(pool.systems), "system")] if pool.systems else []
        parts += ["search"] if pool.has_search else []
        return f"chunks of {' + '.join(parts) or 'the case'} ({len(pool.candidates)})"

    @property
    def neighbours(self) -> tuple[str | None, str | None]:
        """Return the ids of the previous and the next case."""
        cases, at = self.session.cases, self.session.at
        return cases[at - 1].id if at else None, cases[at + 1].id if at + 1 < len(cases) else None


def label_view(session: LabelSession, *, hides_scores: bool = False) -> LabelView:
    """Return the current view of a session."""
    candidates, view = session.pool.candidates, session.view()
    golds_here = view.golds[min(session.row, len(candidates) - 1)] if candidates else frozenset()
    rows = [_row(session, view, at, candidate) for at, candidate in enumerate(candidates)]
    groups: dict[int, list[int]] = {}
    for number, golds in enumerate(view.golds, start=1):
        for group in sorted({session.marks.group_of(gold) or 0 for gold in golds}):
            groups.setdefault(group, []).append(number)
    lines, more = _lines(session, golds_here)
    candidate = session.candidate
    note = candidate.origin(is_gold=bool(golds_here), hides_ranks=hides_scores) if candidate is not None else ""
    return LabelView(
        session,
        rows,
        lines,
        more,
        [note] if note else [],
        sorted(groups.items()),
        [row.number for row in rows if row.mark == "irrelevant"],
        _draft(session),
    )


def _row(session: LabelSession, view: PoolView, at: int, candidate: Candidate) -> RowView:
    golds = view.golds[at]
    mark = "gold" if golds else "irrelevant" if view.irrelevant[at] else ""
    groups = sorted({group for gold in golds if (group := session.marks.group_of(gold))})
    origin = " ".join(map(str, groups)) + ("–" if candidate.is_listed else "" if candidate.is_retrieved else "S")
    chunk = candidate.chunk
    place = chunk.rel_path or chunk.chunk_id or chunk.doc_id or "no place"
    headings = (part.strip().lstrip("# ") for part in (chunk.heading_path or "").split(">"))
    heading = " › ".join(filter(None, headings))
    return RowView(at + 1, mark, SYMBOLS[mark], origin, place, heading, at in session.selected)


def _lines(session: LabelSession, golds_here: Iterable[int]) -> tuple[list[LineView], int]:
    """Return the text lines of the selected chunk, and how many more it has."""
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
    """Yield the spans of the golds' snippets in the text of their chunk."""
    for gold in golds_here:
        for snippet in getattr(session.marks.golds[gold], "snippets", ()):
            start = text.find(snippet)
            if start < 0:
                start = text.casefold().find(fold(snippet))
            if start >= 0:
                yield start, start + len(snippet)


def _draft(session: LabelSession) -> str | None:
    """Return the draft as JSON, indented for editing."""
    if session.drafts is None:
        return None
    record: Any = json.loads(session.drafts.text_of(session.case, session.marks))
    return json.dumps(record, ensure_ascii=False, indent=1)


ANSWER_WITHIN_S = 60.0
"""Timeout in seconds for another question to the systems."""
LONGEST_WORDS, LONGEST_DRAFT = 2_000, 500_000
Action = Callable[[LabelSession], object]
Blank = Annotated[int | None, BeforeValidator(lambda written: None if written == "" else written)]
"""An optional number, which a form sends as blank."""


class LabelForm(BaseModel):
    """The form of a mark: the place, the hash of the case when the page was made (`seen`), and the action (`do`)."""

    file: str = ""
    dataset: str = ""
    case: str
    row: int = Field(0, ge=0)
    start: Blank = None
    group: int = Field(1, ge=1, le=9)
    seen: str = ""
    do: str
    words: str = Field("", max_length=LONGEST_WORDS)
    first: Blank = None
    last: Blank = None
    draft: str = Field("", max_length=LONGEST_DRAFT)


def action_of(form: LabelForm) -> Action | None:
    """Return the action of a form, or None if it is unknown."""
    if form.do.startswith("group-") and form.do[6:] in set("123456789"):
        return lambda session: session.put_in_group(int(form.do[6:]))
    plain = _PLAIN.get(form.do)
    if plain is not None:
        return plain
    with_form = _WITH_FORM.get(form.do)
    return None if with_form is None else lambda session: with_form(session, form)


def _find(session: LabelSession, form: LabelForm) -> None:
    if form.words.strip():
        session.find(form.words.strip())


def _ask(session: LabelSession, form: LabelForm) -> None:
    """Query the systems with another question, and report a timeout."""
    question = form.words.strip()
    if not question:
        session.message = "write what to ask"
        return
    future = session.ask_more(question)
    try:
        session.take_more(session.at, future.result(ANSWER_WITHIN_S))
    except (FutureTimeoutError, CancelledError):
        session.message = f"no answer within {ANSWER_WITHIN_S:g} s"


def _snippet(session: LabelSession, form: LabelForm) -> None:
    candidate = session.candidate
    lines = (candidate.chunk.text or "").split("\n") if candidate is not None else []
    first = form.first or 0
    last = form.last or first
    if not 1 <= first <= last <= len(lines):
        session.message = f"choose lines from 1 to {len(lines)}" if lines else "this chunk has no text"
        return
    session.add_snippet("\n".join(lines[first - 1 : last]))


def _unanswerable(session: LabelSession) -> None:
    """Mark the case as unanswerable. If it has golds, the page asks whether to `clear` them first."""
    if session.marks.golds:
        session.message = ""  # the page asks whether to clear them
    else:
        session.set_answerable(is_answerable=False)


def _decide(session: LabelSession, decision: Any) -> None:
    if session.drafts is None:
        session.message = "accept and drop are for drafts"
    else:
        session.decide(decision)


def _edit(session: LabelSession, form: LabelForm) -> None:
    if form.draft.strip():
        session.edit_draft(" ".join(line.strip() for line in form.draft.splitlines()))


_PLAIN: Mapping[str, Action] = {
    "gold": LabelSession.toggle_gold,
    "irrelevant": LabelSession.toggle_irrelevant,
    "next-group": LabelSession.next_group,
    "answerable": lambda session: session.set_answerable(is_answerable=True),
    "unanswerable": _unanswerable,
    "clear": lambda session: session.set_answerable(is_answerable=False),
    "skip": LabelSession.skip,
    "undo": LabelSession.undo,
    "redo": LabelSession.redo,
    "next": lambda session: session.go(1),
    "previous": lambda session: session.go(-1),
    "unlabelled": LabelSession.next_unlabelled,
    "accept": lambda session: _decide(session, "accepted"),
    "drop": lambda session: _decide(session, "dropped"),
}
_WITH_FORM: Mapping[str, Callable[[LabelSession, LabelForm], None]] = {
    "find": _find, "ask": _ask, "snippet": _snippet, "edit": _edit,
}  # fmt: skip
