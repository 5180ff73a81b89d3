"""The texts of the label screen, safe for a terminal: control characters are visible, wide characters count as two."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.pools import Candidate, PoolView
from pytest_rageval.text import counted, printable
from pytest_rageval.words import fold

LONGEST_LINE = 200_000
"""Characters of one source line that are laid out; more are counted, not shown."""
MARKS = {"gold": "✔", "irrelevant": "✘", "none": " "}
PATH_GAP = " › "


class Segment(NamedTuple):
    """One row of a laid-out text: what is shown, and its place in the text."""

    shown: str
    start: int
    end: int


def clean(text: str) -> str:
    """Return a text as one line that a terminal shows as it is: invisible characters are escaped."""
    return printable(" ".join(text.split()))


def fitted_end(text: str, width: int) -> str:
    """Cut the beginning of a text that is too wide: the end of a path tells more."""
    if cell_len(text) <= width:
        return text
    kept = text
    while kept and cell_len(kept) > width - 1:
        kept = kept[1:]
    return f"…{kept}"


@lru_cache(maxsize=64)
def laid_out(text: str, width: int) -> tuple[Segment, ...]:
    """Return a text as rows of at most so many cells, cut between words if possible."""
    rows: list[Segment] = []
    start = 0
    for line in text.split("\n"):
        rows.extend(_rows(line[:LONGEST_LINE], start, max(2, width)))
        start += len(line) + 1
    return tuple(rows)


def _rows(line: str, offset: int, width: int) -> Iterator[Segment]:
    begin = at = cells = 0
    space = -1
    shown: list[str] = []
    while at < len(line):
        piece = _piece(line[at])
        size = len(piece) if piece.isascii() else cell_len(piece)
        if cells + size > width and at > begin:
            end = space + 1 if space >= begin else at
            yield Segment("".join(shown[: end - begin]), offset + begin, offset + end)
            begin = at = end
            cells, space, shown = 0, -1, []
            continue
        if line[at] == " ":
            space = at
        shown.append(piece)
        cells += size
        at += 1
    yield Segment("".join(shown), offset + begin, offset + len(line))


@lru_cache(maxsize=4096)
def _piece(character: str) -> str:
    return "    " if character == "\t" else printable(character)


# ── the case ──────────────────────────────────────────────────────────────────────────────────────────────────


def case_title(session: LabelSession) -> str:
    """Return the title: the case, its number and how many are done."""
    word = "decided" if session.drafts is not None else "labelled"
    return f" {clean(session.case.id)} · {session.at + 1} of {len(session.cases)} · {session.labelled} {word}"


def file_text(session: LabelSession) -> str:
    """Return the share of the cases that are done, as a bar, and the file's name."""
    done = session.labelled * 10 // len(session.cases)
    return f"{'▓' * done}{'░' * (10 - done)}  {clean(session.store.file_name)} "


def question_text(session: LabelSession) -> str:
    """Return the question, with its category unless the labelling is blind."""
    category = session.case.category
    shown = f"[{clean(category)}] " if category and not session.is_blind else ""
    return f" Q  {shown}{clean(session.case.question)}"


def answerable_text(session: LabelSession) -> str:
    """Return whether the case is answerable; nothing of a case that a blind labeller has not marked."""
    marks = session.marks
    if session.is_blind and marks == session.store.marks_of(session.case) and not marks.is_label:
        return "[a/u] "
    return "[a] yes " if marks.answerable else "[u] no "


def golds_text(session: LabelSession) -> str:
    """Return the numbers of the golds by group, of the irrelevant chunks, and of the steps to undo."""
    view = session.view()
    groups: dict[int, list[int]] = {}
    for number, places in enumerate(view.golds, start=1):
        for group in {session.marks.group_of(gold) for gold in places}:
            groups.setdefault(group or 0, []).append(number)
    irrelevant = ",".join(str(number) for number, places in enumerate(view.irrelevant, start=1) if places)
    shown = range(1, max(max(groups, default=0), session.group, 2) + 1)
    parts = [
        f"group {group} = " + ("{" + ",".join(map(str, groups[group])) + "}" if group in groups else "–")
        for group in shown
    ]
    golds = "   ".join(parts) if session.marks.answerable else "none, unanswerable"
    return f" golds: {golds}     irrelevant: {irrelevant or '–'}     undo: {counted(session.undo_steps, 'step')}"


# ── the chunks ────────────────────────────────────────────────────────────────────────────────────────────────


def pool_title(session: LabelSession) -> str:
    """Return the title of the list: who gave the chunks, or who is asked."""
    pool = session.pool
    if session.waits_for is not None:
        return f"asking {clean(', '.join(session.source.systems)) or 'the search'} …"
    parts = [counted(len(pool.systems), "system")] if pool.systems else []
    parts += ["search"] if pool.has_search else []
    return f"chunks of {' + '.join(parts) or 'the case'} ({len(pool.candidates)})"


def candidate_row(session: LabelSession, view: PoolView, at: int, width: int) -> tuple[str, str]:
    """Return the row of a candidate and its style."""
    candidate = session.pool.candidates[at]
    mark = "gold" if view.golds[at] else "irrelevant" if view.irrelevant[at] else "none"
    groups = [group for gold in sorted(view.golds[at]) if (group := session.marks.group_of(gold))]
    origin = str(groups[0]) if groups else ""
    if not session.is_blind:
        origin += "–" if candidate.is_listed else "" if candidate.is_retrieved else "S"
    pointer = "▶" if at == session.row else "▸" if at in session.selected else " "
    head = f" {pointer} {at + 1:>2} ({MARKS[mark]}) {origin or '·':<2}"
    row = head + fitted_end(_place(candidate), max(2, width - cell_len(head)))
    return set_cell_size(row, width), {"gold": "bold", "irrelevant": "dim", "none": ""}[mark]


def _place(candidate: Candidate) -> str:
    """Return the path and the last heading: `notes/price.md › Creams`."""
    last = (candidate.chunk.heading_path or "").rpartition(">")[2].lstrip(" #")
    return PATH_GAP.join([_name(candidate), *([clean(last)] if last.strip() else [])])


def _name(candidate: Candidate) -> str:
    chunk = candidate.chunk
    return clean(chunk.rel_path or chunk.chunk_id or chunk.doc_id or "no place")


def place_title(session: LabelSession) -> str:
    """Return the path and all headings of the chunk pointed at."""
    if (candidate := session.candidate) is None:
        return ""
    headings = (candidate.chunk.heading_path or "").split(">")
    return PATH_GAP.join([_name(candidate), *(clean(part).lstrip("# ") for part in headings if part.strip())])


# ── the text of a chunk ───────────────────────────────────────────────────────────────────────────────────────


def chunk_text(session: LabelSession) -> str:
    """Return the text of the chunk pointed at."""
    return (session.candidate.chunk.text or "") if session.candidate is not None else ""


def snippet_of(text: str, lines: tuple[int, int], width: int) -> str:
    """Return the source of these rows of a text."""
    rows = laid_out(text, width)
    first, last = sorted(lines)
    return text[rows[first].start : rows[min(last, len(rows) - 1)].end].strip()


def snippet_rows(session: LabelSession, text: str, width: int) -> set[int]:
    """Return the rows that hold a snippet of the chunk's golds."""
    golds = session.view().golds
    if not golds or not text:
        return set()
    places = [session.marks.golds[gold] for gold in golds[min(session.row, len(golds) - 1)]]
    rows: set[int] = set()
    for snippet in (snippet for place in places for snippet in getattr(place, "snippets", ())):
        start = text.find(snippet)
        if start < 0 and (start := text.casefold().find(fold(snippet))) < 0:
            continue
        end = start + len(snippet)
        rows |= {at for at, row in enumerate(laid_out(text, width)) if row.start < end and row.end > start}
    return rows


def origin_note(session: LabelSession, *, hides_ranks: bool) -> str | None:
    """Return who gave the chunk pointed at; None in blind labelling."""
    if (candidate := session.candidate) is None or session.is_blind:
        return None
    is_gold = bool(session.view().golds[min(session.row, len(session.pool.candidates) - 1)])
    note = candidate.origin(is_gold=is_gold, hides_ranks=hides_ranks)
    return clean(note) if note else None
