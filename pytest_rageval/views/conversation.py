"""The view of a conversation: its turns in order, each with outcome, answer and chunks, and where it broke first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rageval.comparison.gate_lines import failed_gate
from pytest_rageval.comparison.listed_case import FAILING
from pytest_rageval.text import counted
from pytest_rageval.views.case_parts import OUTCOMES, ChunkRow, chunk_rows, error_line, no_chunks

Record = Mapping[str, Any]

MOST_SHOWN = 30
"""Turns that a view of one turn shows, its own in the middle: each of 500 turns with all of them is too much."""
LONGEST = 600
"""Characters of a question or an answer in the view; the page of the turn has more."""
MOST_CHUNKS = 5


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn as the view of its conversation shows it."""

    key: str
    id: str
    number: int
    """Its number from 1."""
    outcome: str
    symbol: str
    word: str
    is_broken: bool
    """It failed or ended in an error."""
    question: str | None
    """The question; None if the run keeps no texts."""
    answer: str | None
    why: str
    """Why it did not pass; '' if it did."""
    chunks: Sequence[ChunkRow]
    """The first retrieved chunks."""
    no_chunks: str
    """Why there are none; '' if there are some."""


@dataclass(frozen=True, slots=True)
class ConversationView:
    """A conversation around one of its turns."""

    id: str
    turns: Sequence[TurnView]
    """The turns that are shown, in order."""
    current: int
    """The number of the turn whose page this is; 0 for the conversation itself."""
    broke_at: int
    """The number of the first turn that failed or ended in an error; 0 if all pass."""
    title: str
    """`3 of 4 turns pass, broke first at turn 2`."""
    left_out: str
    """The note on turns that are not shown; '' if all are."""


def turn_view(record: Record, k: int | None) -> TurnView:
    """Return one turn from the record that represents its trials."""
    outcome = record["outcome"]
    symbol, word = OUTCOMES[outcome]
    retrieved = [chunk for chunk in chunk_rows(record, None, None, k) if chunk.rank is not None]
    return TurnView(
        key=record["case_key"],
        id=record["test_case_id"],
        number=record["turn"],
        outcome=outcome,
        symbol=symbol,
        word=word,
        is_broken=outcome in FAILING or outcome == "xfailed",
        question=_shortened(record["question"]),
        answer=_shortened(record["answer"]),
        why="" if outcome == "passed" else _why(record),
        chunks=retrieved[:MOST_CHUNKS],
        no_chunks=no_chunks(record),
    )


def conversation_view(turns: Iterable[TurnView], conversation: str, current: int = 0) -> ConversationView:
    """Return the conversation of these turns, with those around the `current` one."""
    ordered = sorted(turns, key=lambda turn: turn.number)
    broken = [turn.number for turn in ordered if turn.is_broken]
    passed = sum(turn.outcome == "passed" for turn in ordered)
    title = f"{passed} of {counted(len(ordered), 'turn')} pass"
    if broken:
        title += f", broke first at turn {broken[0]}"
    shown = ordered
    left_out = ""
    if current and len(ordered) > MOST_SHOWN:
        places = [place for place, turn in enumerate(ordered) if turn.number == current]
        middle = places[0] if places else 0
        first = min(max(middle - MOST_SHOWN // 2, 0), len(ordered) - MOST_SHOWN)
        shown = ordered[first : first + MOST_SHOWN]
        left_out = f"turns {shown[0].number} to {shown[-1].number} are shown"
    return ConversationView(
        id=conversation,
        turns=shown,
        current=current,
        broke_at=broken[0] if broken else 0,
        title=title,
        left_out=left_out,
    )


def _why(record: Record) -> str:
    if record["error"]:
        return error_line(record["error"])
    gates = map(failed_gate, record["verdict"]["failed_gates"])
    return "; ".join(gates) or record["reason"] or ""


def _shortened(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST:
        return text
    return text[:LONGEST] + "…"
