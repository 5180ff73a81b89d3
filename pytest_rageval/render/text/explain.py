"""One case in full: failed gates, question, expected, answer, chunks, the run before, each metric's arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_rageval.io.suggestions import and_more
from pytest_rageval.model import Observation
from pytest_rageval.render.text.columns import aligned, column_widths, last_wrapped, shortened, wrapped
from pytest_rageval.text import printable, score_text
from pytest_rageval.views.case_before import CaseBefore
from pytest_rageval.views.case_content import CaseTexts, CaseView
from pytest_rageval.views.case_parts import FACT_MARKS, ChunkRow
from pytest_rageval.views.conversation import ConversationView
from pytest_rageval.views.rewrite import RewriteView

TEXT = 300
"""Characters of a text that are shown."""
FOLDED = 3
"""Lines of a chunk that are shown."""
LEAST = 20
"""Minimum width of a text, even in a narrower terminal."""
NOTHING_RETRIEVED = ChunkRow(None, "other", "", "nothing was retrieved", None, None)


class Form(NamedTuple):
    """The columns of the terminal, and whether texts are shown in full."""

    width: int = 120
    is_full: bool = False


class Explained(NamedTuple):
    """A case to explain.

    view          what every face shows of it
    obs           the uncut texts, if the run keeps them
    failed_gates  each failed gate with value and limit, and a mark if it is new
    before        the case in the compared run
    """

    view: CaseView
    obs: Observation | None = None
    failed_gates: Sequence[str] = ()
    before: CaseBefore | None = None


def explanation(explained: Explained, form: Form) -> Iterator[str]:
    """Return the lines of a case, failed gates first."""
    return map(printable, _lines(explained, form))


def _lines(explained: Explained, form: Form) -> Iterator[str]:
    case = explained.view
    obs = explained.obs
    yield f"{case.head.key}   {case.head.outcome}"
    if case.head.outcome == "passed":
        yield from case.failure.remarks  # why it is flaky
    if case.trials is not None:
        yield f"{case.trials.title.lower()}: {case.trials.words}"
    yield " · ".join([f"written at {case.head.place}", *map(_short, case.head.facts)])
    if case.head.has_notable_operations and case.head.latency:
        yield f"latency: {case.head.latency}"
    yield from _section("fails", [(gate,) for gate in explained.failed_gates], form.width)
    if explained.failed_gates and case.failure.cause:
        yield f"  cause: {_short(case.failure.cause)}"
    yield from _section("errors", [(error,) for error in case.failure.errors], form.width)
    yield ""
    if not case.texts.has_observation:
        yield "no observation was kept"
    if case.texts.question is not None:
        yield from _labelled_text("question", case.texts.question, form)
    if case.conversation is not None:
        yield from _turns(case.conversation, form)
    yield from _section("expected", list(_expected(case.texts)), form.width)
    yield ""
    yield from _answer(case, obs, form)
    yield from _retrieved(case, obs, form)
    if case.rewrite is not None:
        yield from _rewrite(case.rewrite, form)
    yield from _section("tool calls", [(_short(line),) for line in case.retrieved.tool_calls], form.width)
    flags = (*obs.matching.flags, *case.retrieved.flags) if obs else case.retrieved.flags
    # A flag may come from the matching and from the record.
    for flag in dict.fromkeys(flags):
        yield f"  note: {flag}"
    yield from _before(explained.before, form)
    yield from _section("claims", list(_claims(case, form)), form.width)
    scores = [(name, value, _short(terms)) for name, value, terms in case.figures.scores]
    yield from _section("metrics", scores, form.width)
    yield from _section("doubts about the judge's replies", case.figures.doubts, form.width)
    gates = list(dict.fromkeys(case.failure.every_gate))  # two gates may say the same under different conditions
    yield from _section("gates", gates or [("no gate examined this case",)], form.width)
    skipped = [(f"{reason}: {', '.join(names)}",) for reason, names in case.figures.skipped]
    yield from _section("not applicable", skipped, form.width)


def _expected(texts: CaseTexts) -> Iterator[tuple[str, str]]:
    """Yield what the case expects, by name: an abstention too, and each key fact with a mark if it was scored."""
    if not texts.answerable:
        yield "an abstention", "the documents hold no answer"
    for name, text in texts.labels:
        if name != "key_facts" or not texts.stated:
            yield name, _short(text)
            continue
        for fact in texts.stated:
            yield name, FACT_MARKS[fact.is_stated] + _short(fact.text)


def conversation_lines(conversation: ConversationView, form: Form) -> Iterator[str]:
    """Return the lines of a conversation: each turn with outcome, question, answer, reason and chunks."""
    return map(printable, _whole_conversation(conversation, form))


def _whole_conversation(conversation: ConversationView, form: Form) -> Iterator[str]:
    yield f"conversation {conversation.id}   {conversation.title}"
    for turn in conversation.turns:
        yield ""
        broke = "   broke first" if turn.number == conversation.broke_at else ""
        yield f"{turn.key}   {turn.outcome}{broke}"
        if turn.why:
            yield from _labelled_text("fails", turn.why, form)
        if turn.question is not None:
            yield from _labelled_text("question", turn.question, form)
        if turn.answer is not None:
            yield from _labelled_text("answer", turn.answer, form)
        if turn.no_chunks:
            yield f"{'retrieved':<10} {turn.no_chunks}"
        label = "retrieved"
        for chunk in turn.chunks:
            mark = f"  {chunk.mark}" if chunk.kind == "gold" else ""
            yield f"{label:<10} {chunk.rank}. {shortened(chunk.place, 90)}{mark}"
            label = ""


def _turns(conversation: ConversationView, form: Form) -> Iterator[str]:
    """Yield the turns of a case's conversation, a line each."""
    rows: list[tuple[str, ...]] = []
    for turn in conversation.turns:
        notes = [turn.outcome]
        if turn.number == conversation.current:
            notes.append("this turn")
        if turn.number == conversation.broke_at:
            notes.append("broke first")
        rows.append((str(turn.number), ", ".join(notes), _short(turn.question or "")))
    yield from _section(f"conversation: {conversation.title}", rows, form.width)


def _rewrite(rewrite: RewriteView, form: Form) -> Iterator[str]:
    """Yield answer, places and arithmetic of the question asked as its rewrite, without history."""
    rows: list[tuple[str, str]] = []
    if rewrite.question is not None:
        rows.append(("question", _short(rewrite.question)))
    if rewrite.error:
        rows.append(("error", rewrite.error))
    if rewrite.answer is not None:
        rows.append(("answer", _short(rewrite.answer)))
    label = "retrieved"
    for rank, (golds, place) in enumerate(rewrite.places, start=1):
        rows.append((label, f"{rank}. {place}   {golds}".rstrip()))
        label = ""
    rows += rewrite.gaps
    yield from _section("asked as its rewrite, without history", rows, form.width)


def _before(before: CaseBefore | None, form: Form) -> Iterator[str]:
    if before is None:
        return
    rows = [("outcome", before.outcome)]
    if before.answer is not None:
        rows.append(("answer", _short(before.answer)))
    rows += [("failed", gate) for gate in before.failed_gates]
    yield from _section("before", rows, form.width)


def _answer(case: CaseView, obs: Observation | None, form: Form) -> Iterator[str]:
    answer = obs.answer.text if obs else case.texts.answer
    if answer is not None:
        yield from _labelled_text("answer", answer, form)
    if obs and obs.answer.abstained is not None:
        reason = f" ({obs.answer.abstain_reason})" if obs.answer.abstain_reason else ""
        yield f"abstained  {'yes' if obs.answer.abstained else 'no'}{reason}"


def _labelled_text(label: str, text: str, form: Form) -> Iterator[str]:
    """Yield a text beside its label, which stands on the first line alone."""
    shown = printable(text) if form.is_full else _short(text)
    for line in wrapped(shown, max(form.width - 11, LEAST)):
        yield f"{label:<10} {line}".rstrip()
        label = ""


def _retrieved(case: CaseView, obs: Observation | None, form: Form) -> Iterator[str]:
    """Yield the chunks by rank, each with its text, then the golds that were not retrieved."""
    chunks = list(case.retrieved.chunks)
    has_retrieved = any(chunk.rank for chunk in chunks)
    reports_none = obs is not None and obs.answer.chunks is None
    # To report no chunks is not to retrieve none.
    if not has_retrieved and not reports_none:
        chunks.insert(0, NOTHING_RETRIEVED)
    if not chunks:
        return
    rows = [_chunk_cells(chunk) for chunk in chunks]
    rank_width, _, score_width, mark_width = column_widths(rows)
    taken = rank_width + score_width + mark_width + 3 * len("  ")
    room = min(max(form.width - len("  ") - taken, LEAST // 2), 70)
    rows = [(rank, shortened(place, room), score, mark) for rank, place, score, mark in rows]
    yield ""
    yield "retrieved"
    for line, chunk in zip(aligned(rows, indent="  ", to_the_left=True), chunks, strict=True):
        yield line
        yield from _chunk_text(chunk, obs, form)


def _chunk_cells(chunk: ChunkRow) -> tuple[str, str, str, str]:
    """Return rank, place, score and golds of a chunk."""
    rank = str(chunk.rank or "–")
    place = printable(chunk.place)
    if chunk is NOTHING_RETRIEVED:
        return rank, place, "", ""
    mark = "" if chunk.kind == "other" else chunk.mark
    if mark and chunk.rank is None:
        mark += " was not retrieved"
    return rank, place, score_text(chunk.score), mark


def _chunk_text(chunk: ChunkRow, obs: Observation | None, form: Form) -> Iterator[str]:
    """Yield the text of a chunk under its row, in full as far as the run keeps it."""
    text = chunk.text
    if obs and obs.answer.chunks and chunk.rank:
        # The record has the beginning of a text; the observation has all of it.
        text = obs.answer.chunks[chunk.rank - 1].text or text
    if not text:
        return
    lines = wrapped(printable(text.strip()), max(form.width - 7, LEAST))
    is_short = len(lines) <= FOLDED + 1  # one line less and a line that says so would save nothing
    shown = lines if form.is_full or is_short else lines[:FOLDED]
    for line in shown:
        yield f"       {line}".rstrip()
    if len(shown) < len(lines):
        yield f"       {and_more(len(lines) - len(shown), 'lines')}: --full shows them"


def _claims(case: CaseView, form: Form) -> Iterator[tuple[str, ...]]:
    """Yield the judge's verdict on each claim of the answer, and the chunk nearest to it."""
    for claim in case.figures.claims:
        sign, word = ("✔", "supported") if claim.is_supported else ("✘", "unsupported")
        near = f"chunk {claim.chunk}" if claim.chunk else ""
        text = shortened(printable(claim.text), max(form.width - 28, LEAST))
        yield sign, word, near, text


def _section(title: str, rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    if rows:
        yield ""
        yield title
        yield from last_wrapped(rows, width, indent="  ")


def _short(text: str) -> str:
    return shortened(printable(text), TEXT)
