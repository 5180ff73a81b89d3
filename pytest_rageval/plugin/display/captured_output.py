"""The output of a session: each case's in its own report (see `case_output`), credentials masked."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from copy import copy
from typing import Any

import pytest

from pytest_rageval.io.case_output import OUTPUT, Output, Routing, Stream
from pytest_rageval.io.masking import Mask
from pytest_rageval.text import printable

SHOWING = ("report_handler", "caplog_handler", "log_cli_handler")
"""Handlers of pytest's logging plugin that belong to the test under way."""


LOG_HANDLERS = ("report_handler", "log_cli_handler", "log_file_handler")
"""Handlers of pytest's logging plugin whose records are shown; not that of `caplog`, which user tests read."""


class CapturedOutput:
    """Hooks on every process: captured output beneath pytest's own capturing, and masked logs and warnings.

    pytest assigns output to the test that is under way, and outside of tests to the terminal. Prefetched cases print at
    any time: their output and logs are kept and replayed in the setup of their test. With `-s` they are shown at once,
    line by line.
    """

    def __init__(self, config: pytest.Config, mask: Mask, routing: Routing | None) -> None:
        """`routing`: of the streams that pytest puts back between tests."""
        self._mask = mask
        self._routing = routing
        self._is_live = config.getoption("capture", None) == "no"
        logging_plugin = config.pluginmanager.get_plugin("logging-plugin")
        handlers = [getattr(logging_plugin, name, None) for name in SHOWING]
        self._handlers = [handler for handler in handlers if isinstance(handler, logging.Handler)]
        self._level: int | None = getattr(logging_plugin, "log_level", None)
        self._own_handler = _CaseHandler()
        self._streams: dict[str, Stream] = {}
        # pytest's handlers write what libraries log of requests, credentials included: only a formatter sees each line.
        for name in LOG_HANDLERS:
            handler = getattr(logging_plugin, name, None)
            if isinstance(handler, logging.Handler):
                handler.setFormatter(_MaskingFormatter(handler.formatter or logging.Formatter(), mask))

    def begin(self) -> None:
        """Start capturing, before the first case is asked."""
        if self._routing is not None:
            self.replay(self._routing.imported)
            self._routing.threads = self.output()
        root = logging.getLogger()
        # Records of calls that run ahead come at any time, and pytest sets its level for single tests only.
        self._level_before = root.level
        root.addHandler(self._own_handler)
        if self._level is not None:
            root.setLevel(min(root.level, self._level))
        for handler in self._handlers:
            # Records of cases are kept, and shown with their test: here they would appear in another one's.
            handler.addFilter(_is_of_no_case)

    def end(self) -> None:
        """Stop capturing, after the last call; safe to call twice."""
        root = logging.getLogger()
        if self._own_handler not in root.handlers:
            return
        root.removeHandler(self._own_handler)
        root.setLevel(self._level_before)
        for handler in self._handlers:
            handler.removeFilter(_is_of_no_case)
        if self._routing is not None and self._routing.threads:
            self._show_threads(self._routing)

    def output(self) -> Output:
        """Return a new output for a case."""
        return Output(self.clean if self._is_live else None)

    def clean(self, text: str) -> str:
        return printable(self._mask.output(text))

    def replay(self, output: Output) -> None:
        """Print and log the output of a case now."""
        for stream, text in output.texts():
            getattr(sys, stream).write(self.clean(text))
        for record in output.records:
            for handler in self._handlers:
                if record.levelno >= handler.level:
                    handler.handle(record)

    def add_to_report(self, output: Output, item: pytest.Item, report: pytest.TestReport) -> None:
        """Add a hook's output to a finished report."""
        lines = [f"{record.levelname:8} {record.name}: {record.getMessage()}" for record in output.records]
        for kind, text in [*output.texts(), ("log", "\n".join(lines))]:
            if text:
                text = self.clean(text)
                report.sections.append((f"Captured {kind} {report.when}", text))
                item.add_report_section(report.when, kind, text)

    def _routed(self, name: str, beneath: object) -> Any:
        """Return the routed stream over this one."""
        stream = self._streams.get(name)
        if stream is None or not stream.is_over(beneath):
            stream = Stream(name, beneath)
            self._streams[name] = stream
        return stream

    def _show_threads(self, routing: Routing) -> None:
        """Print what threads of unknown cases have printed."""
        printed = routing.threads
        routing.threads = self.output()
        if printed is not None:
            self.replay(printed)

    # No wrapper, which costs more: that of pytest's capturing begins before. In every phase, because pytest puts its
    # own stream back at the beginning of each, and calls that run ahead print at any time. It is the same stream all
    # session long, so the routed one is made once.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Route the streams that pytest has set for this phase."""
        if not isinstance(sys.stdout, Stream):
            sys.stdout = self._routed("stdout", sys.stdout)
        if not isinstance(sys.stderr, Stream):
            sys.stderr = self._routed("stderr", sys.stderr)
        if self._routing is not None and self._routing.threads:
            self._show_threads(self._routing)

    pytest_runtest_call = pytest_runtest_teardown = pytest_make_collect_report = pytest_runtest_setup

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Mask the text of a warning before pytest's terminal, or the worker that sends it there, reads it."""
        text = str(warning_message.message)
        shown = printable(self._mask.output(text))
        if shown != text:
            warning_message.message = _with_text(warning_message.message, shown)


def _is_of_no_case(_record: logging.LogRecord) -> bool:
    return OUTPUT.get() is None


class _CaseHandler(logging.Handler):
    """A log handler that keeps the records of cases; of others it prints what Python prints without handlers."""

    def emit(self, record: logging.LogRecord) -> None:
        output = OUTPUT.get()
        if output is not None:
            kept = copy(record)  # its arguments may change, or hold much
            kept.msg = record.getMessage()
            kept.args = ()
            output.log(kept)
        # With a handler at the root, Python no longer prints warnings by itself.
        elif logging.getLogger().handlers == [self] and logging.lastResort is not None:
            logging.lastResort.handle(record)


class _MaskingFormatter(logging.Formatter):
    """A formatter that masks another one's lines: libraries log what goes over the network."""

    def __init__(self, inner: logging.Formatter, mask: Mask) -> None:
        super().__init__()
        self._inner = inner
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        record = copy(record)  # others see it as it was
        record.msg = printable(record.getMessage())
        record.args = ()
        if record.exc_info:
            record.exc_text = printable(self._inner.formatException(record.exc_info))
        return self._mask.output(self._inner.format(record))


def _with_text(warning: Warning | str, text: str) -> Warning | str:
    """Return the warning with another text, of the same class if that takes a text alone."""
    if isinstance(warning, str):
        return text
    try:
        masked = type(warning)(text)
    except Exception:  # noqa: BLE001 because a class of the user's own may want anything
        return UserWarning(text)
    return masked if str(masked) == text else UserWarning(text)


def clean_report(report: pytest.TestReport, mask: Mask, *, is_of_case: bool) -> None:
    """Mask credentials in all that other plugins show of a report: its traceback, output, logs and properties.

    `is_of_case`: also escape what could steer a terminal or a CI service, or has no UTF-8 form, because it may be the
    system's output. Colours of pytest's own, in the lines of logs, stay.
    """

    def clean(text: str, kind: str = "") -> str:
        text = mask.output(text)
        if not is_of_case:
            return text
        parts = _COLOUR.split(text) if "log" in kind else [text]
        return "".join(part if number % 2 else printable(part) for number, part in enumerate(parts))

    longrepr: Any = report.longrepr
    # pytest's form of a skip: path, line, reason.
    if isinstance(longrepr, tuple):
        report.longrepr = (*longrepr[:2], mask.output(longrepr[2]))
    elif longrepr is not None and (shown := clean(str(longrepr))) != str(longrepr):
        report.longrepr = shown
    elif (crash := getattr(longrepr, "reprcrash", None)) is not None:
        crash.message = mask.output(crash.message)  # of the short summary, also if `--tb=no` leaves it out of the text
    if report.sections:
        report.sections = [(name, clean(text, name)) for name, text in report.sections]
    if report.user_properties and not mask.is_empty:
        properties = report.user_properties
        report.user_properties = [(mask.text(name), _shown_property(value, mask)) for name, value in properties]
    if "extras" in (facts := report.__dict__):  # of pytest-html
        facts["extras"] = mask.value(facts["extras"])
    if hasattr(report, "wasxfail"):
        report.wasxfail = clean(str(report.wasxfail))


_COLOUR = re.compile("(\x1b\\[[0-9;]*m)")


def _shown_property(value: object, mask: Mask) -> object:
    masked = mask.value(value)
    if masked is not value or isinstance(value, str):
        return masked
    text = str(value)  # as JUnit writes it
    return value if mask.text(text) == text else mask.text(text)
