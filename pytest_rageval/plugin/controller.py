"""What only the controlling process does: check before anything runs, keep results, compare, gate, set the exit status.

Registered on every process but the workers of xdist. Imports what is heavy when a case has been seen.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_rageval.errors import RagevalError

if TYPE_CHECKING:
    from pytest_rageval.finish import Extent, Finished
    from pytest_rageval.model import EvalCase
    from pytest_rageval.plugin.session import EvalSession


TEST_ID_CELL = '<td class="col-testId">'


class Controller:
    """Hooks over one session."""

    def __init__(self, run: EvalSession) -> None:
        self._run = run
        self._config = run.config
        self._expected: dict[str, EvalCase] = {}
        """Cases by node id: every one of them must have a record at the end."""
        self._finished: Finished | None = None
        self._is_broken = False
        """Could a result not be written?"""
        self._restore: Callable[[], None] = lambda: None

    # ── before ────────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Under xdist the controller collects nothing: check settings and cases before it starts its workers.

        Last, so that the terminal is ready; xdist's own is later still, as it was registered later.
        """
        if not self._config.pluginmanager.hasplugin("dsession"):
            return
        from pytest_rageval.plugin.preflight import case_files_of

        self._run.collected += case_files_of(self._config, self._run)
        if self._run.collected:
            self._run.is_used = True
            self._run.raise_problem()
            self._check_target()
            self._check_judge(sum(len(self._run.load(path).cases) for path in self._run.collected))
            self._open_run()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Under xdist: end the session over broken case files before a worker asks anything."""
        if self._run.collected:
            from pytest_rageval.plugin.preflight import report_problems

            report_problems(session, [self._run.load(path) for path in self._run.collected])

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        if self._run.is_used and not self._run.settings.dry_run:
            node.workerinput["rageval_config_hash"] = self._run.config_hash
            node.workerinput["rageval_run"] = str(self._run.keeper.folder.path)

    def pytest_collection_finish(self) -> None:
        """Wrong settings end the session here, before anything runs; options of ours are checked in any session."""
        if self._run.is_used or self._run.given_options:
            self._run.raise_problem()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Take the final order of items; stop with a usage error where nothing could be asked."""
        if not self._run.is_used or self._config.option.collectonly:
            return
        from pytest_rageval.plugin.items import EvalItem, fixture_definition

        items = [item for item in session.items if isinstance(item, EvalItem)]
        self._expected |= {item.nodeid: item.case for item in items}
        if session.testsfailed and not self._config.option.continue_on_collection_errors:
            return
        clients = [fixture_definition(item, "rag_client") for item in items]
        if any(_is_ours(client) for client in clients):
            self._check_target()
        if items:
            if any(_is_ours(fixture_definition(item, "rag_judge")) for item in items):
                self._check_judge(len(items))
            self._open_run()
            self._run.stretches.foresee(list(session.items))

    def _check_judge(self, cases: int) -> None:
        """Before the first question: can the judge be asked, and what may it cost?"""
        with self._usage_errors():
            self._run.configured.check_judge()
            estimate = self._run.configured.estimate(cases)
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if estimate is not None and terminal is not None:
            terminal.write_line(estimate)

    def _open_run(self) -> None:
        """Before the first question: can its answer be kept? A run that cannot be resumed is a usage error."""
        if self._run.settings.dry_run:
            return
        with self._usage_errors():
            self._run.keeper  # noqa: B018 because what it raises is what is wanted
        self._restore = end_as_by_ctrl_c()

    def _check_target(self) -> None:
        """Before the first question: is there a target, can it be reached, does it have all answers?"""
        from pytest_rageval.plugin.preflight import check_target

        with self._usage_errors():
            check_target(self._run)

    @contextmanager
    def _usage_errors(self) -> Iterator[None]:
        """What a user can mend ends the session with exit code 4 and a line for each problem."""
        try:
            yield
        except RagevalError as error:
            raise pytest.UsageError(*self._run.mask.value(error.problems)) from None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if self._run.is_used and not self._expected:
            from pytest_rageval.plugin.preflight import cases_by_node_id

            known = cases_by_node_id(self._run)
            self._expected = {nodeid: known[nodeid] for nodeid in ids if nodeid in known}

    # ── during ────────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A record is on disk before its case is shown as done."""
        payload: str | None = report.__dict__.pop("rageval", None)
        if payload is not None and report.outcome != "rerun":  # type: ignore[comparison-overlap] # by a plugin
            self._run.is_used = True
            try:
                self._run.keeper.take(payload)
            except OSError as error:
                self._cannot_write(error)

    def _cannot_write(self, error: OSError) -> NoReturn:
        """End the session in one line: what cannot be kept need not be asked. What is on disk stays."""
        self._is_broken = True
        folder = self._run.keeper.folder.path
        message = f"rageval: {folder} cannot be written to: {error.strerror}; resume the run when it can"
        pytest.exit(message, returncode=pytest.ExitCode.INTERNAL_ERROR)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """A case whose worker died is an error, recorded like any other."""
        case = self._expected.get(crashitem)
        if case is not None:
            report.when = "setup"
            self._run.keeper.crashed(case, str(report.longrepr))

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
        if "ahead" in self._run.__dict__:
            self._run.ahead.cancel()
        if self._is_broken or not self._has_results(exitstatus):
            return
        from pytest_rageval.finish import finish
        from pytest_rageval.plugin.gate_reports import report_gates
        from pytest_rageval.report.gate_tests import gate_tests
        from pytest_rageval.report.summary_markdown import write_summary_file

        run, plan = self._run, self._run.plan
        self._finished = finish(run.keeper, plan, self._extent(session, exitstatus), run.baseline, run.baseline_file)
        write_summary_file(self._finished, plan.registry)
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            report_gates(session, list(gate_tests(self._finished, plan)))

    def _has_results(self, exitstatus: int) -> bool:
        """Is there anything to finish? A run in which no case was reached leaves no folder."""
        if "keeper" in self._run.__dict__:
            self._run.keeper.take_over()
            if self._run.keeper.rows:
                return True
        is_lost = bool(self._expected) and exitstatus == pytest.ExitCode.OK and not self._run.settings.dry_run
        if not is_lost and "keeper" in self._run.__dict__:
            self._run.keeper.discard()
        return is_lost

    def _extent(self, session: pytest.Session, exitstatus: int) -> Extent:
        from pytest_rageval.finish import Extent

        is_ended_early = bool(session.shouldstop or session.shouldfail) or exitstatus == pytest.ExitCode.INTERRUPTED
        return Extent(
            every={case.key for case in self._run.all_cases()},
            expected={case.key for case in self._expected.values()},
            is_cut_short=is_ended_early,
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._is_meant() and not self._run.found_files:
            patterns = ", ".join(self._run.globs)
            terminalreporter.write_line(f"rageval: no file holds cases: nothing matches {patterns}", yellow=True)
        if self._finished is not None:
            from pytest_rageval.plugin.terminal_summary import write_summary

            write_summary(terminalreporter, self._finished, self._run)

    def _is_meant(self) -> bool:
        """Does the project or the command line speak of us at all?"""
        from pytest_rageval.config.files import has_table

        return bool(self._run.given_options) or has_table(self._run.root)


def end_as_by_ctrl_c() -> Callable[[], None]:
    """Take SIGTERM for Ctrl-C, so that what is finished is kept; what comes back undoes it."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return lambda: None  # a program that has its own way with the signal keeps it

    def restore() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return restore


def _is_ours(definition: Any) -> bool:
    """Is this fixture definition the one of this plugin, or one that cannot be known?"""
    function = getattr(definition, "func", None)
    return definition is None or getattr(function, "__module__", "") == "pytest_rageval.plugin.fixtures"
