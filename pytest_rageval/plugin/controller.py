"""Hooks of the controlling process alone: checks before anything runs, results kept, the run finished and reported.

Registered when the session turns out to have cases, on every process but the workers of xdist.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from html import escape
from typing import Any, NoReturn

import pytest

from pytest_rageval.finish import Extent, Finished, finish
from pytest_rageval.model import EvalCase
from pytest_rageval.page.report_file import EndReport, end_report
from pytest_rageval.plugin.active import ActiveSession
from pytest_rageval.plugin.github_report import report_to_github
from pytest_rageval.plugin.items import EvalItem, fixture_definition, node_name
from pytest_rageval.plugin.preflight import is_ours, may_override_client, report_problems
from pytest_rageval.plugin.run_verdict import report_gates, report_verdict
from pytest_rageval.plugin.summary_line import summarised
from pytest_rageval.plugin.terminal_summary import write_summary
from pytest_rageval.prepare import check_can_answer
from pytest_rageval.report.gate_tests import gate_tests
from pytest_rageval.report.summary_markdown import write_summary_file
from pytest_rageval.runs.estimate import estimate
from pytest_rageval.runs.writer import Keeper

TEST_ID_CELL = '<td class="col-testId">'


class Controller:
    """Hooks over one active session."""

    def __init__(self, active: ActiveSession) -> None:
        self._active = active
        self._session = active.session
        self._config = active.config
        self._expected: dict[str, EvalCase] = {}
        """Cases by node id: every one of them must have a record at the end."""
        self._finished: Finished | None = None
        self._report: EndReport | None = None
        self._is_broken = False
        """Could a result not be written?"""
        self._restore: Callable[[], None] = lambda: None

    # ── before ────────────────────────────────────────────────────────────────────────────────────────────────

    def open_for_workers(self) -> None:
        """Check settings, target and judge, and open the run, before xdist starts its workers."""
        self._active.raise_problem()
        if self._config.option.setuponly:
            return
        self._active.check_gates()
        asked = sum(len(self._active.load(path).cases) for path in self._session.collected)
        is_target_ours = self._active.settings.target is not None or not may_override_client(self._session)
        self._open(asked, is_target_ours=is_target_ours, is_judge_asked=True)
        if self._active.prepared.judge is not None and self._active.run is not None:
            # Workers have judges of their own: this one has been asked whether it is there, and is asked no more.
            self._active.run.prefetcher.loop.run(self._active.prepared.judge.aclose())

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Under xdist: end the session over broken case files before a worker asks anything."""
        if self._session.collected:
            report_problems(session, [self._active.load(path) for path in self._session.collected])

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        run = self._active.run
        if run is not None and run.writer is not None:
            node.workerinput["rageval_config_hash"] = run.config_hash
            node.workerinput["rageval_run"] = str(run.writer.folder.path)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Take the final order of items; stop with a usage error where nothing could be asked."""
        items = [item for item in session.items if isinstance(item, EvalItem)]
        option = self._config.option
        if option.collectonly or option.setuponly:
            return
        self._active.check_gates()
        if not items:
            return
        self._expected |= {item.nodeid: item.case for item in items}
        if session.testsfailed and not option.continue_on_collection_errors:
            return
        clients_are_ours = (is_ours(fixture_definition(item, "rag_client")) for item in items)
        judges_are_ours = (is_ours(fixture_definition(item, "rag_judge")) for item in items)
        self._open(len(items), is_target_ours=any(clients_are_ours), is_judge_asked=any(judges_are_ours))
        if self._active.run is not None:
            self._active.plan_batches(items)

    def _open(self, asked: int, *, is_target_ours: bool, is_judge_asked: bool) -> None:
        """Before the first question: can the target answer, can the judge be asked, can a result be kept?

        What a user can mend ends the session with exit code 4 and a line for each problem. `asked`: how many cases.
        """
        prepared = self._active.prepared
        with self._active.usage_errors():
            if is_target_ours:
                self._check_target()
            if prepared.settings.dry_run:
                return
            self._active.open(is_judge_asked=is_judge_asked)
        self._restore = end_as_by_ctrl_c()
        line = estimate(prepared.judge, prepared.plan, asked) if is_judge_asked else None
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if line is not None and terminal is not None:
            terminal.write_line(line)

    def _check_target(self) -> None:
        """Is there a target, can it be reached, does it have all answers? A dry run looks at files of answers only."""
        active, settings = self._active, self._active.settings
        if settings.target is None or not settings.dry_run or settings.target.startswith("answers:"):
            check_can_answer(active.prepared, active.make_target(), active.all_cases())

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if not self._expected:
            cases = {f"{case.source.file}::{node_name(case.id)}": case for case in self._active.all_cases()}
            self._expected = {nodeid: cases[nodeid] for nodeid in ids if nodeid in cases}

    # ── during ────────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A record is on disk before its case is shown as done."""
        payload: str | None = report.__dict__.pop("rageval", None)
        if payload is not None:
            report.longrepr = summarised(report.longrepr)
        if payload is not None and report.outcome != "rerun":  # type: ignore[comparison-overlap] # by a plugin
            try:
                self._writer.take(payload)
            except OSError as error:
                self._cannot_write(error)

    def _cannot_write(self, error: OSError) -> NoReturn:
        """End the session in one line: what cannot be kept need not be asked. What is on disk stays."""
        self._is_broken = True
        folder = self._writer.folder.path
        message = f"rageval: {folder} cannot be written to: {error.strerror}; resume the run when it can"
        pytest.exit(message, returncode=pytest.ExitCode.INTERNAL_ERROR)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """A case whose worker died is an error, recorded like any other."""
        case = self._expected.get(crashitem)
        if case is not None:
            report.when = "setup"
            self._writer.crashed(case, str(report.longrepr))

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_row(self, report: pytest.TestReport, cells: list[str]) -> None:
        """pytest-html makes a cell of a test's id as it is; a case's id is whatever its author wrote."""
        if report.nodeid in self._expected:
            for number, cell in enumerate(cells):
                if cell.startswith(TEST_ID_CELL):
                    cells[number] = (
                        TEST_ID_CELL + escape(cell.removeprefix(TEST_ID_CELL).removesuffix("</td>")) + "</td>"
                    )

    # ── after ─────────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Aggregate, compare and gate, before JUnit, pytest-html and the last-failed cache are written."""
        self._restore()
        if self._active.run is None:
            return
        self._active.run.prefetcher.loop.cancel()
        if self._is_broken or not self._has_results(exitstatus):
            return
        prepared = self._active.prepared
        extent = self._extent(session, exitstatus)
        self._finished = finish(self._writer, prepared.plan, extent, prepared.baseline, prepared.project.baseline_file)
        write_summary_file(self._finished, prepared.plan.registry)
        report_verdict(session, self._finished)
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            report_gates(session, list(gate_tests(self._finished, prepared.plan)))
        if prepared.settings.report:
            folder, baseline = self._finished.folder, prepared.project.baseline_file
            self._report = end_report(folder, prepared.settings, baseline, exit_status=int(exitstatus))

    @property
    def _writer(self) -> Keeper:
        """The run that is written, on this process."""
        writer = self._active.opened().writer
        assert writer is not None
        return writer

    def _has_results(self, exitstatus: int) -> bool:
        """Is there anything to finish? A run in which no case was reached leaves no folder."""
        self._writer.take_over()
        is_lost = bool(self._expected) and exitstatus == pytest.ExitCode.OK
        if self._writer.rows or is_lost:
            return True
        if not self._writer.folder.has_observations:  # which a run that resumes this one need not ask for again
            self._writer.discard()
        return False

    def _extent(self, session: pytest.Session, exitstatus: int) -> Extent:
        has_run_through = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        is_ended_early = bool(session.shouldstop or session.shouldfail) or not has_run_through
        return Extent(
            every={case.key for case in self._active.all_cases()},
            expected={case.key for case in self._expected.values()},
            is_cut_short=is_ended_early,
            exit_status=int(exitstatus),
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._finished is not None:
            write_summary(terminalreporter, self._finished, self._session.notes, self._session.root, self._report)
            report_to_github(terminalreporter, self._finished, self._config)


def end_as_by_ctrl_c() -> Callable[[], None]:
    """Take SIGTERM for Ctrl-C, so that what is finished is kept; what comes back undoes it."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return lambda: None  # a program that has its own way with the signal keeps it

    def restore() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return restore
