"""The whole question and expected answer of a case, on a screen of their own."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static


class TextsScreen(ModalScreen[None]):
    """Texts that the label screen folds. The arrows scroll them; `o` and escape close the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("o,escape,q,enter", "dismiss", "close")]

    def __init__(self, *texts: str) -> None:
        super().__init__()
        self._texts = [text for text in texts if text]

    def compose(self) -> ComposeResult:
        shown = [*self._texts, "o closes this, ↑↓ scroll"]
        with VerticalScroll():
            yield Static(Text("\n\n".join(shown)))

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
