"""What code of the user's prints and logs, in the report of its own case, whenever it was asked: see `case_output`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from copy import copy
from typing import Any

import pytest

from pytest_rageval.case_output import OUTPUT, Output, Routing, Stream
from pytest_rageval.io.masking import Mask
from pytest_rageval.text import printable

SHOWING = ("report_handler", "caplog_handler", "log_cli_handler")
"""Handlers of pytest's logging plugin that belong to the test under way."""


class CapturedOutput:
    """Hooks on every process that runs tests, beneath pytest's own capturing.

    pytest shows what is printed while a test is under way as that test's, and outside of tests on the terminal. Cases
    that are asked ahead print at any time: what they print and log is kept, and replayed in the set-up of their test.
    With `-s` it is shown at once, line by line.
    """

    def __init__(self, config: pytest.Config, mask: Mask, routing: Routing | None) -> None:
        """`routing`: of the streams that pytest puts back between tests."""
        self._mask, self._routing = mask, routing
        self._is_live = config.getoption("capture", None) == "no"
        logging_plugin = config.pluginmanager.get_plugin("logging-plugin")
        handlers = [getattr(logging_plugin, name, None) for name in SHOWING]
        self._handlers = [handler for handler in handlers if isinstance(handler, logging.Handler)]
        self._level: int | None = getattr(logging_plugin, "log_level", None)
        self._own_handler = _CaseHandler()

    def begin(self) -> None:
        """Before the first case is asked."""
        if self._routing is not None:
            self._routing.threads = self.output()
        root = logging.getLogger()
        self._level_before = root.level
        root.addHandler(self._own_handler)
        if self._level is not None:
            root.setLevel(min(root.level, self._level))
        for handler in self._handlers:
            handler.addFilter(_is_of_no_case)

    def end(self) -> None:
        """Once nothing is asked any more; safe to call twice."""
        root = logging.getLogger()
        if self._own_handler not in root.handlers:
            return
        root.removeHandler(self._own_handler)
        root.setLevel(self._level_before)
        for handler in self._handlers:
            handler.removeFilter(_is_of_no_case)
        self._show_threads()

    def output(self) -> Output:
        """A new one, for a case."""
        return Output(self.clean if self._is_live else None)

    def clean(self, text: str) -> str:
        return printable(self._mask.shown(text))

    def replay(self, output: Output) -> None:
        """Print and log what a case did, as if it did so now."""
        for stream, text in output.texts():
            getattr(sys, stream).write(self.clean(text))
        for record in output.records:
            for handler in self._handlers:
                if record.levelno >= handler.level:
                    handler.handle(record)

    def add_to_report(self, output: Output, item: pytest.Item, report: pytest.TestReport) -> None:
        """Add what a hook printed for a report that is made already."""
        lines = [f"{record.levelname:8} {record.name}: {record.getMessage()}" for record in output.records]
        for kind, text in [*output.texts(), ("log", "\n".join(lines))]:
            if text:
                text = self.clean(text)
                report.sections.append((f"Captured {kind} {report.when}", text))
                item.add_report_section(report.when, kind, text)

    def _show_threads(self) -> None:
        if self._routing is not None and self._routing.threads:
            threads, self._routing.threads = self._routing.threads, self.output()
            self.replay(threads)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, Any]:
        """Route the streams that pytest has set for this phase."""
        __tracebackhide__ = True
        for name in ("stdout", "stderr"):
            if not isinstance(getattr(sys, name), Stream):
                setattr(sys, name, Stream(name, getattr(sys, name)))
        self._show_threads()
        return (yield)

    pytest_runtest_call = pytest_runtest_teardown = pytest_make_collect_report = pytest_runtest_setup


def _is_of_no_case(_record: logging.LogRecord) -> bool:
    return OUTPUT.get() is None


class _CaseHandler(logging.Handler):
    """Keeps the records of cases; of others what Python would print where nobody listens."""

    def emit(self, record: logging.LogRecord) -> None:
        output = OUTPUT.get()
        if output is not None:
            kept = copy(record)  # its arguments may change, or hold much
            kept.msg, kept.args = record.getMessage(), ()
            output.log(kept)
        elif logging.getLogger().handlers == [self] and logging.lastResort is not None:
            logging.lastResort.handle(record)
