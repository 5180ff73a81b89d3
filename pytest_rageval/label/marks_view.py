"""The chunks of a case with their marks, as every face shows them: groups, snippets, lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from rich.text import Text

from pytest_rageval.cases.conversations import said_before
from pytest_rageval.cases.gold_places import ALL_NEEDED
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.pools import Candidate, MatchedMarks
from pytest_rageval.language.words import fold
from pytest_rageval.model import Turn
from pytest_rageval.text import counted, cut, printable

SYMBOLS = {"gold": "✔", "irrelevant": "✘", "": ""}
GAP = " › "
MOST_SHOWN, LONGEST_LINE = 20_000, 500
"""Characters of a chunk that are shown, and of a line before it is broken: the widget lays out whole lines."""
FIRST_WORDS, MOST_READ = 120, 1_000
"""Characters of a chunk in the list, and how many are read for them: its first ones may be blank."""


class ChunkView(NamedTuple):
    """One chunk of the list.

    mark     gold, irrelevant, or nothing
    origin   its groups, and S if only the search found it, – if only the case names it
    groups   of its golds; 0 for a gold without one, 1 for all golds if the case has no groups
    beginning  the first words of its text, on one line
    """

    number: int
    mark: str
    origin: str
    groups: tuple[int, ...]
    place: str
    headings: tuple[str, ...]
    is_meant: bool
    beginning: str

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.mark]

    @property
    def heading(self) -> str:
        return GAP.join(self.headings)


class MarksView(NamedTuple):
    """The case on screen.

    groups   numbers of the chunks by group of golds
    needed   by group, how the run reads its golds: `any of`, `all of`, or nothing for a single gold
    text     of the chunk pointed at
    spans    of the snippets in that text
    note     who gave that chunk; blank if there is nothing to say
    """

    title: str
    rows: list[ChunkView]
    groups: dict[int, list[int]]
    needed: dict[int, str]
    irrelevant: list[int]
    text: str
    spans: list[tuple[int, int]]
    note: str


def marks_view(session: LabelSession, *, hides_ranks: bool = False) -> MarksView:
    """Return the present view of a session; a blind labeller is not told who gave a chunk."""
    pool = session.pool
    matches = session.matches()
    candidate = session.candidate
    rows = list(_rows(session, matches))
    groups: dict[int, list[int]] = {}
    for row in rows:
        for group in row.groups:
            groups.setdefault(group, []).append(row.number)
    text = ""
    spans: list[tuple[int, int]] = []
    note = ""
    if candidate is not None:
        golds = matches.golds[session.row]
        text = candidate.chunk.text or ""
        spans = list(_spans(session, golds, text))
        if not session.is_blind:
            note = candidate.origin(is_gold=bool(golds), hides_ranks=hides_ranks)
    return MarksView(
        title=f"chunks of {pool.asked} ({len(rows)})",
        rows=rows,
        groups=groups,
        needed={group: _needed(session, group) for group in groups},
        irrelevant=[row.number for row in rows if row.mark == "irrelevant"],
        text=text,
        spans=spans,
        note=note,
    )


def _needed(session: LabelSession, group: int) -> str:
    """Return whether the run asks for any or all golds of a group; '' if it is a single one."""
    marks = session.marks
    groups = [marks.group_of(gold) for gold in range(len(marks.golds))]
    if groups.count(group) < 2:
        return ""
    if marks.groups or session.case.category in ALL_NEEDED:
        return "all of"
    return "any of"


def _rows(session: LabelSession, matches: MatchedMarks) -> Iterator[ChunkView]:
    marked = zip(session.pool.candidates, matches.golds, matches.irrelevant, strict=True)
    for at, (candidate, golds, irrelevant) in enumerate(marked):
        chunk = candidate.chunk
        groups = tuple(sorted({session.marks.group_of(gold) or 0 for gold in golds}))
        origin = ""
        if session.marks.groups:
            origin = " ".join(str(group) for group in groups if group)
        if not session.is_blind:
            origin += _source_sign(candidate)
        mark = ""
        if golds:
            mark = "gold"
        elif irrelevant:
            mark = "irrelevant"
        headings = [part.strip().lstrip("# ") for part in (chunk.heading_path or "").split(">")]
        yield ChunkView(
            number=at + 1,
            mark=mark,
            origin=origin,
            groups=groups,
            place=chunk.rel_path or chunk.chunk_id or chunk.doc_id or "no place",
            headings=tuple(filter(None, headings)),
            is_meant=at in session.selected,
            beginning=cut(clean((chunk.text or "")[:MOST_READ]), FIRST_WORDS),
        )


def _source_sign(candidate: Candidate) -> str:
    if candidate.is_listed:
        return "–"
    return "" if candidate.ranks else "S"


def _spans(session: LabelSession, golds: frozenset[int], text: str) -> Iterator[tuple[int, int]]:
    for gold in golds:
        for snippet in getattr(session.marks.golds[gold], "snippets", ()):
            start = text.find(snippet)
            if start < 0:
                start = text.casefold().find(fold(snippet))
            if start >= 0:
                yield start, start + len(snippet)


# ── lines for a terminal ──────────────────────────────────────────────────────────────────────────────────────


def clean(text: str) -> str:
    """Return a text as one line that a terminal shows as it is: invisible characters are escaped."""
    return printable(" ".join(text.split()))


def case_title(session: LabelSession) -> str:
    """Return the title: the case, its number and how many are done."""
    word = "decided" if session.drafts is not None else "labelled"
    return f"{clean(session.case.id)} · {session.at + 1} of {len(session.cases)} · {session.labelled} {word}"


def earlier_turns(session: LabelSession) -> tuple[Turn, ...]:
    """Return what was said before the question of a turn or of a case with a history.

    The references of earlier turns are hidden from a blind labeller: they tell what is answerable there.
    """
    case = session.case
    replies = [None if session.is_blind else turn.reference for turn in case.earlier]
    return said_before(case, replies)


def earlier_lines(session: LabelSession) -> list[str]:
    """Return what was said before, a line each: `user: …`."""
    return [f"{clean(turn.role)}: {clean(turn.text)}" for turn in earlier_turns(session)]


def earlier_line(session: LabelSession) -> str:
    """Return what was said before as one line above the question; blank for a first question."""
    lines = earlier_lines(session)
    return f"…  {' · '.join(lines)}" if lines else ""


def question_line(session: LabelSession) -> str:
    """Return the question, with its category unless the labelling is blind, and what a draft says about it."""
    category = session.case.category
    shown = f"[{clean(category)}] " if category and not session.is_blind else ""
    return "\n".join([f"Q  {shown}{clean(session.case.question)}", *_draft_lines(session)])


def _draft_lines(session: LabelSession) -> Iterator[str]:
    """Yield the rewrite of a drafted follow-up, and what a system answered when the draft was made."""
    if session.drafts is None:
        return
    if session.case.rewrite:
        yield f"   (= {clean(session.case.rewrite)})"
    draft = session.case.metadata.get("draft")
    answer = draft.get("answer") if isinstance(draft, Mapping) else None
    if isinstance(answer, str):
        yield f"   it answered: {clean(answer)}"


def expected_answers(session: LabelSession) -> str:
    """Return the reference answers; blank without any, and for a blind labeller: they tell what is answerable."""
    if session.is_blind:
        return ""
    return " | ".join(session.case.gold.answers or ())


def expected_line(session: LabelSession) -> str:
    """Return the expected answer as a line below the question; blank if it is not known."""
    expected = clean(expected_answers(session))
    return f"A  {expected}" if expected else ""


def golds_line(session: LabelSession, view: MarksView) -> str:
    """Return the numbers of the golds by group, of the irrelevant chunks, and of the steps to undo."""
    golds = _golds_text(session, view) if session.marks.answerable else "none, unanswerable"
    irrelevant = ",".join(map(str, view.irrelevant)) or "–"
    return f"golds: {golds}     irrelevant: {irrelevant}     undo: {counted(session.undo_steps, 'step')}"


def _golds_text(session: LabelSession, view: MarksView) -> str:
    """Return the groups of golds; `any of {1,2}` for a case without any."""
    if not session.marks.groups:
        following = f"   the next into group {session.group}" if session.group > 1 else ""
        return _chunks_text(view, 1) + following
    last = max(max(view.groups, default=0), session.group, 2)
    return "   ".join(f"group {group} = {_chunks_text(view, group)}" for group in range(1, last + 1))


def _chunks_text(view: MarksView, group: int) -> str:
    """Return the numbers of the chunks of a group, after how many of its golds the run asks for."""
    numbers = ",".join(map(str, view.groups.get(group, ())))
    if not numbers:
        return "–"
    return f"{view.needed[group]} {{{numbers}}}".strip()


def row_text(row: ChunkView, *, has_words: bool = False) -> Text:
    """Return the row of a chunk: the note and its last heading first, which are cut last.

    has_words  adds a second line with the first words of the chunk
    """
    folder, _, name = row.place.rpartition("/")
    heading = "".join(f"{GAP}{heading}" for heading in row.headings[-1:])
    pointer = "▸" if row.is_meant else " "
    mark = row.symbol or " "
    origin = row.origin or "·"
    head = f" {pointer} {row.number:>2} ({mark}) {origin:<2} "
    style = {"gold": "bold", "irrelevant": "dim", "": ""}[row.mark]
    text = f"{head}{clean(name + heading)}  {clean(folder)}"
    shown = Text(text, style=style)
    if has_words and row.beginning:
        shown.append(f"\n          {row.beginning}", style="dim")
    return shown


@lru_cache(maxsize=64)
def displayed(text: str) -> tuple[str, list[int]]:
    """Return a text as a terminal can show it, and the place in the source of each of its characters and of its end."""
    shown: list[str] = []
    places: list[int] = []
    width = 0
    for place, character in enumerate(text[:MOST_SHOWN]):
        piece = character if character in "\n\t" else printable(character)
        width = 0 if character == "\n" else width + len(piece)
        if width > 2 * LONGEST_LINE or (width > LONGEST_LINE and character == " "):
            piece = f"{piece}\n"
            width = 0
        shown.append(piece)
        places += [place] * len(piece)
    return "".join(shown), [*places, min(len(text), MOST_SHOWN)]
