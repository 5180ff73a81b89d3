"""The face for pytest: each hook decides whether it is about us and hands over.

This module is imported in every test session of every project that has the plugin installed, so it imports nothing
beyond the standard library and pytest; the rest comes when the first case file does.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from pytest_rageval.config.options import OPTIONS
from pytest_rageval.plugin.controller import Controller
from pytest_rageval.plugin.fixtures import NAME, session_fixtures
from pytest_rageval.plugin.session import RUN, EvalSession

MARKER = (
    "rageval(path=None, select=None, **facts): on a test, run it for each case of a file (path relative to the test "
    "file, select as in -k) as its `eval_case`; on an eval item, what its case says, "
    "as in -m \"rageval(category='multi_hop')\""
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rageval", "evaluation of RAG systems")
    for option in OPTIONS:
        group.addoption(f"--rageval-{option.name}", **option.argparse())


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_rageval.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    run = config.stash[RUN] = EvalSession(config)
    config.pluginmanager.register(session_fixtures(run), NAME)
    if not run.is_worker:
        config.pluginmanager.register(Controller(run), "rageval-controller")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    run = parent.config.stash[RUN]
    return run.collector(file_path, parent) if run.owns(file_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[RUN].take_shard(items)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "eval_case" in metafunc.fixturenames and metafunc.definition.get_closest_marker("rageval"):
        metafunc.config.stash[RUN].parametrize(metafunc)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    # Outermost, so that marks such as xfail have had their say.
    report = yield
    item.config.stash[RUN].attach(item, report)
    return report


def pytest_unconfigure(config: pytest.Config) -> None:
    if run := config.stash.get(RUN, None):
        run.close()
