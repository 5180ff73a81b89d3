"""The run's verdict in pytest: its gates as tests of their own, and the exit status that they set.

So they count in the terminal, in JUnit XML and in pytest-html.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_rageval.finish import Finished
from pytest_rageval.plugin.display.summary_line import summarised
from pytest_rageval.report.gate_tests import GateTest
from pytest_rageval.text import printable

FILE = "rageval-gates"


def report_verdict(session: pytest.Session, finished: Finished) -> None:
    """The run and its verdict as properties of the suite in JUnit XML, where one is written."""
    for plugin in session.config.pluginmanager.get_plugins():
        if add := getattr(plugin, "add_global_property", None):
            add("rageval.run", str(finished.metrics["volatile"]["run_id"]))
            add("rageval.verdict", printable(finished.metrics["verdict"]["sentence"]))


def report_gates(session: pytest.Session, tests: list[GateTest]) -> None:
    """Report each as a test with all three phases, and set the exit status.

    Plugins that remember failing tests for the next run are left out: nobody can run a gate alone.
    """
    manager = session.config.pluginmanager
    remembering = [plugin for name in ("lfplugin", "stepwiseplugin") if (plugin := manager.get_plugin(name))]
    logreport = manager.subset_hook_caller("pytest_runtest_logreport", remembering)
    is_line = session.config.getoption("tbstyle", None) == "line"
    session.testscollected += len(tests)
    with _beyond_progress(manager.get_plugin("terminalreporter"), len(tests)):
        for test in tests:
            nodeid, location = f"{FILE}::{test.name}", (FILE, None, test.name)
            session.config.hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
            for when in ("setup", "call", "teardown"):
                report = _report(test, nodeid, location, when)
                report.longrepr = summarised(report.longrepr, FILE, is_line=is_line)
                logreport(report=report)
            session.config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
    if any(test.outcome == "failed" for test in tests) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@contextmanager
def _beyond_progress(terminal: Any, tests: int) -> Iterator[None]:
    """The terminal has said 100 % for the last case: what comes now stands on a line of its own, without a share."""
    if terminal is None or not tests:
        yield
        return
    if hasattr(terminal, "tests_count"):  # pytest-sugar, which computes the share itself
        terminal.tests_count += tests
    elif not terminal.showfspath and terminal.verbosity <= 0:
        terminal.write(f"\n{FILE} ")
    # The one private attribute: where it is gone, a share is shown that nobody needs.
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
        nodeid=nodeid, location=location, keywords={}, outcome=outcome, longrepr=longrepr, when=when,
        duration=0.0, start=0.0, stop=0.0,
    )  # fmt: skip
