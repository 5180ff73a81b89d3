"""A case as Markdown, for an issue or a coding agent: the parts that "copy as Markdown" takes from its page.

Each part is fenced text, so that nothing in it is markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pytest_rageval.text import printable, score_text
from pytest_rageval.views.case_content import CaseView
from pytest_rageval.views.case_parts import FACT_MARKS, ChunkRow
from pytest_rageval.views.conversation import ConversationView

TURN_HEADS = ("turn", "outcome", "question and answer", "retrieved")
HEADS = ("rank", "gold", "score", "place and text")
NOT_KEPT = "not kept"
# As `\s` of JavaScript, which counts U+FEFF: the copy button of the page does the same.
_SPACE = re.compile("[\\s\ufeff]+")
_TICKS = re.compile("`+")


def case_markdown(view: CaseView) -> str:
    """Return the Markdown of a case."""
    parts = [f"**{name}**\n\n{_fenced(text)}" for name, text in _parts(view)]
    return "\n\n".join(parts) + "\n"


def conversation_markdown(conversation: ConversationView) -> str:
    """Return the Markdown of all turns of a conversation."""
    rows = [TURN_HEADS, *turn_rows(conversation)]
    title = f"{conversation.id}: {conversation.title}"
    return f"**conversation**\n\n{_fenced(title)}\n\n**turns**\n\n" + _fenced("\n".join(map(_row_text, rows))) + "\n"


def _fenced(text: str) -> str:
    text = printable(text).strip(" \t\n\r\ufeff\u00a0")
    # A longer fence than any in the text, or an answer could end it and be markup.
    longest_ticks = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest_ticks + 1)
    return f"{fence}text\n{text}\n{fence}"


def _parts(view: CaseView) -> Iterator[tuple[str, str]]:
    yield "case", view.head.id
    if view.conversation is not None:
        rows = [TURN_HEADS, *turn_rows(view.conversation)]
        yield "conversation", "\n".join(map(_row_text, rows))
    # None was left out of the records; "" is an empty question.
    yield "question", NOT_KEPT if view.texts.question is None else view.texts.question
    yield "expected", "\n".join(_expected(view))
    before = view.comparison
    if before is not None and before.is_known and not before.is_same_answer:
        yield "answer before", NOT_KEPT if before.answer_before is None else before.answer_before
    yield "answer", view.texts.no_answer or (NOT_KEPT if view.texts.answer is None else view.texts.answer)
    if view.failure.why or view.failure.cause:
        yield "why", "\n".join(_why(view))
    if view.trials is not None:
        yield "trials", view.trials.words
    if not view.retrieved.no_chunks:
        rows = [HEADS, *(_cells(chunk) for chunk in view.retrieved.chunks if chunk.rank)]
        yield "chunks", "\n".join(map(_row_text, rows))
    if view.retrieved.tool_calls:
        yield "tool calls", "\n".join(view.retrieved.tool_calls)
    if view.retrieved.missed:
        yield "missed gold", "\n".join(map(_missed_line, view.retrieved.missed))
    yield "rerun", view.rerun or view.explain


def turn_rows(conversation: ConversationView) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each turn: number, outcome, question with answer and reason, places of the chunks."""
    for turn in conversation.turns:
        outcome = f"{turn.symbol} {turn.word}"
        if turn.number == conversation.broke_at:
            outcome += " broke first"
        question = NOT_KEPT if turn.question is None else turn.question
        answer = "no answer" if turn.answer is None else turn.answer
        places = [turn.no_chunks] if turn.no_chunks else []
        for chunk in turn.chunks:
            mark = "✔" if chunk.kind == "gold" else "·"
            places.append(f"{mark} {chunk.place}")
        yield str(turn.number), outcome, f"{question} {answer} {turn.why}", " ".join(places)


def _why(view: CaseView) -> Iterator[str]:
    if view.failure.cause:
        yield view.failure.cause
    yield from view.failure.errors
    for gate in view.failure.failed:
        yield f"✘ {gate.line} {gate.note}".rstrip()
    yield from view.failure.remarks


def _missed_line(gold: ChunkRow) -> str:
    return f"✘ missed {gold.mark} {gold.place}{gold.note} {gold.text or ''}".rstrip()


def _row_text(cells: Sequence[str]) -> str:
    return " | ".join(_SPACE.sub(" ", cell).strip() for cell in cells)


def _expected(view: CaseView) -> Iterator[str]:
    if not view.texts.answerable:
        yield "an abstention: the documents hold no answer"
    yield from view.texts.expected
    if not view.texts.expected and view.texts.answerable:
        yield "no answer is labelled" if view.texts.has_observation else "not kept: this run has no observations.jsonl"
    if view.texts.stated:
        facts = [FACT_MARKS[fact.is_stated] + fact.text for fact in view.texts.stated]
        yield "key facts " + " ".join(facts)


def _cells(chunk: ChunkRow) -> tuple[str, ...]:
    place = f"{chunk.place}{chunk.note} {chunk.text or ''}"
    score = "" if chunk.score is None else score_text(chunk.score)
    mark = f"✔ {chunk.mark}" if chunk.kind == "gold" else "·"
    return str(chunk.rank), mark, score, place
