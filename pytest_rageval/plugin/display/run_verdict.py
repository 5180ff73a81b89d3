"""The run's verdict in pytest: its summary, its gates as tests of their own, and the exit status that they set.

So they count in the terminal, in JUnit XML and in pytest-html.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_rageval.render.gate_tests import GateTest
from pytest_rageval.render.html.report_file import EndReport
from pytest_rageval.render.text.view_text import STYLES, view_lines
from pytest_rageval.run.finish import FinishedRun
from pytest_rageval.runs.config_diff import SettingChange
from pytest_rageval.text import printable
from pytest_rageval.views.run import RunView, run_view
from pytest_rageval.views.verdict_block import VerdictView, verdict_line, verdict_view


class RunEnd(NamedTuple):
    """Facts on the end of a run besides its results.

    how_to_finish  tells why it has cases left, given the command that resumes it
    """

    changes: Sequence[SettingChange]
    how_to_finish: Callable[[str], str]


class Crash(NamedTuple):
    """Where a test failed, and its message, as at the end of a traceback of pytest's."""

    path: str
    lineno: int
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.lineno}" if self.lineno else self.path
        return f"{place}: {self.message.partition(chr(10))[0]}"


class SummarisedText(str):
    """A report's text that is also what the short summary, and the only line of `--tb=line`, show of it."""

    reprcrash: Crash
    is_line: bool
    """True if pytest's line of `reprcrash` is all that is shown."""
    same_as: str | None
    """The test that has shown the same error, if any; JUnit and others get the text nevertheless."""

    def toterminal(self, out: Any) -> None:
        if self.same_as is not None:
            out.line(f"the same error as of {self.same_as}")
        elif not self.is_line:
            out.line(self)


def summarised(longrepr: Any, path: str, lineno: int = 0, *, is_line: bool = False, same_as: str | None = None) -> Any:
    """Return a report's `longrepr` in the form whose message pytest's summaries show; `lineno` 0 for no line.

    Only for reports that no process sends on: the channel between processes takes plain text alone.
    """
    if same_as is not None and not isinstance(longrepr, str):
        longrepr = longrepr.reprcrash.message
    if not isinstance(longrepr, str):
        return longrepr
    text = SummarisedText(longrepr)
    text.reprcrash = Crash(path, lineno, longrepr)
    text.is_line = is_line
    text.same_as = same_as
    return text


def write_figures(terminal: pytest.TerminalReporter, finished: FinishedRun, notes: Sequence[str]) -> None:
    """Write scores, gates, changed cases and notes, every metric with -v; the notes alone with -q, nothing with -qq."""
    if terminal.verbosity < -1:
        return
    if terminal.verbosity >= 0:
        terminal.write_sep("=", "rageval")
        durations = terminal.config.getoption("durations", None)
        is_verbose = terminal.verbosity > 0
        view = run_view(finished.metrics, finished.rows, is_verbose=is_verbose, has_durations=durations is not None)
        _write_view(terminal, view)
    # What was not written, or not understood, must not pass unseen.
    for note in (*finished.notes, *notes):
        terminal.write_line(printable(note), yellow=True)


def write_verdict(
    terminal: pytest.TerminalReporter, finished: FinishedRun, end: RunEnd, root: Path, report: EndReport | None
) -> None:
    """Write causes, verdict, what changed and where the reports are; the verdict alone with -q, nothing with -qq."""
    if terminal.verbosity < -1:
        return
    if terminal.verbosity < 0:
        line = verdict_line(finished.metrics)
        style = STYLES[line.tone]
        terminal.write_line(printable(line.text), **({} if style == "plain" else {style: True}))
        _write_resume(terminal, finished, end)
        return
    terminal.write_sep("=", "rageval verdict")
    _write_view(terminal, verdict_view(finished.metrics, finished.rows, end.changes))
    folder = finished.folder
    shown = folder.relative_to(root) if folder.is_relative_to(root) else folder
    terminal.write_line(f"summary: {shown / 'summary.md'}")
    if report is not None:
        if report.problem is None:
            terminal.write_line(f"report:  {shown / report.path.name}")
        else:
            terminal.write_line(printable(report.problem), yellow=True)
    _write_resume(terminal, finished, end)


def _write_resume(terminal: pytest.TerminalReporter, finished: FinishedRun, end: RunEnd) -> None:
    if finished.is_unfinished:
        resume = end.how_to_finish(f"pytest --rageval-resume {finished.folder.name}")
        terminal.write_line(printable(resume), yellow=True)


def _write_view(terminal: pytest.TerminalReporter, view: RunView | VerdictView) -> None:
    for line in view_lines(view, terminal.config.get_terminal_writer().fullwidth):
        terminal.write_line(line.text, **({} if line.style == "plain" else {line.style: True}))


FILE = "rageval-gates"


def report_verdict(session: pytest.Session, finished: FinishedRun) -> None:
    """Add the run and its verdict as properties of the suite in JUnit XML, if one is written."""
    # JUnit's plugin has no name of its own.
    for plugin in session.config.pluginmanager.get_plugins():
        if add := getattr(plugin, "add_global_property", None):
            add("rageval.run", str(finished.metrics["volatile"]["run_id"]))
            add("rageval.verdict", printable(finished.metrics["verdict"]["sentence"]))


def report_gates(session: pytest.Session, tests: list[GateTest]) -> None:
    """Report each gate as a test with all three phases, and set the exit status.

    Plugins that remember failing tests for the next run are left out: nobody can run a gate alone.
    """
    manager = session.config.pluginmanager
    remembering = [plugin for name in ("lfplugin", "stepwiseplugin") if (plugin := manager.get_plugin(name))]
    logreport = manager.subset_hook_caller("pytest_runtest_logreport", remembering)
    is_line = session.config.getoption("tbstyle", None) == "line"
    # Before they are reported: pytest shows the share of the tests that it collected.
    session.testscollected += len(tests)
    with _beyond_progress(manager.get_plugin("terminalreporter"), len(tests)):
        for test in tests:
            nodeid = f"{FILE}::{test.name}"
            location = (FILE, None, test.name)
            session.config.hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
            for when in ("setup", "call", "teardown"):
                report = _report(test, nodeid, location, when)
                report.longrepr = summarised(report.longrepr, FILE, is_line=is_line)
                logreport(report=report)
            session.config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
    # Only where it says that all is well: an interruption or an internal error says more.
    if any(test.outcome == "failed" for test in tests) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@contextmanager
def _beyond_progress(terminal: Any, tests: int) -> Iterator[None]:
    """Write what follows the terminal's 100 % on a line of its own, without a share."""
    if terminal is None or not tests:
        yield
        return
    if hasattr(terminal, "tests_count"):  # pytest-sugar, which computes the share itself
        terminal.tests_count += tests
    elif not terminal.showfspath and terminal.verbosity <= 0:
        terminal.write(f"\n{FILE} ")
    # The one private attribute: without it, a needless share is shown.
    style = getattr(terminal, "_show_progress_info", False)
    terminal._show_progress_info = False
    try:
        yield
    finally:
        terminal._show_progress_info = style


def _report(test: GateTest, nodeid: str, location: Any, when: Any) -> pytest.TestReport:
    outcome: Any = test.outcome if when == "call" else "passed"
    longrepr: Any = None
    if outcome == "failed":
        longrepr = test.message
    elif outcome == "skipped":
        longrepr = (FILE, None, f"Skipped: {test.message}")
    return pytest.TestReport(
        nodeid=nodeid,
        location=location,
        keywords={},
        outcome=outcome,
        longrepr=longrepr,
        when=when,
        duration=0.0,
        start=0.0,
        stop=0.0,
    )
