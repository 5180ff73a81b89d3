"""A line after pytest's own while it waits for prefetched cases: on a terminal only, and wiped again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from pytest_rageval.prefetch import Tally
from pytest_rageval.render.text.columns import shortened
from pytest_rageval.runs.row import Row

LEAST_WIDTH = 20
SHARE_OF_TIME = 50
"""Counting 100,000 results of workers takes milliseconds: the next count waits this many times as long."""


class ProgressLine:
    """A line after the cursor: `show` writes it and puts the cursor back, `wipe` removes it, unknown to pytest."""

    def __init__(self, config: pytest.Config, text: Callable[[], str]) -> None:
        terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._config, self._text = config, text
        self._capture = config.pluginmanager.get_plugin("capturemanager")
        # Other reporters, such as that of pytest-sugar, draw lines themselves.
        is_usual = type(terminal) is pytest.TerminalReporter
        self.is_wanted = is_usual and bool(terminal.isatty) and bool(terminal.verbosity >= 0)
        self._is_shown = False

    def show(self) -> None:
        if not self.is_wanted:
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
    return f"asked {tally.asked}, judged {tally.judged}, in flight {tally.in_flight}{cost}"


class WorkersProgress:
    """Hooks on the controller of xdist: behind what its terminal shows, how much the workers have asked and judged.

    It is wiped before anything else is written, and shown again behind it.
    """

    def __init__(self, config: pytest.Config, rows: Callable[[], Collection[Row]], expected: Callable[[], int]) -> None:
        """`rows`: the results that workers have sent; `expected`: how many there are to be, 0 while nobody knows."""
        self._rows, self._expected = rows, expected
        self._line = ProgressLine(config, lambda: self._counted)
        self._counted, self._due = "", 0.0

    @property
    def is_wanted(self) -> bool:
        return self._line.is_wanted

    @contextmanager
    def _behind(self) -> Iterator[None]:
        self._line.wipe()
        yield
        if time.monotonic() >= self._due:
            # CPU time, not the clock: a count that waited for the processor would delay the next, perhaps the last.
            begun = time.thread_time()
            self._counted = rows_text(self._rows(), self._expected())
            self._due = time.monotonic() + SHARE_OF_TIME * (time.thread_time() - begun)
        if self._counted:
            self._line.show()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self) -> Generator[None, object, object]:
        with self._behind():
            return (yield)

    pytest_runtest_logstart = pytest_runtest_logfinish = pytest_runtest_logreport

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_testnodedown(self) -> None:
        self._line.wipe()

    pytest_keyboard_interrupt = pytest_internalerror = pytest_sessionfinish = pytest_testnodedown


def rows_text(rows: Collection[Row], expected: int) -> str:
    """Format the progress as `asked 12 of 135, judged 11, $0.02`; empty before the first result."""
    if not rows:
        return ""
    judged = sum(row.judge is not None for row in rows)
    dollars = math.fsum(row.cost["judge_cost_usd"] or 0 for row in rows)
    of, cost = f" of {expected}" if expected else "", f", ${dollars:.2f}" if dollars else ""
    return f"asked {len(rows)}{of}, judged {judged}{cost}"
