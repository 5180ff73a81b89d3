"""The parts of pytest's summary that stand around its own: failures shown in full, and the verdict below all of it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from pytest_rageval.plugin.display.run_verdict import FILE, SummarisedText
from pytest_rageval.text import counted

SHOWN_IN_FULL = 10
"""Failing cases, and cases with errors, that pytest shows in full; each further one is a line of its short summary."""


class FoldedFailures:
    """The reports of failing cases that pytest leaves out of its sections of failures, unless -v asks for all."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal
        self._all: dict[str, list[Any]] = {}
        self.hidden = 0

    def fold(self) -> None:
        """Take the further failing cases out of what pytest is about to show in full."""
        style = self._terminal.config.getoption("tbstyle", "auto")
        # These styles show a line each, or nothing: there is nothing to fold.
        if self._terminal.verbosity > 0 or style in ("line", "no"):
            return
        for outcome in ("failed", "error"):
            reports = self._terminal.stats.get(outcome, [])
            shown = self._shown(reports)
            if len(shown) < len(reports):
                self._all[outcome] = reports
                self._terminal.stats[outcome] = shown
                self.hidden += len(reports) - len(shown)

    def unfold(self) -> None:
        """Put them back, for the short summary and for other plugins."""
        for outcome, reports in self._all.items():
            self._terminal.stats[outcome] = reports
        self._all = {}

    def write_note(self) -> None:
        """Write how many failing cases are not shown in full."""
        if self.hidden and self._terminal.verbosity == 0:
            cases = counted(self.hidden, "more case is", "more cases are")
            self._terminal.write_line(f"{cases} not shown in full: -v shows all, rageval explain shows one")

    @staticmethod
    def _shown(reports: list[Any]) -> list[Any]:
        """Return the reports to show: all of gates and other tests, the first ones of cases, equal errors once."""
        shown = []
        cases = 0
        for report in reports:
            longrepr = getattr(report, "longrepr", None)
            is_gate = report.nodeid.startswith(f"{FILE}::")
            if isinstance(longrepr, SummarisedText) and not is_gate:
                if cases == SHOWN_IN_FULL or longrepr.same_as is not None:
                    continue
                cases += 1
            shown.append(report)
        return shown


class SummaryEnd:
    """The outermost hook of the summary.

    pytest's own hook is a wrapper that writes its short summary last: only a wrapper around that one, which `tryfirst`
    makes of this, writes after it.
    """

    def __init__(self, write_end: Callable[[pytest.TerminalReporter], None]) -> None:
        self._write_end = write_end
        self.folded: FoldedFailures | None = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
        self.folded = FoldedFailures(terminalreporter)
        self.folded.fold()
        try:
            yield
        finally:
            self.folded.unfold()
        self._write_end(terminalreporter)
