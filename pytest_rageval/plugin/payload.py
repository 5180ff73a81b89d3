"""What a report carries from the process that ran a test to the one that keeps the results: lines of JSON, checked.

A value that the channel between processes cannot carry kills the worker, and pytest then ends with exit code 0 and a
failure lost. So everything of ours on a report is made encodable here, before it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_rageval.model import CaseResult, EvalCase, Outcome, Problem
from pytest_rageval.plugin.evaluated import RESULTS
from pytest_rageval.plugin.items import EvalItem
from pytest_rageval.runs.records import observation_record, result_record, to_line
from pytest_rageval.text import printable

if TYPE_CHECKING:
    from pytest_rageval.plugin.session import EvalSession


def attach(item: pytest.Item, report: pytest.TestReport, run: EvalSession) -> None:
    """Put the records of this item on its report, once its outcome is known."""
    results = item.stash.get(RESULTS, [])
    if not isinstance(item, EvalItem) and not results:
        return
    if report.when != "teardown" and (report.when == "call" or not report.passed) and not run.settings.dry_run:
        lines = [line for result in _final(item, results, report) for line in _lines(item, result, report, run)]
        report.__dict__["rageval"] = "\n".join(lines)
        item.stash[RESULTS] = []
        if isinstance(item, EvalItem):
            item.result = None  # written: items live until the session ends, observations need not
    _make_encodable(report)


def _final(item: pytest.Item, results: list[CaseResult], report: pytest.TestReport) -> Iterator[CaseResult]:
    """The item's results with the outcome that pytest gives its test."""
    outcome = _outcome(report)
    if not isinstance(item, EvalItem):
        for result in results:
            yield result if result.outcome == "error" else replace(result, outcome=outcome)
    elif item.result is not None:
        is_error = item.result.error is not None and not report.skipped
        yield replace(item.result, outcome="error" if is_error else outcome, reason=_reason(report))
    else:
        problem = Problem("setup", _reason(report) or "setup failed") if outcome == "error" else None
        yield CaseResult(item.case, outcome, error=problem, reason=_reason(report), attempts=item.attempts)


def _outcome(report: pytest.TestReport) -> Outcome:
    if report.passed:
        return "passed"
    if report.skipped:
        return "xfailed" if hasattr(report, "wasxfail") else "skipped"
    return "failed" if report.when == "call" else "error"


def _reason(report: pytest.TestReport) -> str | None:
    """Why a test was skipped or broke, as one line."""
    if report.passed:
        return None
    if hasattr(report, "wasxfail"):
        return printable(str(report.wasxfail))
    longrepr = report.longrepr
    text = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr or "")
    lines = [line for line in text.splitlines() if line.strip()]
    # Of a text the first line says it, of a traceback the last.
    return printable(lines[0 if isinstance(longrepr, str | tuple) else -1]).strip() if lines else None


def _lines(item: pytest.Item, result: CaseResult, report: pytest.TestReport, run: EvalSession) -> list[str]:
    """The record and, unless texts are kept out, the observation. What cannot be written fails the test."""
    try:
        item.ihook.pytest_rageval_result(item=item, result=result)
    # A hook of the project's own may raise anything; here it would end the session instead of failing its test.
    except Exception as error:  # noqa: BLE001 because of the line above
        report.outcome, report.longrepr = "failed", printable(f"pytest_rageval_result: {type(error).__name__}: {error}")
        report.__dict__.pop("wasxfail", None)
    # On the item as well: JUnit takes them from the report of the teardown.
    properties: list[tuple[str, object]] = [(name, round(value, 6)) for name, value in result.scores.items()]
    item.user_properties += properties
    report.user_properties += properties
    try:
        return _as_lines(result, run)
    except (ValueError, TypeError, RecursionError) as error:
        message = printable(f"{result.key}: its result cannot be written as JSON: {error}")
        report.outcome, report.longrepr = "failed", message
        report.__dict__.pop("wasxfail", None)
        return _as_lines(CaseResult(_bare(result.case), "error", error=Problem("record", message)), run)


def _as_lines(result: CaseResult, run: EvalSession) -> list[str]:
    settings, registry = run.settings, run.plan.registry
    observation = "" if settings.redact else to_line(observation_record(result, settings))
    return [to_line(result_record(result, settings, registry, run.config_hash)), observation]


def _bare(case: EvalCase) -> EvalCase:
    """The case without what could have made it unwritable."""
    return EvalCase(printable(case.id), printable(case.question), source=case.source)


def _make_encodable(report: pytest.TestReport) -> None:
    """Escape what has no UTF-8 form in everything of the report that crosses the border between processes."""
    if report.longrepr is not None and not isinstance(report.longrepr, tuple):
        shown = str(report.longrepr)
        if not _is_encodable(shown):
            report.longrepr = printable(shown)
    report.sections = [
        (name, content if _is_encodable(content) else printable(content)) for name, content in report.sections
    ]
    if not _is_encodable(str(getattr(report, "wasxfail", ""))):
        report.wasxfail = printable(str(report.wasxfail))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
