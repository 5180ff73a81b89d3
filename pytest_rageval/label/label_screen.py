"""The full-screen face of a labelling session, on Textual's widgets: keys become calls of the session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from pytest_rageval.label import screen_text as texts
from pytest_rageval.label.label_lines import edit_draft
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.pools import Pool
from pytest_rageval.text import counted, printable

LEAST_WIDTH, LEAST_HEIGHT = 40, 12
KEYS = (
    ("space", "gold", "gold, or no more"),
    ("⏎", "save+next", "save, next case"),
    ("x", "irrelevant", "irrelevant, or no more"),
    ("?", "all keys", "these keys; any key closes them"),
    ("q", "quit", "save and quit, as ctrl+c"),
    ("↑↓", "move", "point at a chunk; with shift at several"),
    ("v", "snippet", "lines as a snippet: ↑ ↓, then ⏎"),
    ("a/u", "(un)answerable", "answerable; unanswerable, no golds"),
    ("/", "ask more", "ask another query"),
    ("w", "find", "find in the chunks"),
    ("t", "to unlabelled", "save, next unlabelled"),
    ("z", "undo", "undo, redo with Z (all cases)"),
    ("g", "group", "group of golds to come"),
    ("←→", "case", "save, other case"),
    ("b", "blind", "hide the scores"),
    ("s", "skip", "skip: leave as it was"),
    ("1–9", "", "into group n"),
    ("[ ]", "", "scroll the text"),
    ("esc", "", "leave what was begun"),
)
"""Each key with its word in the legend and in the list of all keys, most needed first."""
DRAFT_KEYS = (("y", "accept", "accept the draft"), ("n", "drop", "drop it"), ("e", "edit", "edit it in $EDITOR"))


class PromptLine(Input):
    """One line to type into. Pasted text becomes one line."""

    def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self.insert_text_at_cursor(texts.clean(event.text))


class KeysScreen(ModalScreen[None]):
    """All keys. Any key closes it and does nothing else."""

    def compose(self) -> ComposeResult:
        keys = (*KEYS, *DRAFT_KEYS)
        if self.app.size.height >= len(keys):
            yield Static(Text("\n".join(f"{key:<5}  {meaning}" for key, _, meaning in keys)))
        else:
            yield Static(Text(" · ".join(f"{key} {word or meaning}" for key, word, meaning in keys)))

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        self.dismiss()


class LabelScreen(App[None]):
    """One session on one terminal. All texts reach the widgets as `Text`, so that none is read as markup."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (72, "-wide")]  # noqa: RUF012 because the app declares it so
    CSS = """
    Screen { overflow: hidden; }
    .line { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    .rest { width: 1fr; }
    .own { width: auto; }
    #body { height: 1fr; layout: horizontal; }
    OptionList, #place { height: 1fr; width: 11fr; border: none; border-top: solid; padding: 0; scrollbar-size: 1 1; }
    OptionList { background: transparent; overflow-y: auto; color: ansi_default; max-height: 100%; }
    OptionList > .option-list--option { padding: 0; text-wrap: nowrap; }
    OptionList > .option-list--option-highlighted { text-style: reverse; color: ansi_default; }
    #place { width: 9fr; border-left: solid; padding: 0 1; }
    #text { height: 1fr; text-wrap: nowrap; }
    #notes { height: auto; text-style: dim; text-wrap: nowrap; text-overflow: ellipsis; }
    #below { height: auto; min-height: 1; max-height: 2; }
    #message { width: auto; max-width: 100%; height: auto; text-style: bold; }
    #prompt { width: 1fr; height: 1; border: none; padding: 0; display: none; }
    #legend { height: 2; text-style: dim; padding: 0 1; }
    .-narrow .wide { display: none; }
    .-narrow #body { layout: vertical; }
    .-narrow OptionList, .-narrow #place { width: 100%; border-left: none; }
    #small { display: none; }
    .-small #small { display: block; }
    .-small #all { display: none; }
    KeysScreen { background: ansi_default; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "finish", priority=True, show=False),
        Binding("ctrl+q", "finish", priority=True, show=False),
    ]

    def __init__(self, session: LabelSession, opinions: dict[str, list[str]] | None = None) -> None:
        """Make the screen; `opinions`: by case id the labels of others, a line each."""
        super().__init__(ansi_color=True)
        self.session = session
        self.opinions = opinions or {}
        self.scroll_row = 0
        self.snippet_lines: tuple[int, int] | None = None
        self._hides_scores = self._is_told_of_unsaved = False
        self._typing: str | None = None
        self._words = ""
        self._keys: dict[str, Callable[[], object]] = {
            "up": lambda: session.move(-1),
            "down": lambda: session.move(1),
            "shift+up": lambda: session.move(-1, extends=True),
            "shift+down": lambda: session.move(1, extends=True),
            "pageup": lambda: session.move(-10),
            "pagedown": lambda: session.move(10),
            "left": lambda: session.go(-1),
            "right": lambda: session.go(1),
            "enter": lambda: session.go(1),
            "space": session.toggle_gold,
            "x": session.toggle_irrelevant,
            "g": session.next_group,
            "v": self._begin_snippet,
            "a": session.set_answerable,
            "u": session.ask_to_clear,
            "s": session.skip,
            "t": session.next_unlabelled,
            "z": session.undo,
            "Z": session.redo,
            "w": lambda: self._type("find in the chunks"),
            "/": lambda: self._type("ask"),
            "b": self._toggle_scores,
            "[": lambda: self._scroll(-5),
            "]": lambda: self._scroll(5),
            "?": lambda: self.push_screen(KeysScreen()),
            "q": self.action_finish,
            "y": lambda: session.decide("accepted"),
            "n": lambda: session.decide("dropped"),
            "e": lambda: edit_draft(session, self._suspended),
        }
        self._keys |= {str(group): partial(session.put_in_group, group) for group in range(1, 10)}

    def compose(self) -> ComposeResult:
        keys = (*KEYS[:1], *DRAFT_KEYS, *KEYS[1:]) if self.session.drafts is not None else KEYS
        legend = "  ".join(f"{key} {word}".replace(" ", "\N{NO-BREAK SPACE}") for key, word, _ in keys if word)
        yield Static(id="small")
        with Vertical(id="all"):
            with Horizontal(classes="line"):
                yield Static(id="case", classes="line rest")
                yield Static(id="file", classes="line own wide")
                yield Static(id="saved", classes="line own")
            with Horizontal(classes="line"):
                yield Static(id="question", classes="line rest")
                yield Static(Text(" answerable? "), classes="line own wide")
                yield Static(id="answerable", classes="line own")
            with Container(id="body"):
                yield OptionList(id="chunks", markup=False)
                with Vertical(id="place"):
                    yield Static(id="text")
                    yield Static(id="notes")
            yield Static(id="golds", classes="line")
            with Horizontal(id="below"):
                yield Static(id="message")
                yield PromptLine(id="prompt", compact=True)
            yield Static(Text(legend), id="legend")

    def on_mount(self) -> None:
        self._event_loop = asyncio.get_running_loop()
        self._chunks.can_focus = False
        self._await_pool()

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    # ── drawing ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _chunks(self) -> OptionList:
        return self.screen_stack[0].query_one("#chunks", OptionList)

    @property
    def _text_size(self) -> tuple[int, int]:
        size = self.screen_stack[0].query_one("#place").content_size
        return max(2, size.width), max(1, size.height - len(self._notes))

    @property
    def _notes(self) -> list[str]:
        """Return further notes on the current chunk, if there is room."""
        if self.screen_stack[0].query_one("#place").content_size.height < 3:
            return []
        opinions = map(printable, self.opinions.get(self.session.case.id, ()))
        return [*opinions, texts.origin_note(self.session, hides_ranks=self._hides_scores) or ""]

    def _set(self, name: str, text: str | Text) -> None:
        widget = self.screen_stack[0].query_one(f"#{name}", Static)
        widget.update(Text(text, no_wrap=False) if isinstance(text, str) else text)

    def draw(self) -> None:
        """Show the present state of the session."""
        session, size = self.session, self.size
        self.screen_stack[0].set_class(size.width < LEAST_WIDTH or size.height < LEAST_HEIGHT, "-small")
        least = f"make it {LEAST_WIDTH} × {LEAST_HEIGHT}, or"
        self._set("small", f"{size.width} × {size.height} is too small\n{least}\n--plain; q quits")
        self._set("case", texts.case_title(session))
        self._set("file", texts.file_text(session))
        self._set("saved", "● saved " if session.is_saved else "○ unsaved ")
        self._set("question", texts.question_text(session))
        self._set("answerable", texts.answerable_text(session))
        self._set("golds", texts.golds_text(session))
        self._set("message", self._message())
        self._draw_chunks()
        self._draw_text()

    def _message(self) -> str:
        if self._typing is not None:
            return f" {self._typing}: "
        if self.snippet_lines is not None:
            return " snippet: ↑↓ to the last line, ⏎ takes it, esc leaves it"
        return f" {texts.clean(self.session.message)}"

    def _draw_chunks(self) -> None:
        session, chunks = self.session, self._chunks
        chunks.border_title = Text(texts.pool_title(session))
        view, width = session.view(), max(2, chunks.scrollable_content_region.width)
        candidates = len(session.pool.candidates)
        rows = [texts.candidate_row(session, view, at, width) for at in range(candidates)]
        options = [Option(Text(row, style=style, no_wrap=True)) for row, style in rows]
        if not candidates and session.waits_for is None:
            options.append(Option(Text(" no chunks; / asks another query"), disabled=True))
        problems = (Text(f" ! {texts.clean(problem)}", style="red") for problem in session.pool.problems)
        chunks.set_options([*options, *(Option(problem, disabled=True) for problem in problems)])
        chunks.highlighted = session.row if candidates else None

    def _draw_text(self) -> None:
        session, (width, height) = self.session, self._text_size
        text = texts.chunk_text(session)
        rows, marked = texts.laid_out(text, width), texts.snippet_rows(session, text, width)
        shown = []
        for number, row in enumerate(rows[self.scroll_row : self.scroll_row + height], start=self.scroll_row):
            is_meant = self.snippet_lines is not None and self.snippet_lines[0] <= number <= self.snippet_lines[1]
            style = "reverse" if is_meant else "black on yellow" if number in marked else ""
            shown.append(Text(row.shown, style=style))
            if self._words.strip():
                shown[-1].highlight_words([self._words], "bold underline", case_sensitive=False)
        self._set("text", Text("\n").join(shown))
        hidden = len(rows) - self.scroll_row - height
        notes = self._notes
        if notes and hidden > 0:
            notes[-1] = " · ".join(filter(None, [f"] {counted(hidden, 'more line')}", notes[-1]]))
        self._set("notes", "\n".join(notes))
        self.screen_stack[0].query_one("#place").border_title = Text(texts.place_title(session) or " ")

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────

    def on_key(self, event: events.Key) -> None:
        if self._typing is not None and event.key != "escape":
            return  # the prompt takes it
        event.stop()
        event.prevent_default()
        before = self.session.at, self.session.row
        if self._typing is not None:
            self._end_typing()
        elif self.snippet_lines is not None:
            self._choose_lines(event.key)
        else:
            self._press(event)
        if (self.session.at, self.session.row) != before:
            self.scroll_row = 0
        if self.session.at != before[0]:
            self._await_pool()
        self.draw()

    def _press(self, event: events.Key) -> None:
        key = event.character if event.is_printable and event.character and event.key != "space" else event.key
        if key != "q":
            self._is_told_of_unsaved = False
        if key != "u":
            self.session.asks_to_clear = False
        self.session.message = ""
        if key == "escape":
            self.session.range_start, self._words = None, ""
        elif (action := self._keys.get(key)) is not None:
            action()

    def _type(self, what: str) -> None:
        self._typing = what
        prompt = self.query_one(PromptLine)
        prompt.value, prompt.display = "", True
        prompt.focus()

    def _end_typing(self) -> None:
        self._typing = None
        self.query_one(PromptLine).display = False
        self.set_focus(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Find or ask the typed text."""
        what, typed = self._typing, event.value
        self._end_typing()
        if not typed.strip():
            pass
        elif what == "ask":
            at, future = self.session.at, self.session.ask_more(typed)
            self._when_done(future, lambda: self.session.take_more(at, future.result()))
        else:
            self._words, self.scroll_row = typed, 0
            self.session.find(typed)
        self.draw()

    def _begin_snippet(self) -> None:
        if self.session.candidate is not None:
            self.snippet_lines = (self.scroll_row, self.scroll_row)

    def _choose_lines(self, key: str) -> None:
        assert self.snippet_lines is not None
        (first, last), (width, height) = self.snippet_lines, self._text_size
        text = texts.chunk_text(self.session)
        end = len(texts.laid_out(text, width)) - 1
        if key in ("up", "down"):
            last = min(end, max(first, last + (1 if key == "down" else -1)))
        elif key == "shift+up":
            first = max(0, first - 1)
        elif key in ("shift+down", "v"):
            first = min(end, first + 1)
        elif key == "enter":
            self.session.add_snippet(texts.snippet_of(text, self.snippet_lines, width))
        self.snippet_lines = None if key in ("enter", "escape") else (first, max(first, last))
        if self.snippet_lines is not None:
            self.scroll_row = min(max(self.scroll_row, self.snippet_lines[1] - height + 1), first)

    def _scroll(self, by: int) -> None:
        rows = len(texts.laid_out(texts.chunk_text(self.session), self._text_size[0]))
        self.scroll_row = min(rows - 1, max(0, self.scroll_row + by))

    def _toggle_scores(self) -> None:
        self._hides_scores = not self._hides_scores
        self.session.message = "scores are hidden" if self._hides_scores else "scores are shown"

    @contextmanager
    def _suspended(self) -> Iterator[None]:
        """Release the terminal to the editor, if there is one."""
        try:
            with self.suspend():
                yield
        except SuspendNotSupported:
            yield

    # ── waiting and ending ────────────────────────────────────────────────────────────────────────────────────

    def _await_pool(self) -> None:
        if (future := self.session.waits_for) is not None:
            self._when_done(future, lambda: None)

    def _when_done(self, future: Future[Pool], then: Callable[[], object]) -> None:
        def done() -> None:
            if not future.cancelled():
                then()
            self.draw()

        def wake(_: Future[Pool]) -> None:
            if not self._event_loop.is_closed():
                self._event_loop.call_soon_threadsafe(done)

        future.add_done_callback(wake)

    def action_finish(self) -> None:
        """Save and leave; if the case cannot be saved, warn first and leave the second time."""
        if self.session.save() or self._is_told_of_unsaved:
            self.exit()
            return
        self._is_told_of_unsaved = True
        self.session.message += "; q again leaves without this case"
        self.draw()
