"""The one door from the light part of the plugin to the heavy one: loaded when a session turns out to have cases."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, cast

import pytest

from pytest_rageval.io.collector import no_collection
from pytest_rageval.plugin.session import SESSION

if TYPE_CHECKING:
    from pytest_rageval.plugin.active import ActiveSession
    from pytest_rageval.plugin.controller import Controller

ACTIVE = pytest.StashKey["ActiveSession"]()


def enter(config: pytest.Config) -> ActiveSession:
    """Return the session's active part, made at the first call."""
    if ACTIVE not in config.stash:
        is_first = "pytest_rageval.plugin.active" not in sys.modules
        with no_collection(is_for_good=is_first):  # pytest looks twice itself
            from pytest_rageval.plugin.controller import activate
        config.stash[ACTIVE] = activate(config.stash[SESSION])
    return config.stash[ACTIVE]


def entered(config: pytest.Config) -> ActiveSession | None:
    """Return the session's active part, None if nothing has asked for it."""
    return config.stash.get(ACTIVE, None)


def controller(config: pytest.Config) -> Controller:
    """Return the active part of the controlling process."""
    return cast("Controller", enter(config))


class Arrivals:
    """Hooks that hand the records of reports to the controller, and note which tests ended and failed."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._session = config, config.stash[SESSION]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._session.ids_of_workers = ids

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        session = self._session
        if report.when == "call" or not report.passed:
            session.ended.add(report.nodeid)
        if "rageval" in report.__dict__:
            controller(self._config).take_report(report)
        counted = session.of_pytest.testsfailed
        result = yield
        if session.of_pytest.testsfailed > counted:
            session.failed.add(report.nodeid)
        if "rageval_calls" in report.__dict__:
            controller(self._config).count_calls(report)
        return result
