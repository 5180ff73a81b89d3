"""The payload of a report from the process that ran a test to the one that writes results: lines of JSON, checked.

A value that the channel between processes cannot carry kills the worker, and pytest then ends with exit code 0 and a
failure lost. So everything of ours on a report is made encodable here, before it leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import copysign
from pathlib import Path

import pytest

from pytest_rageval.comparison.outcomes import flaky_reason
from pytest_rageval.errors import GateFailure, SettingsError
from pytest_rageval.model import CaseResult, Outcome, Problem
from pytest_rageval.plugin.case_hook import call_hook
from pytest_rageval.plugin.evaluator import RESULTS, RUNS
from pytest_rageval.plugin.items import EvalItem
from pytest_rageval.run.case_records import with_outcome
from pytest_rageval.run.ongoing_run import OngoingRun
from pytest_rageval.run.scoring import Evaluation
from pytest_rageval.runs.flaky_cases import FLAKY
from pytest_rageval.runs.records.result_line import RecordLine
from pytest_rageval.text import printable

PACKAGE = Path(__file__).parent.parent
CALLS = "rageval_calls"
"""The key on a report of its test's calls, as from `calls_of`."""
PROPERTIES = pytest.StashKey[list[tuple[str, object]]]()
"""The JUnit XML properties of an item's last attempt."""


def attach(
    item: pytest.Item, report: pytest.TestReport, raised: BaseException | None, run: OngoingRun
) -> Sequence[Evaluation]:
    """Put the records of this item on its report, which decides its outcome; return what was evaluated for it."""
    lines: Sequence[RecordLine]
    if not isinstance(item, EvalItem):
        evaluations = item.stash[RESULTS]
        # Handed over once: the teardown has a report of its own.
        item.stash[RESULTS] = []
        _count_runs(item, evaluations)
        lines = _records_of_test(item, evaluations, report, raised, run)
    elif item.recorded_attempt == item.attempts:
        return ()
    else:
        evaluations = [item.evaluated.evaluation] if item.evaluated is not None else []
        lines = _records_of_item(item, report, run)
    if lines and run.own_writer is not None:  # this process keeps them
        report.__dict__["rageval"] = lines
    elif lines:
        text = "\n".join(line.text for line in lines)
        report.__dict__["rageval"] = text
        # On disk as well: a worker that dies may not have sent its report.
        run.journal.results(text)
    return evaluations


def _count_runs(item: pytest.Item, evaluations: Sequence[Evaluation]) -> None:
    """Count the run of a test for each case that it evaluated, once or several times."""
    runs = item.stash.setdefault(RUNS, {})
    for key in {evaluation.overall.case.key for evaluation in evaluations}:
        runs[key] = runs.get(key, 0) + 1


def _records_of_item(item: EvalItem, report: pytest.TestReport, run: OngoingRun) -> Sequence[RecordLine]:
    """Return the records of an item, with the outcome that pytest gives it, and let go of what is written."""
    case = item.evaluated
    item.evaluated = None
    item.recorded_attempt = item.attempts
    outcome = _outcome(report)
    if case is not None:
        is_hidden = outcome in HARMLESS and case.result.outcome not in HARMLESS
        evaluation = case.evaluation
        lines = case.lines
        if outcome != case.result.outcome and not is_hidden:
            evaluation, lines = run.recorded(with_outcome(evaluation, outcome, _reason(report)))
        return _seen(item, evaluation, lines, report, run)
    if run.is_done(item.case):
        return ()
    reason = _reason(report)
    problem = Problem("setup", reason or "setup failed") if outcome == "error" else None
    bare = CaseResult(item.case, outcome, error=problem, reason=reason, attempts=item.attempts)
    trials = tuple(replace(bare, trial=trial.number) for trial in run.trials(item.case))
    evaluation, lines = run.recorded(Evaluation(bare, trials))
    return _seen(item, evaluation, lines, report, run)


def _records_of_test(
    item: pytest.Item,
    evaluations: Sequence[Evaluation],
    report: pytest.TestReport,
    raised: BaseException | None,
    run: OngoingRun,
) -> list[RecordLine]:
    """Return the records of a test of the project's own, with the outcome that pytest gives it."""
    outcome = _outcome(report)
    # A hook made the report of a failed gate harmless: the record keeps the verdict.
    if outcome in HARMLESS and isinstance(raised, GateFailure):
        outcome = "failed"
    lines: list[RecordLine] = []
    for evaluation in evaluations:
        overall = evaluation.overall
        # The resumed run has its record already: a second one would count it twice.
        if run.unfinished is not None and run.unfinished.is_done(overall.key):
            continue
        is_error = overall.error is not None and outcome != "xfailed"
        reason = flaky_reason(overall) if outcome == "passed" else overall.reason
        decided = with_outcome(evaluation, "error" if is_error else outcome, reason)
        recorded, its_lines = run.recorded(decided)
        lines += _seen(item, recorded, its_lines, report, run)
    return lines


HARMLESS = ("passed", "skipped")
"""Outcomes that a hook may give to the report of a failed test. The record keeps the verdict."""


def _outcome(report: pytest.TestReport) -> Outcome:
    if report.passed:
        return "passed"
    if report.skipped:
        return "xfailed" if hasattr(report, "wasxfail") else "skipped"
    return "failed" if report.when == "call" else "error"


def _reason(report: pytest.TestReport) -> str | None:
    """Return in one line why a test was skipped or broke."""
    if report.passed:
        return None
    if hasattr(report, "wasxfail"):
        return printable(str(report.wasxfail))
    longrepr = report.longrepr
    # pytest reports a skip as (path, line, reason).
    text = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr or "")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    # A text has its reason in the first line, a traceback in the last.
    is_text = isinstance(longrepr, str | tuple)
    return printable(lines[0] if is_text else lines[-1]).strip()


def _seen(
    item: pytest.Item,
    evaluation: Evaluation,
    lines: Sequence[RecordLine],
    report: pytest.TestReport,
    run: OngoingRun,
) -> Sequence[RecordLine]:
    """Show the result to the project's hook and to JUnit; return its records."""
    hook = item.ihook.pytest_rageval_result
    if hook.get_hookimpls():  # a call without implementations costs as much as one metric
        try:
            for result in evaluation.trials:
                call_hook(hook, item=item, result=_for_readers(result))
        except SettingsError as error:  # code of the project fails its test, not the session
            message = printable(str(error))
            _fail(report, message)
            evaluation, lines = run.recorded(_broken(evaluation, Problem("hook", message)))
    overall = evaluation.overall
    if overall.error is not None and overall.error.kind == "record":
        _fail(report, overall.error.message)
    # On the item as well: JUnit takes them from the report of the teardown.
    properties = _properties(overall)
    earlier = item.stash.get(PROPERTIES, None)
    for kept in (item.user_properties, report.user_properties):
        if earlier:  # drop those of a repeated attempt (pytest-rerunfailures)
            kept[:] = [pair for pair in kept if not any(pair is old for old in earlier)]
        kept += properties
    item.stash[PROPERTIES] = properties
    return lines


def _for_readers(result: CaseResult) -> CaseResult:
    """Return a copy of a result whose scores a hook may change without a change of the run."""
    return replace(
        result,
        scores=dict(result.scores),
        details=dict(result.details),
        skipped_metrics=dict(result.skipped_metrics),
        metric_errors=dict(result.metric_errors),
    )


def _properties(result: CaseResult) -> list[tuple[str, object]]:
    """Return the properties of a case in JUnit XML: outcome, failed gates, labels, scores."""
    properties = [_fact("rageval.outcome", result.outcome)]
    if result.outcome == "passed" and (why := flaky_reason(result)) is not None:
        properties.append(("rageval.flaky", why.removeprefix(FLAKY)))
    properties += [("rageval.failed_gate", printable(str(gate))) for gate in result.failed_gates]
    if result.case.category:
        properties.append(_fact("rageval.category", result.case.category))
    properties += [_fact("rageval.tag", tag) for tag in result.case.tags]
    properties += [_score(name, value, copysign(1, value)) for name, value in result.scores.items()]
    return properties


# Many cases share values and scores, and pytest keeps their reports until the session ends. The sign tells -0.0
# from 0.0, which are equal but written differently.
@lru_cache(maxsize=4096)
def _fact(name: str, text: str) -> tuple[str, object]:
    return name, printable(text)


@lru_cache(maxsize=4096, typed=True)
def _score(name: str, value: float, _sign: float) -> tuple[str, object]:
    return name, round(value, 6)


def _broken(evaluation: Evaluation, problem: Problem) -> Evaluation:
    """Return the evaluation as an error, so that its record agrees with pytest."""

    def broken(result: CaseResult) -> CaseResult:
        return replace(result, outcome="error", error=problem, reason=problem.message)

    return Evaluation(broken(evaluation.overall), tuple(map(broken, evaluation.trials)))


def _fail(report: pytest.TestReport, message: str) -> None:
    report.outcome = "failed"
    report.longrepr = printable(message)
    # With it, pytest would show the failure as an expected one.
    report.__dict__.pop("wasxfail", None)


def is_of_case(item: pytest.Item) -> bool:
    """Return True for an eval item, and for a test of the project's own that has evaluated a case."""
    return isinstance(item, EvalItem) or bool(item.stash.get(RESULTS, None))


def drop_place_of_ours(report: pytest.TestReport) -> None:
    """Leave out the line of ours that pytest adds to a failure without a traceback."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and crash.message.startswith("Failed: ") and PACKAGE in Path(crash.path).parents:
        report.longrepr = str(report.longrepr).strip()
