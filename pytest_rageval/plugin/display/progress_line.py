"""A line after pytest's own while it waits for prefetched cases: on a terminal only, and wiped again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from pytest_rageval.render.text.columns import shortened
from pytest_rageval.run.prefetch import Tally

LEAST_WIDTH = 20


class ProgressLine:
    """A line after the cursor: `show` writes it and puts the cursor back, `wipe` removes it, unknown to pytest."""

    def __init__(self, config: pytest.Config, text: Callable[[], str]) -> None:
        terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._config = config
        self._text = text
        self._capture = config.pluginmanager.get_plugin("capturemanager")
        # Other reporters, such as that of pytest-sugar, draw lines themselves.
        is_usual = type(terminal) is pytest.TerminalReporter
        self.is_wanted = is_usual and bool(terminal.isatty) and bool(terminal.verbosity >= 0)
        self._is_shown = False

    def show(self) -> None:
        with self._uncaptured() as writer:
            room = writer.fullwidth - writer.width_of_current_line - 2
            # A line that wraps could not be wiped.
            if room < LEAST_WIDTH:
                return
            text = shortened(self._text(), room)
            # The cursor goes back: pytest goes on where it stopped.
            self._write(writer, f"\x1b[K {text}\x1b[{len(text) + 1}D")
        self._is_shown = True

    def wipe(self) -> None:
        if self._is_shown:
            with self._uncaptured() as writer:
                self._write(writer, "\x1b[K")
            self._is_shown = False

    @contextmanager
    def _uncaptured(self) -> Iterator[Any]:
        """Yield pytest's writer uncaptured: cases are awaited in a captured setup, which has no width."""
        with nullcontext() if self._capture is None else self._capture.global_and_fixture_disabled():
            yield self._config.get_terminal_writer()

    def _write(self, writer: Any, text: str) -> None:
        # Past pytest's writer, which would count the characters as part of its line.
        writer._file.write(text)
        writer._file.flush()


def tally_text(tally: Tally) -> str:
    """Format what one process has asked and judged, and what it waits for."""
    cost = f", ${tally.cost_usd:.2f}" if tally.cost_usd else ""
    counts = f"asked {tally.asked}, judged {tally.judged}, in flight {tally.in_flight}{cost}"
    return ", ".join([counts, *tally.allowances()])
