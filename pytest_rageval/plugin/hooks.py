"""The face for pytest: each hook decides whether it is about us and hands over.

This module is imported in every test session of every project that has the plugin installed, so it imports nothing
beyond the standard library and pytest; the rest comes through the door when the first case file does.

PYTEST_DONT_REWRITE, as the package says: a second session of the same process would warn that it was not.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pytest_rageval.config.files import has_table, may_have_cases
from pytest_rageval.config.options import OPTIONS
from pytest_rageval.plugin import hookspecs
from pytest_rageval.plugin.door import Arrivals, controller, enter, entered
from pytest_rageval.plugin.fixtures import session_fixtures
from pytest_rageval.plugin.session import FIXTURES, ROUTING, SESSION, EvalSession

MARKER = (
    "rageval(path=None, select=None, **facts): on a test, run it for each case of a file (path relative to the test "
    "file, select as in -k) as its `eval_case`; on an eval item, what its case says, "
    "as in -m \"rageval(category='multi_hop')\""
)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> Generator[None, object, object]:
    """Route the streams before pytest captures: between tests it restores the streams that it found."""
    if may_have_cases(early_config.rootpath, args):
        from pytest_rageval.case_output import Routing, routed_streams  # here: other suites have no use for it

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
    session = config.stash[SESSION] = EvalSession(config)
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
            enter(session.config).check_settings()
    if session.config.pluginmanager.hasplugin("dsession"):
        ours.collected += ours.files_to_collect()
        if ours.collected:
            controller(session.config).open_for_workers()
        elif ours.given_options:
            enter(session.config).check_settings()


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
        collectors = [*collectors, enter(parent.config).collector(file_path, parent)]
    return collectors


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let `-k` find tests over cases by their cases' words, as it finds the cases themselves."""
    if "eval_case" in getattr(getattr(item, "callspec", None), "params", ()):
        enter(item.config).name(item)


@pytest.hookimpl(trylast=True)  # once plugins have multiplied items
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("rageval_shard"):
        enter(config).take_shard(items)
    if active := entered(config):
        active.drop_duplicates(items)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "eval_case" in metafunc.fixturenames and metafunc.definition.get_closest_marker("rageval"):
        enter(metafunc.config).parametrize(metafunc)


def pytest_collection_finish(session: pytest.Session) -> None:
    """End the session on wrong settings, before anything runs; our options are checked in any session."""
    ours = session.config.stash[SESSION]
    if active := entered(session.config):
        active.take_hooks()
    if not ours.is_worker and (entered(session.config) or ours.given_options):
        enter(session.config).check_settings()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    # Outermost, so that marks such as xfail come first.
    report = yield
    if active := entered(item.config):
        active.attach(item, report, call.excinfo.value if call.excinfo is not None else None)
    return report


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


def pytest_unconfigure(config: pytest.Config) -> None:
    if active := entered(config):
        active.close()
