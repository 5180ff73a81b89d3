"""What a report carries from the process that ran a test to the one that keeps the results: lines of JSON, checked.

A value that the channel between processes cannot carry kills the worker, and pytest then ends with exit code 0 and a
failure lost. So everything of ours on a report is made encodable here, before it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_rageval.engine import Evaluation
from pytest_rageval.io.masking import Mask
from pytest_rageval.model import CaseResult, EvalCase, Outcome, Problem
from pytest_rageval.plugin.evaluator import RESULTS
from pytest_rageval.plugin.items import EvalItem
from pytest_rageval.runs.records import result_record, to_line
from pytest_rageval.text import printable

if TYPE_CHECKING:
    from pytest_rageval.plugin.session import EvalSession


def attach(item: pytest.Item, report: pytest.TestReport, run: EvalSession) -> None:
    """Put the records of this item on its report, once its outcome is known."""
    evaluated = item.stash.get(RESULTS, [])
    if not isinstance(item, EvalItem) and not evaluated and "rageval" not in getattr(item, "fixturenames", ()):
        return
    _hide_secrets(report, run.mask)
    if report.when != "teardown" and (report.when == "call" or not report.passed) and not run.settings.dry_run:
        lines = [line for one in _final(item, evaluated, report, run) for line in _lines(item, one, report, run)]
        if lines:
            report.__dict__["rageval"] = "\n".join(lines)
            run.journal.results(report.__dict__["rageval"])
        item.stash[RESULTS] = []
        if isinstance(item, EvalItem):
            item.result = item.evaluation = None  # written: items live until the session ends, observations need not
    _make_encodable(report)


def _final(
    item: pytest.Item, evaluated: list[Evaluation], report: pytest.TestReport, run: EvalSession
) -> Iterator[Evaluation]:
    """What the item has evaluated, with the outcome that pytest gives its test."""
    outcome, reason = _outcome(report), _reason(report)
    if not isinstance(item, EvalItem):
        for one in evaluated:
            if run.unfinished is None or not run.unfinished.is_done(one.overall.key):
                yield _ending(one, "error" if one.overall.error else outcome, one.overall.reason)
    elif item.evaluation is not None:
        is_error = item.evaluation.overall.error is not None and not report.skipped
        yield _ending(item.evaluation, "error" if is_error else outcome, reason)
    elif not run.is_done(item.case):
        problem = Problem("setup", reason or "setup failed") if outcome == "error" else None
        bare = CaseResult(item.case, outcome, error=problem, reason=reason, attempts=item.attempts)
        yield Evaluation(bare, tuple(replace(bare, trial=trial.number) for trial in run.trials(item.case)))


def _ending(one: Evaluation, outcome: Outcome, reason: str | None) -> Evaluation:
    """The same with the outcome of its test: that of all trials together is that of each."""
    overall, *trials = (replace(result, outcome=outcome, reason=reason) for result in (one.overall, *one.trials))
    return Evaluation(overall, tuple(trials))


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


def _lines(item: pytest.Item, one: Evaluation, report: pytest.TestReport, run: EvalSession) -> list[str]:
    """A record a trial. What cannot be written fails the test."""
    try:
        for result in one.trials:
            item.ihook.pytest_rageval_result(item=item, result=result)
    # A hook of the project's own may raise anything; here it would end the session instead of failing its test.
    except Exception as error:  # noqa: BLE001 because of the line above
        report.outcome, report.longrepr = "failed", printable(f"pytest_rageval_result: {type(error).__name__}: {error}")
        report.__dict__.pop("wasxfail", None)
    # On the item as well: JUnit takes them from the report of the teardown.
    properties: list[tuple[str, object]] = [(name, round(value, 6)) for name, value in one.overall.scores.items()]
    item.user_properties += properties
    report.user_properties += properties
    try:
        return _as_lines(one, run)
    except (ValueError, TypeError, RecursionError) as error:
        message = printable(f"{one.overall.key}: its result cannot be written as JSON: {error}")
        report.outcome, report.longrepr = "failed", message
        report.__dict__.pop("wasxfail", None)
        bare = CaseResult(_bare(one.overall.case), "error", error=Problem("record", message))
        return _as_lines(Evaluation(bare, tuple(replace(bare, trial=each.trial) for each in one.trials)), run)


def _as_lines(one: Evaluation, run: EvalSession) -> list[str]:
    settings, registry = run.settings, run.plan.registry
    return [to_line(result_record(trial, settings, registry, run.config_hash, one.overall)) for trial in one.trials]


def _bare(case: EvalCase) -> EvalCase:
    """The case without what could have made it unwritable."""
    return EvalCase(printable(case.id), printable(case.question), source=case.source)


def _hide_secrets(report: pytest.TestReport, mask: Mask) -> None:
    """Mask credentials in everything that is shown of the test: tracebacks, and what code of the user's printed."""
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):
        report.longrepr = mask.value(longrepr)
    elif longrepr is not None and (shown := mask.text(str(longrepr))) != str(longrepr):
        report.longrepr = shown
    report.sections = mask.value(report.sections)
    if hasattr(report, "wasxfail"):
        report.wasxfail = mask.text(str(report.wasxfail))


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
