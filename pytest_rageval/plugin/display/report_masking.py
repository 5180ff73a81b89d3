"""Credentials masked in what pytest and its plugins show of a session: reports, log records, warnings."""

from __future__ import annotations

import logging
import warnings
from copy import copy
from typing import Any

import pytest

from pytest_rageval.io.masking import Mask
from pytest_rageval.text import printable

LOG_HANDLERS = ("report_handler", "log_cli_handler", "log_file_handler")
"""Of pytest's logging plugin: what they write is shown. Not the one of `caplog`, which tests of the user's own read."""


class ReportMasking:
    """Hooks on every process, and what is registered with pytest's own logging."""

    def __init__(self, config: pytest.Config, mask: Mask) -> None:
        self._mask = mask
        logging_plugin = config.pluginmanager.get_plugin("logging-plugin")
        for name in LOG_HANDLERS:
            handler = getattr(logging_plugin, name, None)
            if isinstance(handler, logging.Handler):
                handler.setFormatter(_MaskingFormatter(handler.formatter or logging.Formatter(), mask))

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Before pytest's terminal, or the worker that sends it there, takes the text of a warning."""
        text = str(warning_message.message)
        shown = printable(self._mask.shown(text))
        if shown != text:
            warning_message.message = _with_text(warning_message.message, shown)


class _MaskingFormatter(logging.Formatter):
    """Another formatter's lines, masked and printable: libraries log what goes over the network."""

    def __init__(self, inner: logging.Formatter, mask: Mask) -> None:
        super().__init__()
        self._inner, self._mask = inner, mask

    def format(self, record: logging.LogRecord) -> str:
        record = copy(record)  # others see it as it was
        record.msg, record.args = printable(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = printable(self._inner.formatException(record.exc_info))
        return self._mask.shown(self._inner.format(record))


def _with_text(warning: Warning | str, text: str) -> Warning | str:
    """The warning with another text, of the same class where that is made of a text alone."""
    if isinstance(warning, str):
        return text
    try:
        masked = type(warning)(text)
    except Exception:  # noqa: BLE001 because a class of the user's own may want anything
        return UserWarning(text)
    return masked if str(masked) == text else UserWarning(text)


def mask_report(report: pytest.TestReport, mask: Mask) -> None:
    """Mask credentials in all of a test's report that other plugins show: its traceback, what it printed and logged,
    its properties."""
    if report.longrepr is not None:
        _mask_longrepr(report, mask)
    if report.sections:
        report.sections = [(name, mask.shown(content)) for name, content in report.sections]
    if report.user_properties and not mask.is_empty:
        properties = report.user_properties
        report.user_properties = [(mask.text(name), _shown_property(value, mask)) for name, value in properties]
    if "extras" in report.__dict__:  # of pytest-html
        report.__dict__["extras"] = mask.value(report.__dict__["extras"])
    if hasattr(report, "wasxfail"):
        report.wasxfail = mask.shown(str(report.wasxfail))


def _mask_longrepr(report: pytest.TestReport, mask: Mask) -> None:
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):
        path, line, reason = longrepr
        report.longrepr = (path, line, mask.shown(reason))
    elif (shown := mask.shown(str(longrepr))) != str(longrepr):
        report.longrepr = shown
    else:
        _mask_crash(longrepr, mask)


def _mask_crash(longrepr: Any, mask: Mask) -> None:
    """The message that pytest's short summary shows, also where `--tb=no` leaves it out of the text."""
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = mask.shown(crash.message)


def _shown_property(value: object, mask: Mask) -> object:
    masked = mask.value(value)
    if masked is not value or isinstance(value, str):
        return masked
    text = str(value)  # as JUnit writes it
    return value if mask.text(text) == text else mask.text(text)
