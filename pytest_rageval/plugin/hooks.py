"""The face for pytest: each hook decides whether it is about us and hands over.

This module is imported in every test session of every project that has the plugin installed, so it imports nothing
beyond the standard library and pytest; `active_session` loads the rest when a session turns out to have cases.

PYTEST_DONT_REWRITE, as the package says: a second session of the same process would warn that it was not.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pytest_rageval.config.files import has_table, may_have_cases
from pytest_rageval.config.options import OPTIONS
from pytest_rageval.plugin import hookspecs
from pytest_rageval.plugin.entry import ACTIVE, active_session
from pytest_rageval.plugin.fixtures import session_fixtures
from pytest_rageval.plugin.light_session import FIXTURES, ROUTING, SESSION, LightSession, RunControl

MARKER = (
    "rageval(path=None, select=None, **facts): On a test, run it once for each case of a file, as the fixture "
    "`eval_case`; `path` is relative to the test's file, `select` an expression as for -k. On the test of a case, "
    "its facts, as in -m \"rageval(category='multi_hop')\""
)


class Arrivals:
    """Hooks that hand the records of reports to the controller, and note which tests ended and failed."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._session = config.stash[SESSION]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._session.ids_of_workers = ids

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        session = self._session
        facts = report.__dict__
        if report.when == "call" or not report.passed:
            # Before other hooks, which may raise.
            session.ended.add(report.nodeid)
        if "rageval" in facts:
            self._control().take_report(report)
        counted = session.of_pytest.testsfailed
        result = yield
        # By pytest's own count, after all hooks: one of them may have changed the outcome.
        if session.of_pytest.testsfailed > counted:
            session.failed.add(report.nodeid)
        if "rageval_calls" in facts:
            self._control().count_calls(report)
        return result

    def _control(self) -> RunControl:
        """Return what writes the run; the controller of xdist may hear of cases by the report of a worker."""
        if self._session.control is None:
            active_session(self._config)
        assert self._session.control is not None
        return self._session.control


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> Generator[None, object, object]:
    """Route the streams before pytest captures: between tests it restores the streams that it found."""
    if may_have_cases(early_config.rootpath, args):
        from pytest_rageval.io.case_output import Routing, routed_streams  # here: other suites have no use for it
        from pytest_rageval.io.output_encoding import take_any_text

        for stream in (sys.stdout, sys.stderr):
            early_config.add_cleanup(take_any_text(stream))
        routing = early_config.stash[ROUTING] = Routing()
        routed = ExitStack()
        routed.enter_context(routed_streams(routing))
        early_config.add_cleanup(routed.close)
    return (yield)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rageval", "evaluation of RAG systems")
    for option in OPTIONS:
        group.addoption(f"--rageval-{option.name}", **option.argparse())


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    session = config.stash[SESSION] = LightSession(config)
    config.pluginmanager.register(session_fixtures(config), FIXTURES)
    if not session.is_worker:
        config.pluginmanager.register(Arrivals(config), "rageval-arrivals")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Check settings and cases before xdist starts its workers: its controller collects nothing.

    Last, so that the terminal is ready; xdist's own is later still, as it was registered later.
    """
    ours = session.config.stash[SESSION]
    ours.of_pytest = session
    if not ours.is_worker:
        ours.check_one_project()
        if not ours.globs:  # `cases = []`: nothing would be collected, and no problem reported
            active_session(session.config).check_settings()
    if session.config.pluginmanager.hasplugin("dsession"):
        ours.collected += ours.files_to_collect()
        if ours.collected:
            active_session(session.config)
            assert ours.control is not None
            ours.control.open_for_workers()
        elif ours.given_options:
            active_session(session.config).check_settings()
    if not ours.is_worker and ours.has_lost_cases:
        active_session(session.config)  # which reports them when it collects


@pytest.hookimpl(optionalhook=True)
def pytest_html_report_title(report: Any) -> None:
    """Keep pytest-html's report data, which it hands to this hook only."""
    report.config.stash[SESSION].html_report = report


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    collectors = yield
    session = parent.config.stash[SESSION]
    if session.owns(file_path) or (not collectors and session.is_faulty(file_path)):
        collectors = [*collectors, active_session(parent.config).collector(file_path, parent)]
    return collectors


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "eval_case" in metafunc.fixturenames and metafunc.definition.get_closest_marker("rageval"):
        active_session(metafunc.config).parametrize(metafunc)


def pytest_collection_finish(session: pytest.Session) -> None:
    """End the session on wrong settings, before anything runs; our options are checked in any session."""
    ours = session.config.stash[SESSION]
    if not ours.is_worker and (ACTIVE in session.config.stash or ours.given_options):
        active_session(session.config).check_settings()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config, exitstatus: int) -> None:
    """Report what was not found, or not run, if the project or the command line names it."""
    ours = config.stash[SESSION]
    is_empty = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    for line in ours.unsaid(is_empty=is_empty):
        terminalreporter.write_line(line, yellow=True)
    is_meant = is_empty and (ours.given_options or has_table(ours.root))
    if is_meant and not ours.found_files:
        patterns = ", ".join(ours.globs)
        terminalreporter.write_line(f"rageval: no file holds cases: nothing matches {patterns}", yellow=True)
