"""The run's summary in pytest's terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_rageval.finish import Finished
from pytest_rageval.page.report_file import EndReport
from pytest_rageval.report.summary_terminal import summary
from pytest_rageval.text import printable


def write_summary(
    terminal: pytest.TerminalReporter, finished: Finished, notes: Sequence[str], root: Path, report: EndReport | None
) -> None:
    """Short by default, metric by metric with -v, nothing with -qq."""
    if terminal.verbosity < -1:
        return
    terminal.write_sep("=", "rageval")
    lines = summary(finished.metrics, finished.rows, width=terminal._tw.fullwidth, verbose=terminal.verbosity > 0)
    for line in lines:
        terminal.write_line(printable(line.text), **({} if line.style == "plain" else {line.style: True}))
    for note in (*finished.notes, *notes):
        terminal.write_line(printable(note), yellow=True)
    if finished.is_unfinished:
        terminal.write_line(f"interrupted; pytest --rageval-resume {finished.folder.name} finishes it", yellow=True)
    folder = finished.folder
    shown = folder.relative_to(root) if folder.is_relative_to(root) else folder
    terminal.write_line(f"summary: {shown / 'summary.md'}")
    if report is not None:
        if report.problem is None:
            terminal.write_line(f"report:  {shown / report.path.name}")
        else:
            terminal.write_line(printable(report.problem), yellow=True)
