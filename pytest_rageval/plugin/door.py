"""The one door from the light part of the plugin to the heavy one: loaded when a session turns out to have cases."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_rageval.io.collector import no_collection
from pytest_rageval.plugin.session import SESSION

if TYPE_CHECKING:
    from pytest_rageval.case_output import Routing
    from pytest_rageval.plugin.active import ActiveSession
    from pytest_rageval.plugin.controller import Controller

ACTIVE = pytest.StashKey["ActiveSession"]()
ROUTING: pytest.StashKey[Routing] = pytest.StashKey()
"""Where standard output and error go between tests."""
CONTROLLER = "rageval-controller"
"""The name under which the controller's hooks are registered."""


def enter(config: pytest.Config) -> ActiveSession:
    """The session's active part; its hooks are registered at the first call, those of results on all but workers."""
    if ACTIVE not in config.stash:
        session = config.stash[SESSION]
        is_first = "pytest_rageval.plugin.active" not in sys.modules
        with no_collection(is_for_good=is_first):  # pytest looks twice itself
            from pytest_rageval.plugin.active import ActiveSession
            from pytest_rageval.plugin.controller import Controller
            from pytest_rageval.plugin.display.captured_output import CapturedOutput, ReportMasking

            kind: type[ActiveSession] = ActiveSession
            if session.is_worker:
                from pytest_rageval.plugin.workers import ActiveWorker

                kind = ActiveWorker

        active = config.stash[ACTIVE] = kind(session)
        active.captured = CapturedOutput(config, active.mask, config.stash.get(ROUTING, None))
        config.pluginmanager.register(active.captured, "rageval-capture")
        config.pluginmanager.register(ReportMasking(config, active.mask), "rageval-masking")
        if not session.is_worker:
            config.pluginmanager.register(Controller(active), CONTROLLER)
    return config.stash[ACTIVE]


def controller(config: pytest.Config) -> Controller:
    """The hooks of the controlling process."""
    enter(config)
    registered: Any = config.pluginmanager.get_plugin(CONTROLLER)
    return cast("Controller", registered)


def entered(config: pytest.Config) -> ActiveSession | None:
    """The session's active part, None where nothing has asked for it."""
    return config.stash.get(ACTIVE, None)


class Arrivals:
    """Hands records that reports bring to the controller, and notes which tests ended and which pytest counted as
    failed, to compare both at the end of the run.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._config.stash[SESSION].ids_of_workers = ids

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        session = self._config.stash[SESSION]
        if report.when == "call" or not report.passed:
            session.ended.add(report.nodeid)
        if "rageval" in report.__dict__:
            controller(self._config).take_report(report)
        counted = session.of_pytest.testsfailed
        result = yield
        if session.of_pytest.testsfailed > counted:
            session.failed.add(report.nodeid)
        return result
