"""The text of a chunk on the label screen, in which a snippet is chosen."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from pytest_rageval.label.marks_view import displayed


class ChunkText(TextArea):
    """The text of a chunk. It has the focus while a snippet is chosen: the arrows then move its end."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"cursor_{key}(True)") for key in ("up", "down", "left", "right")),
        Binding("v,shift+down", "begin_later"),
        Binding("enter", "app.take_snippet"),
    ]

    def __init__(self) -> None:
        super().__init__(read_only=True, highlight_cursor_line=False, id="text")
        self._shown: tuple[str, object, str] = ("", (), "")
        self._places = [0]
        self._starts = [0]
        self._words = ""
        self._marked: list[tuple[int, int]] = []

    def show(self, text: str, spans: list[tuple[int, int]], words: str) -> None:
        """Show a text with its snippets marked and the words that were looked for."""
        if (text, spans, words) == self._shown:
            return
        is_other = text != self._shown[0]
        self._shown = (text, spans, words)
        self._words = words.strip()
        shown, self._places = displayed(text)
        self._starts = [*accumulate((len(line) + 1 for line in shown.split("\n")), initial=0)]
        self._marked = [(bisect_left(self._places, first), bisect_left(self._places, last)) for first, last in spans]
        at = self.scroll_offset
        self.load_text(shown)
        self.scroll_to(y=0 if is_other else at.y, animate=False)

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        start = self._starts[line_index]
        for first, last in self._marked:
            line.stylize("black on yellow", max(0, first - start), max(0, last - start))
        if self._words:
            line.highlight_words([self._words], "bold underline", case_sensitive=False)
        return line

    def begin(self) -> None:
        """Choose the first row that is in sight."""
        start = self.wrapped_document.offset_to_location(self.scroll_offset)
        self.selection = Selection(start, self.navigator.get_location_below(start))

    def action_begin_later(self) -> None:
        """Let the snippet begin one row further down."""
        start = self.navigator.get_location_below(self.selection.start)
        self.selection = Selection(start, max(self.selection.end, self.navigator.get_location_below(start)))

    @property
    def chosen(self) -> str:
        """Return the source of the chosen passage."""
        first, last = sorted(self._places[self._starts[row] + column] for row, column in self.selection)
        return self._shown[0][first:last]
