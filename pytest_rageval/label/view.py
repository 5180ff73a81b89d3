"""The label screen as rows of text: a pure function of the session, the mode and the size of the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from pytest_rageval.label.cells import clean, fitted, fitted_end, laid_out
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.pools import Candidate, PoolView
from pytest_rageval.text import counted, printable
from pytest_rageval.words import fold

LEAST_WIDTH, LEAST_HEIGHT = 40, 12
ROOM_FOR_MORE = 5
"""Rows of a list from which its last one says how many are not shown."""
WIDE = 72
"""Columns from which list and text stand side by side."""
LEGEND = (
    "↑↓ move  space gold  x irrelevant  g group  v snippet  a/u (un)answerable w find",
    "/ ask more  ⏎ save+next  ←→ case  t to unlabelled  z undo  b blind  ? all q quit",
)
DRAFT_LEGEND = (LEGEND[0], "y accept  n drop  e edit  ⏎ save+next  ←→ case  t undecided  z undo ? all q quit")
WIDEST_LEGEND = 80
"""Columns in which the legends have room; in fewer they are shorter."""
SHORT_LEGEND = (
    "↑↓ move space gold x irrelevant g group v snippet a/u answerable w find",
    "/ ask ⏎ save+next ←→ case t unlabelled z undo b blind ? all q quit",
)
SHORT_DRAFT_LEGEND = (SHORT_LEGEND[0], "y accept n drop e edit / ask ⏎ save+next ←→ case t undecided ? all q quit")
NARROW_LEGEND = ("↑↓ spc gold x irr g grp v snip au w find", "⏎ next ←→ t todo / ask s z b ? all q end")
NARROW_DRAFT_LEGEND = (NARROW_LEGEND[0], "y accept n drop e edit ⏎ next t z ? q")
KEYS = """\
↑ ↓             point at a chunk          shift+↑ ↓   several at once
space           gold, or no more          x           irrelevant, or no more
1–9             into group n              g           group of golds to come
v  ↑ ↓  ⏎       lines as a snippet        [ ]         scroll the text
a               answerable                u           unanswerable, no golds
w               find in the chunks        /           ask another query
⏎               save, next case           ← →         save, other case
t               save, next unlabelled     s           skip: leave as it was
z  Z            undo, redo (all cases)    b           hide the scores
y  n  e         drafts: accept, drop, edit
esc             leave what was begun      q           save and quit
?               these keys                ctrl+c      save and quit"""
MARKS = {"gold": "✔", "irrelevant": "✘", "none": " "}
PATH_GAP = " › "


@dataclass(slots=True)
class Mode:
    """What the screen is doing beside marking.

    typing   the prompt that is open: 'find' or 'ask'; `typed` is what stands in it
    words    what was looked for in the chunks last
    lines    first and last row of the text that become a snippet
    """

    typing: str | None = None
    typed: str = ""
    lines: tuple[int, int] | None = None
    asks_to_clear: bool = False
    shows_keys: bool = False
    hides_scores: bool = False
    scroll: int = 0
    words: str = ""
    opinions: dict[str, list[str]] = field(default_factory=dict)
    """By case id what others said of it, a line each."""


def screen(session: LabelSession, mode: Mode, width: int, height: int) -> Text:
    """All rows of the screen, each exactly as wide as the terminal."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        rows = [
            f"{width} × {height} is too small",
            f"make it {LEAST_WIDTH} × {LEAST_HEIGHT}, or",
            "--plain; q quits",
        ]
        return Text("\n".join(fitted(row, width) for row in rows[:height]), no_wrap=True)
    text = Text(no_wrap=True, end="")
    lines = _wide(session, mode, width, height) if width >= WIDE else _narrow(session, mode, width, height)
    text = Text("\n", end="").join(lines)
    text.no_wrap = True
    return text


def _wide(session: LabelSession, mode: Mode, width: int, height: int) -> list[Text]:
    left = (width - 3) * 11 // 20
    right = width - 3 - left
    legend = _legend(session, width)
    inner = height - 6 - len(legend)
    if mode.shows_keys:
        keys = [Text(f"│{row}│") for row in _key_rows(mode, width - 2, inner + 4)]
        above = [_title(session, width), _question(session, width), Text(f"┌{'─' * (width - 2)}┐")]
        return [*above, *keys[: inner + 2], Text(f"└{'─' * (width - 2)}┘"), *legend]
    below = _below(session, mode, width - 4)
    listed = _list(session, left, inner)
    text = _text(session, mode, right, inner)
    heads = fitted(f" {_list_title(session)} ", left).rstrip(" "), f" {_place_title(session, right - 2)} "
    top = f"┌{_ruled(heads[0], left)}┬{_ruled(heads[1], right)}┐"
    rows = [_title(session, width), _question(session, width), Text(top)]
    rows += [Text.assemble("│", row, "│", other, "│") for row, other in zip(listed, text, strict=True)]
    rows += [
        Text(f"├{'─' * left}┴{'─' * right}┤"),
        Text.assemble("│", fitted(f" {below[0]}", width - 2), "│"),
    ]
    rows.append(Text(f"└{_ruled(below[1], width - 2)}┘", style="bold" if session.message else ""))
    return [*rows, *legend]


def _narrow(session: LabelSession, mode: Mode, width: int, height: int) -> list[Text]:
    legend = _legend(session, width)
    inner = height - 5 - len(legend)
    if mode.shows_keys:
        keys = [Text(row) for row in _key_rows(mode, width, inner + 3)]
        return [_title(session, width), _question(session, width), *keys, *legend]
    below = _below(session, mode, width)
    listed = _list(session, width, inner // 2 + 1)
    text = _text(session, mode, width, inner - inner // 2 - 1)
    return [
        _title(session, width), _question(session, width), *listed,
        Text(_ruled(f" {_place_title(session, width - 4)} ", width)), *text, Text(fitted(below[0], width)),
        Text(_ruled(below[1], width), style="bold" if session.message else ""), *legend,
    ]  # fmt: skip


def _ruled(text: str, width: int) -> str:
    """A text followed by a rule."""
    text = text if cell_len(text) <= width else fitted(text, width)
    return text + "─" * (width - cell_len(text))


# ── above and below ───────────────────────────────────────────────────────────────────────────────────────────


def _title(session: LabelSession, width: int) -> Text:
    number, labelled = len(session.cases), session.labelled
    word = "decided" if session.drafts is not None else "labelled"
    state = f"{clean(session.store.file_name)} {'● saved' if session.is_saved else '○ unsaved'} "
    bar = "▓" * (labelled * 10 // number) + "░" * (10 - labelled * 10 // number)
    counts = f" · {session.at + 1} of {number} · {labelled} {word} "
    if width < WIDE:
        bar, state = "", "●" if session.is_saved else "○"
        counts = f" {session.at + 1}/{number} ({labelled}) "
    room = width - cell_len(counts) - cell_len(bar) - cell_len(state) - 2
    if room < cell_len(session.case.id):
        room, bar = room + cell_len(bar), ""
    head = f" {fitted(clean(session.case.id), max(4, room)).rstrip(' ')}{counts}{bar}"
    gap = " " * max(1, width - cell_len(head) - cell_len(state))
    return Text(set_cell_size(f"{head}{gap}{state}", width), style="bold")


def _question(session: LabelSession, width: int) -> Text:
    answerable = (
        f"answerable? [{'a' if session.marks.answerable else 'u'}] {'yes' if session.marks.answerable else 'no'}"
    )
    if session.is_blind and session.marks == session.store.marks_of(session.case) and not session.marks.is_label:
        answerable = "answerable? [a/u]"
    if width < WIDE:
        answerable = "ans: yes" if session.marks.answerable else "ans: no"
    category = session.case.category
    shown = f"[{clean(category)}] " if category and not session.is_blind and width >= WIDE else ""
    room = width - cell_len(answerable) - 2
    return Text(f"{fitted(f' Q  {shown}{clean(session.case.question)}', room)} {answerable} ")


def _legend(session: LabelSession, width: int) -> list[Text]:
    is_draft = session.drafts is not None
    if width < WIDE:
        rows = NARROW_DRAFT_LEGEND if is_draft else NARROW_LEGEND
    elif width < WIDEST_LEGEND:
        rows = SHORT_DRAFT_LEGEND if is_draft else SHORT_LEGEND
    else:
        rows = DRAFT_LEGEND if is_draft else LEGEND
    return [Text(fitted(row, width), style="dim") for row in rows]


def _golds(session: LabelSession) -> str:
    view = session.view()
    groups: dict[int, list[int]] = {}
    irrelevant: list[int] = []
    for number, golds in enumerate(view.golds, start=1):
        for group in {session.marks.group_of(gold) for gold in golds}:
            groups.setdefault(group or 0, []).append(number)
    irrelevant = [number for number, places in enumerate(view.irrelevant, start=1) if places]
    shown = range(1, max(max(groups, default=0), session.group, 2) + 1)
    parts = [
        f"{'golds: ' if group == 1 else ''}group {group} = "
        + ("{" + ",".join(map(str, groups[group])) + "}" if group in groups else "–")
        for group in shown
    ]
    if not session.marks.answerable:
        parts = ["golds: none, unanswerable"]
    parts.append(f"  irrelevant: {','.join(map(str, irrelevant)) or '–'}")
    parts.append(f"  undo: {session.undo_steps} step{'' if session.undo_steps == 1 else 's'}")
    return "   ".join(parts)


def _below(session: LabelSession, mode: Mode, width: int) -> tuple[str, str]:
    """The golds and the message; a message that is too long for one row takes that of the golds as well."""
    message = _message(session, mode)
    if cell_len(message) <= width:
        return _golds(session), message
    first, *rest = (row.shown for row in laid_out(message.removeprefix("─ "), width - 4))
    return first, f"─ {''.join(rest).rstrip()} "


def _message(session: LabelSession, mode: Mode) -> str:
    if mode.typing is not None:
        return f"─ {'find in the chunks' if mode.typing == 'find' else 'ask'}: {clean(mode.typed)}▏ ⏎ esc "
    if mode.lines is not None:
        return "─ snippet: ↑↓ to the last line, ⏎ takes it, esc leaves it "
    if mode.asks_to_clear:
        return f"─ u again clears {counted(len(session.marks.golds), 'gold')}; esc keeps them "
    return f"─ {clean(session.message)} " if session.message else ""


# ── the chunks ────────────────────────────────────────────────────────────────────────────────────────────────


def _list_title(session: LabelSession) -> str:
    pool = session.pool
    if session.waits_for is not None:
        return f"asking {clean(', '.join(session.source.systems)) or 'the search'} …"
    systems = f"{len(pool.systems)} system{'' if len(pool.systems) == 1 else 's'}"
    parts = [systems] if pool.systems else []
    parts += ["search"] if pool.has_search else []
    return f"chunks of {' + '.join(parts) or 'the case'} ({len(pool.candidates)})"


def _list(session: LabelSession, width: int, height: int) -> list[Text]:
    candidates, view = session.pool.candidates, session.view()
    problems = [clean(problem) for problem in session.pool.problems]
    room = max(1, height - len(problems))
    first = min(max(0, session.row - room // 2), max(0, len(candidates) - room))
    rows = [
        _candidate(session, at, candidates[at], view, width) for at in range(first, min(first + room, len(candidates)))
    ]
    if not candidates and session.waits_for is None:
        rows.append(Text(fitted(" no chunks; / asks another query", width)))
    rows += [Text(fitted(f" ! {problem}", width), style="red") for problem in problems]
    if first + room < len(candidates) and room >= ROOM_FOR_MORE:
        rows[room - 1] = Text(fitted(f"  … {len(candidates) - first - room + 1} more", width))
    rows += [Text(" " * width) for _ in range(height - len(rows))]
    return rows[:height]


def _candidate(session: LabelSession, at: int, candidate: Candidate, view: PoolView, width: int) -> Text:
    golds = view.golds[at]
    mark = "gold" if golds else "irrelevant" if view.irrelevant[at] else "none"
    groups = [group for gold in sorted(golds) if (group := session.marks.group_of(gold))]
    origin = str(groups[0]) if groups else ""
    if not session.is_blind:
        origin += "–" if candidate.is_listed else "" if candidate.is_retrieved else "S"
    is_meant = at in session.selected
    pointer = "▶" if at == session.row else "▸" if is_meant else " "
    head = f" {pointer} {at + 1:>2} ({MARKS[mark]}) {origin or '·':<2}"
    room = width - cell_len(head)
    place = fitted_end(_place(candidate), room) if room > 0 else ""
    style = "reverse" if at == session.row else "bold" if mark == "gold" else "dim" if mark == "irrelevant" else ""
    return Text(fitted(f"{head}{place}", width), style=style)


def _place(candidate: Candidate) -> str:
    """`notes/price.md › Creams`: the path, and the last heading."""
    chunk = candidate.chunk
    path = clean(chunk.rel_path or chunk.chunk_id or chunk.doc_id or "no place")
    last = (chunk.heading_path or "").rpartition(">")[2].lstrip(" #")
    return f"{path}{PATH_GAP}{clean(last)}" if last.strip() else path


def _place_title(session: LabelSession, width: int) -> str:
    candidate = session.candidate
    if candidate is None:
        return ""
    chunk = candidate.chunk
    headings = [clean(part).lstrip("# ") for part in (chunk.heading_path or "").split(">") if part.strip()]
    title = PATH_GAP.join([clean(chunk.rel_path or chunk.chunk_id or chunk.doc_id or "no place"), *headings])
    return fitted_end(title, max(1, min(width, cell_len(title))))


def text_rows(session: LabelSession, width: int) -> int:
    """How many rows the text of the chunk takes in this width of the terminal."""
    return len(laid_out(_chunk_text(session), _text_width(width)))


def snippet_of(session: LabelSession, lines: tuple[int, int], width: int) -> str:
    """What the rows of the text hold, as the chunk has it."""
    text = _chunk_text(session)
    rows = laid_out(text, _text_width(width))
    first, last = sorted(lines)
    return text[rows[first].start : rows[min(last, len(rows) - 1)].end].strip()


def _text_width(width: int) -> int:
    """Cells of the text's rows in a terminal of this width."""
    return width - 3 - (width - 3) * 11 // 20 - 2 if width >= WIDE else width - 2


def _chunk_text(session: LabelSession) -> str:
    candidate = session.candidate
    return (candidate.chunk.text or "") if candidate is not None else ""


def _text(session: LabelSession, mode: Mode, width: int, height: int) -> list[Text]:
    notes = [Text(fitted(f" {note}", width), style="dim") for note in _notes(session, mode)]
    room = max(1, height - len(notes)) if height > 3 else height
    text = _chunk_text(session)
    segments = laid_out(text, width - 2)
    first = min(mode.scroll, max(0, len(segments) - 1))
    hidden = len(segments) - first - room
    if hidden > 0 and room > 3:
        notes.insert(0, Text(fitted(f" ] {hidden + 1} more lines", width), style="dim"))
        room -= 1
    marked = _marked_rows(session, text, width - 2)
    rows = []
    for number in range(first, min(first + room, len(segments))):
        is_meant = mode.lines is not None and min(mode.lines) <= number <= max(mode.lines)
        style = "reverse" if is_meant else "black on yellow" if number in marked else ""
        row = Text(" ").append(fitted(segments[number].shown, width - 2), style=style).append(" ")
        if mode.words and mode.words.strip():
            row.highlight_words([mode.words], "bold underline", case_sensitive=False)
        rows.append(row)
    rows += [Text(" " * width) for _ in range(room - len(rows))]
    return [*rows, *notes][:height]


def _key_rows(mode: Mode, width: int, height: int) -> list[str]:
    lines = _keys_in(width)
    first = min(mode.scroll, max(0, len(lines) - height))
    shown = [fitted(f" {line}", width) for line in lines[first : first + height]]
    return [*shown, *(" " * width for _ in range(height - len(shown)))]


def _keys_in(width: int) -> list[str]:
    """The keys, one column of them where two have no room."""
    lines = KEYS.split("\n")
    if width >= max(map(len, lines)) + 2:
        return lines
    return [
        part.strip() for column in (slice(0, 42), slice(42, None)) for line in lines if (part := line[column]).strip()
    ]


def _notes(session: LabelSession, mode: Mode) -> Iterator[str]:
    """What else there is to say of the chunk pointed at."""
    candidate = session.candidate
    yield from (printable(line) for line in mode.opinions.get(session.case.id, ()))
    if candidate is None or session.is_blind:
        return
    is_gold = bool(session.view().golds[min(session.row, len(session.pool.candidates) - 1)])
    if note := candidate.origin(is_gold=is_gold, hides_ranks=mode.hides_scores):
        yield clean(note)


def _marked_rows(session: LabelSession, text: str, width: int) -> set[int]:
    """Rows in which a snippet of this chunk's golds stands."""
    golds = session.view().golds
    if not golds or not text:
        return set()
    places = [session.marks.golds[gold] for gold in golds[min(session.row, len(golds) - 1)]]
    snippets = [snippet for place in places for snippet in getattr(place, "snippets", ())]
    rows: set[int] = set()
    for snippet in snippets:
        start = text.find(snippet)
        if start < 0 and (start := text.casefold().find(fold(snippet))) < 0:
            continue
        end = start + len(snippet)
        rows |= {at for at, row in enumerate(laid_out(text, width)) if row.start < end and row.end > start}
    return rows
