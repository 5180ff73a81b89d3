"""A line behind pytest's own while it waits for cases that are asked ahead: on a terminal alone, and wiped again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_rageval.prefetch import Tally
from pytest_rageval.report.columns import shortened

LEAST_WIDTH = 20


class ProgressLine:
    """`show` writes behind the cursor and puts it back, `wipe` leaves nothing: pytest does not know of either."""

    def __init__(self, config: pytest.Config, tally: Tally) -> None:
        terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._terminal, self._tally = terminal, tally
        self._capture = config.pluginmanager.get_plugin("capturemanager")
        # Other reporters, such as that of pytest-sugar, draw lines themselves.
        self._is_wanted = type(terminal) is pytest.TerminalReporter and terminal.isatty and terminal.verbosity >= 0
        self._is_shown = False

    def show(self) -> None:
        if not self._is_wanted:
            return
        with self._uncaptured() as writer:
            room = writer.fullwidth - writer.width_of_current_line - 2
            if room < LEAST_WIDTH:
                return
            text = shortened(self._text(), room)
            self._write(writer, f"\x1b[K {text}\x1b[{len(text) + 1}D")
        self._is_shown = True

    def wipe(self) -> None:
        if self._is_shown:
            with self._uncaptured() as writer:
                self._write(writer, "\x1b[K")
            self._is_shown = False

    @contextmanager
    def _uncaptured(self) -> Iterator[Any]:
        """pytest's writer: a test's set-up, during which cases are waited for, is captured, and has no width."""
        if self._capture is None:
            yield self._terminal._tw
            return
        with self._capture.global_and_fixture_disabled():
            yield self._terminal._tw

    def _write(self, writer: Any, text: str) -> None:
        # Past pytest's writer, which would count the characters as part of its line.
        writer._file.write(text)
        writer._file.flush()

    def _text(self) -> str:
        tally = self._tally
        cost = f", ${tally.cost_usd:.2f}" if tally.cost_usd else ""
        return f"asked {tally.asked}, judged {tally.judged}, in flight {tally.in_flight}{cost}"
