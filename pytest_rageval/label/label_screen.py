"""The full-screen face of a labelling session, on Textual: keys become calls of the session, nothing more."""

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
from textual.widget import Widget

from pytest_rageval.label.draft_editor import edit_draft
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.pools import Pool
from pytest_rageval.label.view import Mode, screen, snippet_of, text_rows


class Canvas(Widget):
    """All of the terminal. Nothing on it is read as markup: the rows are `Text`."""

    def __init__(self, session: LabelSession, mode: Mode) -> None:
        super().__init__()
        self._session, self._mode = session, mode

    def render(self) -> Text:
        return screen(self._session, self._mode, self.size.width, self.size.height)


class LabelScreen(App[None]):
    """One session on one terminal."""

    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { overflow: hidden; } Canvas { width: 100%; height: 100%; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "finish", priority=True, show=False),
        Binding("ctrl+q", "finish", priority=True, show=False),
    ]

    def __init__(self, session: LabelSession, opinions: dict[str, list[str]] | None = None) -> None:
        super().__init__(ansi_color=True)
        self.session = session
        self.mode = Mode(opinions=opinions or {})
        self._canvas = Canvas(session, self.mode)
        self._is_told_of_unsaved = False
        self._keys: dict[str, Callable[[], object]] = {
            "up": lambda: self._move(-1),
            "down": lambda: self._move(1),
            "shift+up": lambda: self._move(-1, extends=True),
            "shift+down": lambda: self._move(1, extends=True),
            "pageup": lambda: self._move(-10),
            "pagedown": lambda: self._move(10),
            "left": lambda: session.go(-1),
            "right": lambda: session.go(1),
            "enter": lambda: session.go(1),
            "space": session.toggle_gold,
            "x": session.toggle_irrelevant,
            "g": session.next_group,
            "v": self._begin_snippet,
            "a": lambda: session.set_answerable(is_answerable=True),
            "u": self._unanswerable,
            "s": session.skip,
            "t": session.next_unlabelled,
            "z": session.undo,
            "Z": session.redo,
            "w": lambda: self._type("find"),
            "/": lambda: self._type("ask"),
            "b": self._toggle_scores,
            "[": lambda: self._scroll(-5),
            "]": lambda: self._scroll(5),
            "?": self._show_keys,
            "q": self.action_finish,
            "y": lambda: self._decide("accepted"),
            "n": lambda: self._decide("dropped"),
            "e": lambda: edit_draft(session, self._suspended),
        }
        self._keys |= {str(group): partial(session.put_in_group, group) for group in range(1, 10)}

    def compose(self) -> ComposeResult:
        yield self._canvas

    def on_mount(self) -> None:
        self._event_loop = asyncio.get_running_loop()
        self._await_pool()

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        before = self.session.at, self.session.row
        if self.mode.typing is not None:
            self._typed(event)
        elif self.mode.lines is not None:
            self._choose_lines(event.key)
        else:
            self._press(event)
        if (self.session.at, self.session.row) != before:
            self.mode.scroll = 0
        if self.session.at != before[0]:
            self._await_pool()
        self._canvas.refresh()

    def _press(self, event: events.Key) -> None:
        key = event.character if event.is_printable and event.character and event.key != "space" else event.key
        if key != "q":
            self._is_told_of_unsaved = False
        self.session.message = ""
        if self.mode.shows_keys:
            if key in ("up", "down"):
                self.mode.scroll = max(0, self.mode.scroll + (1 if key == "down" else -1))
                return
            self.mode.shows_keys, self.mode.scroll = False, 0
            if key in ("?", "escape"):
                return
        if key == "escape":
            self.session.range_start, self.mode.asks_to_clear, self.mode.words = None, False, ""
            return
        if self.mode.asks_to_clear and key != "u":
            self.mode.asks_to_clear = False
        if (action := self._keys.get(key)) is not None:
            action()

    # ── modes ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _type(self, what: str) -> None:
        self.mode.typing, self.mode.typed = what, ""

    def _typed(self, event: events.Key) -> None:
        mode = self.mode
        if event.key == "escape":
            mode.typing = None
        elif event.key == "backspace":
            mode.typed = mode.typed[:-1]
        elif event.key == "enter":
            what, mode.typing = mode.typing, None
            if not mode.typed.strip():
                return
            if what == "find":
                mode.words = mode.typed
                self.session.find(mode.typed)
            else:
                self._ask(mode.typed)
        elif event.is_printable and event.character:
            mode.typed += event.character

    def on_paste(self, event: events.Paste) -> None:
        """Pasted text goes into an open prompt, and nowhere else: it is no series of keys."""
        if self.mode.typing is not None:
            self.mode.typed += " ".join(event.text.split())
            self._canvas.refresh()

    def _ask(self, question: str) -> None:
        at = self.session.at
        future = self.session.ask_more(question)
        self._when_done(future, lambda: self.session.take_more(at, future.result()))

    def _begin_snippet(self) -> None:
        if text_rows(self.session, self.size.width):
            self.mode.lines = (self.mode.scroll, self.mode.scroll)

    def _choose_lines(self, key: str) -> None:
        assert self.mode.lines is not None
        first, last = self.mode.lines
        if key in ("up", "down"):
            rows = text_rows(self.session, self.size.width)
            last = min(rows - 1, max(0, last + (1 if key == "down" else -1)))
            self.mode.lines = (first, last)
        elif key in ("shift+up", "shift+down", "v"):
            rows = text_rows(self.session, self.size.width)
            first = min(rows - 1, max(0, first + (-1 if key == "shift+up" else 1)))
            self.mode.lines = (first, max(first, last) if key != "shift+up" else last)
        elif key == "enter":
            self.session.add_snippet(snippet_of(self.session, self.mode.lines, self.size.width))
            self.mode.lines = None
        elif key == "escape":
            self.mode.lines = None

    def _move(self, by: int, *, extends: bool = False) -> None:
        self.session.move(by, extends=extends)

    def _scroll(self, by: int) -> None:
        rows = text_rows(self.session, self.size.width)
        self.mode.scroll = min(max(0, rows - 1), max(0, self.mode.scroll + by))

    def _toggle_scores(self) -> None:
        self.mode.hides_scores = not self.mode.hides_scores
        self.session.message = "scores are hidden" if self.mode.hides_scores else "scores are shown"

    def _show_keys(self) -> None:
        self.mode.shows_keys, self.mode.scroll = True, 0

    def _unanswerable(self) -> None:
        if self.session.marks.golds and not self.mode.asks_to_clear:
            self.mode.asks_to_clear = True
            return
        self.mode.asks_to_clear = False
        self.session.set_answerable(is_answerable=False)

    # ── drafts ────────────────────────────────────────────────────────────────────────────────────────────────

    def _decide(self, decision: str) -> None:
        if self.session.drafts is None:
            self.session.message = "y and n are for drafts"
        else:
            self.session.decide("accepted" if decision == "accepted" else "dropped")

    @contextmanager
    def _suspended(self) -> Iterator[None]:
        """The terminal is the editor's; where there is none to give away, nothing changes."""
        try:
            with self.suspend():
                yield
        except SuspendNotSupported:
            yield

    # ── waiting and ending ────────────────────────────────────────────────────────────────────────────────────

    def _await_pool(self) -> None:
        future = self.session.waits_for
        if future is not None:
            self._when_done(future, lambda: None)

    def _when_done(self, future: Future[Pool], then: Callable[[], object]) -> None:
        def done() -> None:
            if not future.cancelled():
                then()
            self._canvas.refresh()

        def wake(_: Future[Pool]) -> None:
            if not self._event_loop.is_closed():
                self._event_loop.call_soon_threadsafe(done)

        future.add_done_callback(wake)

    def action_finish(self) -> None:
        """Save and leave; where it cannot be saved, say so first, and leave at the second time."""
        if self.session.save() or self._is_told_of_unsaved:
            self.exit()
            return
        self._is_told_of_unsaved = True
        self.session.message += "; q again leaves without this case"
        self._canvas.refresh()
