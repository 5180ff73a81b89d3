"""The full-screen face of a labelling session, on Textual's widgets: keys become calls of the session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import nullcontext
from typing import ClassVar

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.widgets.text_area import Selection

from pytest_rageval.label.label_chunk_text import ChunkText
from pytest_rageval.label.label_keys import DRAFT_KEYS, KEYS, KeysScreen
from pytest_rageval.label.label_lines import edit_draft
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.label_texts import TextsScreen
from pytest_rageval.label.marks_view import (
    GAP,
    MOST_SHOWN,
    MarksView,
    case_title,
    clean,
    earlier_line,
    earlier_lines,
    expected_line,
    golds_line,
    marks_view,
    question_line,
    row_text,
)
from pytest_rageval.label.pools import Pool
from pytest_rageval.text import counted, printable

LEAST_WIDTH, LEAST_HEIGHT = 40, 12
LEAST = "40 × 12"
TYPED = r"[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*"
SNIPPET = "snippet: ↑↓ to the last line, ⏎ takes it, esc leaves it"
EARLIER_ROWS, QUESTION_ROWS, EXPECTED_ROWS, ROOMY_HEIGHT = 2, 3, 2, 20
"""Rows of folded texts: what was said before, the question, the expected answer; the height from which there is room
for more than one row of each."""
OPENS, OPENS_BEFORE = " … o", "o … "
LEAST_TEXT = 8
WIDE = 72
"""Columns from which list and text stand side by side."""


class LabelScreen(App[None]):
    """One session on one terminal. All texts reach the widgets as `Text`, so that none is read as markup."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    SCREENS = {"keys": KeysScreen}  # noqa: RUF012 because the app declares it so
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 because the app declares it so
    CSS = """
    Screen { overflow: hidden; }
    .line { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    .texts { height: auto; padding: 0 1; }
    #body { height: 1fr; layout: horizontal; }
    OptionList, #place { height: 1fr; width: 11fr; border: none; border-top: solid; padding: 0; scrollbar-size: 1 1; }
    OptionList { background: transparent; overflow-y: auto; color: ansi_default; max-height: 100%; }
    OptionList { text-wrap: nowrap; text-overflow: ellipsis; }
    OptionList > .option-list--option { padding: 0; }
    OptionList > .option-list--option-highlighted { text-style: reverse; color: ansi_default; }
    #place { width: 9fr; border-left: solid; padding: 0 0 0 1; }
    #text, #text:focus { border: none; padding: 0; background: transparent; color: ansi_default; scrollbar-size: 1 1; }
    #notes { height: auto; text-style: dim; text-wrap: nowrap; text-overflow: ellipsis; }
    #message { height: auto; min-height: 1; max-height: 2; padding: 0 1; text-style: bold; }
    #text .text-area--cursor { background: transparent; color: ansi_default; text-style: none; }
    #prompt { height: 1; border: none; padding: 0 1; }
    #legend { height: 2; text-style: dim; padding: 0 1; }
    .-narrow #body { layout: vertical; }
    .-narrow OptionList, .-narrow #place { width: 100%; border-left: none; }
    #small, .-small #all { display: none; }
    .-small #small { display: block; }
    KeysScreen, TextsScreen { background: ansi_default; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *KEYS,
        *DRAFT_KEYS,
        Binding("ctrl+c,ctrl+q", "finish", priority=True, show=False),
    ]

    def __init__(self, session: LabelSession, opinions: dict[str, list[str]] | None = None) -> None:
        """Make the screen; `opinions`: by case id the labels of others, a line each."""
        super().__init__(ansi_color=True)
        self.session = session
        self.opinions = opinions or {}
        self._hides_scores = False
        self._is_told_of_unsaved = False
        self._asks = ""
        self._words = ""

    def compose(self) -> ComposeResult:
        keys = (*KEYS[:1], *DRAFT_KEYS, *KEYS[1:]) if self.session.drafts is not None else KEYS
        legend = (f"{key.key_display} {key.description}".replace(" ", "\N{NO-BREAK SPACE}") for key in keys if key.show)
        yield Static(id="small")
        with Vertical(id="all"):
            yield Static(id="case", classes="line")
            yield Static(id="earlier", classes="texts")
            yield Static(id="question", classes="texts")
            yield Static(id="expected", classes="texts")
            with Container(id="body"):
                yield OptionList(id="chunks", markup=False)
                with Vertical(id="place"):
                    yield ChunkText()
                    yield Static(id="notes")
            yield Static(id="golds", classes="line")
            yield Static(id="message")
            yield Input(id="prompt", compact=True, restrict=TYPED)
            yield Static(Text("  ".join(legend)), id="legend")

    def on_mount(self) -> None:
        self.query_one(OptionList).can_focus = False
        self._draw_when_done(self.session.source.pool(self.session.case))

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    # ── drawing ───────────────────────────────────────────────────────────────────────────────────────────────

    def draw(self) -> None:
        """Show the present state of the session."""
        session = self.session
        size = self.size
        screen = self.screen_stack[0]  # below the list of keys, if that is open
        view = marks_view(session, hides_ranks=self._hides_scores)
        screen.set_class(size.width < LEAST_WIDTH or size.height < LEAST_HEIGHT, "-small")
        message = SNIPPET if isinstance(self.focused, ChunkText) else clean(session.message)
        answerable = f"answerable? {self._answerable()}" if self._is_wide else self._answerable()
        texts: dict[str, Text | Table] = {
            "small": Text(f"{size.width} × {size.height} is too small\nmake it {LEAST}, or\n--plain; q quits"),
            "case": _two_ends(case_title(session), self._progress()),
            "earlier": self._folded_before(earlier_line(session), size.width - 2),
            "question": self._question(answerable),
            "expected": self._folded(expected_line(session), EXPECTED_ROWS, size.width - 2),
            "golds": Text(golds_line(session, view)),
            "message": Text(message),
            "notes": Text("\n".join(self._notes(view))),
        }
        for name, text in texts.items():
            screen.query_one(f"#{name}", Static).update(text)
        # One line is for both: the typed text or the message.
        is_typing = bool(self._asks)
        screen.query_one(Input).display = is_typing
        screen.query_one("#message").display = not is_typing
        screen.query_one("#earlier").display = bool(earlier_line(session))
        screen.query_one("#expected").display = bool(expected_line(session))
        screen.query_one("#place").border_title = Text(self._place(view))
        screen.query_one(ChunkText).show(view.text, view.spans, self._words)
        self._draw_chunks(screen.query_one(OptionList), view)

    def _question(self, answerable: str) -> Table:
        """Return the question with whether it is answerable at its right end."""
        line = Table.grid(expand=True, padding=(0, 1))
        line.add_column(ratio=1)
        line.add_column(no_wrap=True)
        room = self.size.width - len(answerable) - 4  # the padding of the line, and that of its two columns
        line.add_row(self._folded(question_line(self.session), QUESTION_ROWS, room), Text(answerable))
        return line

    def _folded(self, text: str, most_rows: int, width: int) -> Text:
        """Return a text in so many rows at most, one on a low screen, with the key that opens the rest."""
        if self.size.height < ROOMY_HEIGHT:
            most_rows = 1
        width = max(width, LEAST_TEXT)  # a window that is too small has none
        wrapped = Text(text[:MOST_SHOWN]).wrap(self.console, width)
        if len(wrapped) <= most_rows:
            return Text(text)
        kept = Text("\n").join(wrapped[:most_rows])
        free = width - cell_len(wrapped[most_rows - 1].plain)
        if free < len(OPENS):
            kept.right_crop(len(OPENS) - free)
        return kept.append(OPENS, style="dim")

    def _folded_before(self, text: str, width: int) -> Text:
        """Return the last rows of what was said before, dim, with the key that opens the rest."""
        most_rows = EARLIER_ROWS if self.size.height >= ROOMY_HEIGHT else 1
        width = max(width, LEAST_TEXT)
        if len(Text(text[:MOST_SHOWN]).wrap(self.console, width)) <= most_rows:
            return Text(text, style="dim")
        # Rows end at words: what fits by its letters may take a row more.
        words = text[-most_rows * width :].split(" ")
        while len(words) > 1 and len(_after_sign(words).wrap(self.console, width)) > most_rows:
            words = words[1:]
        return _after_sign(words)

    @property
    def _is_wide(self) -> bool:
        return self.size.width >= WIDE

    def _progress(self) -> str:
        """Return a bar and the name of the file, if there is room, and whether the case is saved."""
        session = self.session
        saved = "● saved" if session.is_saved else "○ unsaved"
        if not self._is_wide:
            return saved
        done = session.labelled * 10 // len(session.cases)
        bar = "▓" * done + "░" * (10 - done)
        return f"{bar}  {clean(session.store.file_name)} {saved}"

    def _place(self, view: MarksView) -> str:
        """Return the path and the headings of the current chunk; a space, which draws the border, without one."""
        if self.session.row >= len(view.rows):
            return " "
        row = view.rows[self.session.row]
        return clean(GAP.join((row.place, *row.headings)))

    def _answerable(self) -> str:
        """Return whether the case is answerable; nothing of a case that a blind labeller has not marked."""
        session = self.session
        marks = session.marks
        if session.is_blind and marks == session.store.marks_of(session.case) and not marks.is_label:
            return "[a/u]"
        return "[a] yes" if marks.answerable else "[u] no"

    def _notes(self, view: MarksView) -> Iterator[str]:
        if self.size.height <= LEAST_HEIGHT:
            return
        yield from map(printable, self.opinions.get(self.session.case.id, ()))
        notes = []
        hidden = len(view.text) - MOST_SHOWN
        if hidden > 0:
            notes.append(counted(hidden, "more character"))
        note = clean(view.note)
        if note:
            notes.append(note)
        yield " · ".join(notes)

    def _draw_chunks(self, chunks: OptionList, view: MarksView) -> None:
        session = self.session
        waiting = f"asking {clean(', '.join(session.source.systems)) or 'the search'} …"
        chunks.border_title = Text(view.title if session.waits_for is None else waiting)
        has_words = self.size.height >= ROOMY_HEIGHT
        options = [Option(row_text(row, has_words=has_words)) for row in view.rows]
        if not options and session.waits_for is None:
            options.append(Option(Text(" no chunks; / asks another query"), disabled=True))
        problems = (Text(f" ! {clean(problem)}", style="red") for problem in session.pool.problems)
        chunks.set_options([*options, *(Option(problem, disabled=True) for problem in problems)])
        chunks.highlighted = session.row if view.rows else None

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:  # noqa: ARG002 because it is called so
        """Return False for the keys of the list while something is typed or a snippet is chosen."""
        is_of_list = self.focused is None and action not in ("focus_next", "focus_previous")
        return is_of_list or action in ("leave", "finish", "take_snippet")

    def action_do(self, name: str, *arguments: object) -> None:
        """Call the session, and show what it came to."""
        session = self.session
        before = session.at
        self._is_told_of_unsaved = False
        session.do(name, *arguments)
        if session.at != before:
            self._draw_when_done(session.source.pool(session.case))
        self.draw()

    def action_hide_scores(self) -> None:
        self._hides_scores = not self._hides_scores
        self.session.message = "scores are hidden" if self._hides_scores else "scores are shown"
        self.draw()

    def action_open_texts(self) -> None:
        """Show the whole question and expected answer."""
        earlier = "\n".join(earlier_lines(self.session))
        self.push_screen(TextsScreen(earlier, question_line(self.session), expected_line(self.session)))

    def action_scroll_text(self, rows: int) -> None:
        self.query_one(ChunkText).scroll_relative(y=rows, animate=False)

    def action_edit(self) -> None:
        self.session.message = ""
        edit_draft(self.session, nullcontext if self.is_headless else self.suspend)
        self.draw()

    def action_type(self, asks: str) -> None:
        """Read a line: what to find in the chunks, or to ask."""
        self._asks = asks
        prompt = self.query_one(Input)
        prompt.value = ""
        prompt.placeholder = "find in the chunks" if asks == "find" else "ask the systems"
        self.draw()
        self.set_focus(prompt)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Find or ask the typed text."""
        asks = self._asks  # leaving the field forgets it
        typed = event.value
        self.action_leave()
        if not typed.strip():
            return
        if asks == "find":
            self._words = typed
            self.session.find(typed)
        else:
            self._draw_when_done(self.session.ask_more(typed), self.session.at)
        self.draw()

    def action_snippet(self) -> None:
        if self.session.candidate is not None:
            text = self.query_one(ChunkText)
            text.begin()
            self.set_focus(text)
            self.draw()

    def action_take_snippet(self) -> None:
        chosen = self.query_one(ChunkText).chosen
        self.action_leave()
        self.action_do("add_snippet", chosen)

    def action_leave(self) -> None:
        """Leave what was begun: typing, a snippet, a range, a search."""
        if self.focused is None:
            self.session.range_start = None
            self._words = ""
        self._asks = ""
        self.session.message = ""
        self.session.asks_to_clear = False
        text = self.query_one(ChunkText)
        text.selection = Selection.cursor(text.selection.start)
        self.set_focus(None)
        self.draw()

    # ── waiting and ending ────────────────────────────────────────────────────────────────────────────────────

    @work
    async def _draw_when_done(self, future: Future[Pool], at: int | None = None) -> None:
        """Draw again when a pool is there; `at`: the case that gets it as more chunks."""
        pool = await asyncio.wrap_future(future)
        if at is not None:
            self.session.take_more(at, pool)
        self.draw()

    def action_finish(self) -> None:
        """Save and leave; if the case cannot be saved, warn first and leave the second time."""
        self.session.message = ""
        if self.session.save() or self._is_told_of_unsaved:
            self.exit()
            return
        self._is_told_of_unsaved = True
        self.session.message += "; q again leaves without this case"
        self.draw()


def _after_sign(words: list[str]) -> Text:
    """Return the last words of a text behind the key that opens the rest."""
    return Text(OPENS_BEFORE + " ".join(words), style="dim")


def _two_ends(left: str, right: str) -> Table:
    """Return a line whose right end stays in sight where the left one is too long."""
    line = Table.grid(expand=True, padding=(0, 1))
    line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    line.add_column(no_wrap=True)
    line.add_row(Text(left), Text(right))
    return line
