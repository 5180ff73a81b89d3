"""What the buttons of the label page do: the calls of the session that the keys of the terminal make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from pytest_rageval.label.label_session import LabelSession

ANSWER_WITHIN_S = 60.0
"""Seconds that systems have to answer another question."""
LONGEST_WORDS, LONGEST_DRAFT = 2_000, 500_000
Action = Callable[[LabelSession], object]
Blank = Annotated[int | None, BeforeValidator(lambda written: None if written == "" else written)]
"""A number that need not be given."""


class LabelForm(BaseModel):
    """A mark as the page sends it: where, what the page had seen of the case, and what is to be done."""

    file: str = ""
    dataset: str = ""
    opinion: str = ""
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
    """What is to be done; None where there is no such thing to do."""
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
    """Ask the systems something else; who does not answer in time is said."""
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
    """Say so; where there are golds, `clear` is asked for first."""
    if session.marks.golds:
        session.message = ""  # the page asks whether they are to be cleared
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
