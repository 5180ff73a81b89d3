"""For all tests: generated examples take the time they take and are the same each time, and `--quick` leaves out what
starts a process."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from browser import Chromium, chromium_path
from hypothesis import HealthCheck, settings
from processes import IS_THOROUGH, rounds
from reliability import ReliabilityTable, Tally

if TYPE_CHECKING:
    from project import Project

settings.register_profile(
    "unhurried",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=rounds(100, 25),
    derandomize=not IS_THOROUGH,  # what is found by chance is found by `make torture`
)
settings.load_profile("unhurried")


_NO_PARAMETERS = SimpleNamespace(params={})
STANDSTILL_S = 300
"""A test that takes longer is ended by its name and with all stacks; the session goes on."""
_started: list[str] = []
"""Processes that this test started, as far as `--quick` watches."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests that start no process (make quick)")
    parser.addoption(
        "--reliability-table", type=Path, metavar="FILE", help="write what was tried against the project, and what held"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        sys.addaudithook(_watch)
    config.pluginmanager.register(ReliabilityTable(config.getoption("--reliability-table")))
    _hear_signals()


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    # Each run asks git for the commit of its cases, in 3 ms.
    if event == "subprocess.Popen" and Path(arguments[0]).name != "git":
        _started.append(str(arguments[1])[:100])
    elif event in ("os.fork", "os.forkpty", "os.posix_spawn"):
        _started.append(event)


def _hear_signals() -> None:
    """Started in the background, or by nohup, we would ignore them, and so would every process that a test starts."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        # A test that runs alone and with workers needs no mark: its arguments say which it is.
        is_with_workers = "-n" in getattr(item, "callspec", _NO_PARAMETERS).params.get("how", ())
        if is_with_workers or item.get_closest_marker("browser"):
            item.add_marker("child_process")
        # A mark, since the option of pytest-timeout would stop `pytest evalcases` where only the plugin is installed.
        if config.getoption("timeout", None) is None and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(STANDSTILL_S))
    if config.getoption("--quick"):
        left_out = [item for item in items if item.get_closest_marker("child_process")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _started.clear()
    return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    yield
    if _started:
        pytest.fail(f"{item.nodeid} starts a process ({_started[0]}): mark it child_process", pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def _to_ourselves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs inside a test tidy temporary folders of their own, not those of everybody's pytest on this machine, know no
    keys or settings of whoever started the tests, and are as wide as where nobody looks; and what tests write need not
    outlive a power failure: waiting for the disk is most of the time of a short run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DEBUG_TEMPROOT", str(tmp_path_factory.getbasetemp()))
        for name in list(os.environ):
            if name.endswith("_API_KEY") or name.startswith("RAGEVAL_"):
                patch.delenv(name)
        patch.setenv("COLUMNS", "80")
        patch.setenv("LINES", "24")
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def tally() -> Tally:
    """The rounds of a test that the table of reliability counts."""
    return Tally()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """An empty project with a bot that knows three facts: the current folder of a person without settings of pytest."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PY_COLORS", "0")
    from project import Project  # here, because it loads the whole package

    with contextlib.closing(Project(tmp_path)) as project:
        yield project


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """One browser a session; where there is none, its tests are skipped and say what they need."""
    path = chromium_path()
    if path is None:
        pytest.skip("no Chromium is installed (chromium, chromium-browser or google-chrome on the PATH)")
    pytest.importorskip("playwright", reason="playwright is not installed (pip install -e '.[dev]')")
    browser = Chromium(path)
    yield browser
    browser.close()


@pytest.fixture(params=["openai", "anthropic"])
def kind(request: pytest.FixtureRequest) -> str:
    """A kind of server that judges are asked at."""
    name: str = request.param
    return name
