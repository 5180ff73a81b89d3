"""The values and the form of the label page: chunks with their marks, the selected chunk's text, the actions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import Field

from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.marks_view import MarksView, earlier_turns, expected_answers, marks_view
from pytest_rageval.model import Turn
from pytest_rageval.web.label_desk import Blank, LabelPlace

MOST_LINES, LONGEST_LINE = 200, 2_000
"""Limits of a chunk's displayed text; a snippet may include lines beyond them by number."""


class LineView(NamedTuple):
    """One line of a chunk; `is_marked` if it is part of a snippet."""

    number: int
    text: str
    is_marked: bool


@dataclass(frozen=True, slots=True)
class LabelView:
    """The values that the label page shows of a session; `of` is what every face shows."""

    session: LabelSession
    of: MarksView
    lines: list[LineView]
    more_lines: int
    draft: str | None
    expected: str
    earlier: tuple[Turn, ...]

    @property
    def groups(self) -> list[tuple[int, list[int]]]:
        return sorted(self.of.groups.items())

    @property
    def neighbours(self) -> tuple[str | None, str | None]:
        """Return the ids of the previous and the next case."""
        cases = self.session.cases
        at = self.session.at
        previous = cases[at - 1].id if at > 0 else None
        following = cases[at + 1].id if at + 1 < len(cases) else None
        return previous, following


def label_view(session: LabelSession, *, hides_scores: bool = False) -> LabelView:
    """Return the current view of a session."""
    view = marks_view(session, hides_ranks=hides_scores)
    written = view.text.split("\n") if view.text else []
    lines = []
    start = 0
    for number, line in enumerate(written[:MOST_LINES], start=1):
        end = start + len(line)
        is_marked = any(first < end and last > start for first, last in view.spans)
        shown = line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}… ({len(line):,} characters)"
        lines.append(LineView(number, shown, is_marked))
        # With the line end, which `split` removed.
        start = end + 1
    return LabelView(
        session,
        view,
        lines,
        more_lines=max(0, len(written) - MOST_LINES),
        draft=_draft(session),
        expected=expected_answers(session),
        earlier=earlier_turns(session),
    )


def _draft(session: LabelSession) -> str | None:
    """Return the draft as JSON, indented for editing."""
    if session.drafts is None:
        return None
    record: Any = json.loads(session.drafts.text_of(session.states[session.at]))
    return json.dumps(record, ensure_ascii=False, indent=1)


ANSWER_WITHIN_S = 60.0
"""Timeout in seconds for another question to the systems."""
LONGEST_WORDS = 2_000
LONGEST_DRAFT = 500_000
Action = Callable[[LabelSession], object]


class LabelForm(LabelPlace):
    """The form of a mark: its place, the hash of the case when the page was made (`seen`), and the action.

    do      the word of a button
    toggle  the row of the chunk whose checkbox was pressed
    """

    case: str
    seen: str = ""
    do: str = ""
    toggle: Blank = None
    words: str = Field("", max_length=LONGEST_WORDS)
    first: Blank = None
    last: Blank = None
    draft: str = Field("", max_length=LONGEST_DRAFT)


def words_of(form: LabelForm) -> str:
    """Return what a form was to do."""
    if form.toggle is not None:
        return f"tick or untick chunk {form.toggle + 1}"
    if form.do in ("gold", "irrelevant", "snippet"):
        return f"{form.do} for chunk {form.row + 1}"
    return form.do


def action_of(form: LabelForm) -> Action | None:
    """Return the action of a form, or None if it is unknown."""
    if form.toggle is not None:
        return lambda session: _toggle(session, form.toggle or 0)
    if re.fullmatch("group-[1-9]", form.do):
        return lambda session: session.do("put_in_group", int(form.do[6:]))
    if form.do in _COMMANDS:
        return lambda session: session.do(*_COMMANDS[form.do])
    with_form = _WITH_FORM.get(form.do)
    return None if with_form is None else lambda session: with_form(session, form)


_COMMANDS: Mapping[str, tuple[Any, ...]] = {
    "gold": ("toggle_gold",),
    "irrelevant": ("toggle_irrelevant",),
    "next-group": ("next_group",),
    "answerable": ("set_answerable",),
    "unanswerable": ("ask_to_clear",),
    "skip": ("skip",),
    "undo": ("undo",),
    "redo": ("redo",),
    "next": ("go", 1),
    "previous": ("go", -1),
    "unlabelled": ("next_unlabelled",),
    "accept": ("decide", "accepted"),
    "drop": ("decide", "dropped"),
}
"""The session's commands by the words of the buttons."""


def _toggle(session: LabelSession, row: int) -> None:
    """Mark the chunk of a checkbox as gold, or unmark it."""
    # The page may be older than the list: its last chunk may be gone.
    last = max(0, len(session.pool.candidates) - 1)
    session.row = min(row, last)
    session.range_start = None
    session.do("toggle_gold")


def _find(session: LabelSession, form: LabelForm) -> None:
    if form.words.strip():
        session.do("find", form.words.strip())


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
    if 1 <= first <= last <= len(lines):
        session.do("add_snippet", "\n".join(lines[first - 1 : last]))
    else:
        session.message = f"choose lines from 1 to {len(lines)}" if lines else "this chunk has no text"


def _edit(session: LabelSession, form: LabelForm) -> None:
    if session.drafts is not None and form.draft.strip():
        # A line of JSONL is one line; line breaks between the members of JSON mean nothing.
        session.do("edit_draft", " ".join(line.strip() for line in form.draft.splitlines()))


_WITH_FORM: Mapping[str, Callable[[LabelSession, LabelForm], None]] = {
    "find": _find,
    "ask": _ask,
    "snippet": _snippet,
    "edit": _edit,
}
