"""The run's summary in pytest's terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_rageval.finish import Finished
from pytest_rageval.report.summary_terminal import summary
from pytest_rageval.text import printable

if TYPE_CHECKING:
    from pytest_rageval.plugin.session import EvalSession


def write_summary(terminal: pytest.TerminalReporter, finished: Finished, run: EvalSession) -> None:
    """Short by default, metric by metric with -v, nothing with -qq."""
    if terminal.verbosity < -1:
        return
    terminal.write_sep("=", "rageval")
    lines = summary(finished.metrics, finished.rows, width=terminal._tw.fullwidth, verbose=terminal.verbosity > 0)
    for line in lines:
        terminal.write_line(printable(line.text), **({} if line.style == "plain" else {line.style: True}))
    for note in (*finished.notes, *run.notes):
        terminal.write_line(printable(note), yellow=True)
    if finished.is_cut_short:
        terminal.write_line(f"interrupted; pytest --rageval-resume {finished.folder.name} finishes it", yellow=True)
    folder = finished.folder
    shown = folder.relative_to(run.root) if folder.is_relative_to(run.root) else folder
    terminal.write_line(f"summary: {shown / 'summary.md'}")
