"""The keys of the full-screen face of labelling, and the screen that lists them."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen
from textual.widgets import Static


def _key(key: str, action: str, word: str, meaning: str = "", sign: str | None = None) -> Binding:
    """Return a key with its word in the legend, if any, and its meaning in the list of all keys, if any."""
    return Binding(key, action, word, show=bool(word), key_display=sign or key, tooltip=meaning)


KEYS = (
    _key("space", "do('toggle_gold')", "gold", "gold, or no more"),
    _key("enter", "do('go', 1)", "save+next", "save, next case", "⏎"),
    _key("x", "do('toggle_irrelevant')", "irrelevant", "irrelevant, or no more"),
    _key("question_mark", "push_screen('keys')", "all keys", "these keys; any key closes them", "?"),
    _key("q", "finish", "quit", "save and quit, as ctrl+c"),
    _key("down", "do('move', 1)", "move", "point at a chunk; with shift at several", "↑↓"),
    _key("v", "snippet", "snippet", "lines as a snippet: ↑ ↓, then ⏎"),
    _key("a", "do('set_answerable')", "(un)answerable", "answerable; unanswerable, no golds", "a/u"),
    _key("slash", "type('ask')", "ask more", "ask another query", "/"),
    _key("w", "type('find')", "find", "find in the chunks"),
    _key("t", "do('next_unlabelled')", "to unlabelled", "save, next unlabelled"),
    _key("z", "do('undo')", "undo", "undo, redo with Z (all cases)"),
    _key("g", "do('next_group')", "group", "group of golds to come"),
    _key("right", "do('go', 1)", "case", "save, other case", "←→"),
    _key("o", "open_texts", "open", "the whole question and expected answer"),
    _key("b", "hide_scores", "blind", "hide the scores"),
    _key("s", "do('skip')", "skip", "skip: leave as it was"),
    _key("1", "do('put_in_group', 1)", "", "into group n", "1–9"),
    _key("left_square_bracket", "scroll_text(-5)", "", "scroll the text", "[ ]"),
    _key("escape", "leave", "", "leave what was begun", "esc"),
    _key("up", "do('move', -1)", ""),
    _key("shift+up", "do('extend', -1)", ""),
    _key("shift+down", "do('extend', 1)", ""),
    _key("pageup", "do('move', -10)", ""),
    _key("pagedown", "do('move', 10)", ""),
    _key("left", "do('go', -1)", ""),
    _key("u", "do('ask_to_clear')", ""),
    _key("Z", "do('redo')", ""),
    _key("right_square_bracket", "scroll_text(5)", ""),
    *(_key(str(group), f"do('put_in_group', {group})", "") for group in range(2, 10)),
)
"""What each key does; those of the legend come first, most needed first."""
DRAFT_KEYS = (
    _key("y", "do('decide', 'accepted')", "accept", "accept the draft"),
    _key("n", "do('decide', 'dropped')", "drop", "drop it"),
    _key("e", "edit", "edit", "edit it in $EDITOR"),
)


class KeysScreen(ModalScreen[None]):
    """All keys. Any key closes it and does nothing else."""

    def compose(self) -> ComposeResult:
        keys = [key for key in (*KEYS, *DRAFT_KEYS) if key.tooltip]
        if self.app.size.height >= len(keys):
            yield Static(Text("\n".join(f"{key.key_display:<5}  {key.tooltip}" for key in keys)))
        else:
            yield Static(Text(" · ".join(f"{key.key_display} {key.description or key.tooltip}" for key in keys)))

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        self.dismiss()
