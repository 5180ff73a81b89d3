"""Hooks of the controlling process alone: checks before anything runs, results kept, the run finished and reported.

Registered when the session turns out to have cases, on every process but the workers of xdist.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, NoReturn

import pytest

from pytest_rageval.config.options import kind_of
from pytest_rageval.errors import RagevalError
from pytest_rageval.finish import Extent, Finished
from pytest_rageval.model import EvalCase
from pytest_rageval.plugin.active import ActiveSession
from pytest_rageval.plugin.display.run_verdict import report_gates, report_verdict, summarised, write_summary
from pytest_rageval.plugin.extent import extent_of
from pytest_rageval.plugin.items import EvalItem, fixture_definition
from pytest_rageval.plugin.preflight import CLIENT, is_ours, judges_of_files, overrides, report_problems
from pytest_rageval.plugin.report_payload import CALLS
from pytest_rageval.prepare import check_can_answer
from pytest_rageval.render.gate_tests import gate_tests
from pytest_rageval.render.html.report_file import EndReport
from pytest_rageval.render.run_reports import write_reports
from pytest_rageval.runs.judge_notes import estimate
from pytest_rageval.runs.records import RecordLine
from pytest_rageval.runs.shards import Shard
from pytest_rageval.text import printable

if TYPE_CHECKING:
    from pytest_rageval.plugin.workers import ControlledWorkers


class Controller:
    """Hooks over one active session."""

    def __init__(self, active: ActiveSession) -> None:
        self._active = active
        self._session = active.session
        self._config = active.config
        self._expected: dict[str, EvalCase] = {}
        """Cases by node id: every one of them must have a record at the end."""
        self._errors: dict[str, str] = {}
        """The tests that showed an error of their setup first, by what it said."""
        self._finished: Finished | None = None
        self._report: EndReport | None = None
        self._extent = Extent(frozenset(), frozenset())
        self._workers = self._controlled_workers()
        self._complete_html_table()

    def _controlled_workers(self) -> ControlledWorkers | None:
        """The hooks for the workers of xdist, registered; None where there are no workers."""
        if not self._config.pluginmanager.hasplugin("dsession"):
            return None
        from pytest_rageval.plugin.workers import WORKERS, ControlledWorkers  # here: most runs have none

        workers = ControlledWorkers(self._active, self._expected, self._cannot_write)
        self._config.pluginmanager.register(workers, WORKERS)
        return workers

    def _complete_html_table(self) -> None:
        """Register the hooks for pytest-html's page, where it writes one."""
        if self._config.getoption("htmlpath", None):
            from pytest_rageval.plugin.display.html_table import HtmlTable  # here: most sessions write no such page

            table = HtmlTable(self._active, self._expected, lambda: self._finished)
            self._config.pluginmanager.register(table, "rageval-html")

    # ── before ────────────────────────────────────────────────────────────────────────────────────────────────

    def open_for_workers(self) -> None:
        """Check settings, target and judge, and open the run, before xdist starts its workers."""
        self._active.raise_problem()
        if self._config.option.setuponly:
            return
        self._active.check_gates()
        files = [path for path in self._session.collected if not self._session.is_deselected(path)]
        if not files:
            return
        if self._workers is not None:
            self._workers.arrange_blocks()
        shard = Shard.parse(self._active.settings.shard) if self._active.settings.shard else None
        cases = [case for path in files for case in self._active.load(path).cases]
        selected = [case for case in cases if shard is None or shard.takes(case.key)]
        is_target_ours = None in overrides(self._session, CLIENT, files).values()
        self._open(selected, is_target_ours=is_target_ours, is_judge_asked=None in judges_of_files(self._session))
        if self._active.prepared.judge is not None and self._active.run is not None:
            # Workers have judges of their own: this one has been asked whether it is there, and is asked no more.
            self._active.run.loop.run(self._active.prepared.judge.aclose())

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Under xdist: end the session over broken case files before a worker asks anything."""
        if self._session.collected:
            report_problems(session, [self._active.load(path) for path in self._session.collected])

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
        cases = [item.case for item in items]
        self._open(cases, is_target_ours=any(clients_are_ours), is_judge_asked=any(judges_are_ours))
        if self._active.run is not None:
            self._active.plan_batches(items)

    def _open(self, cases: Sequence[EvalCase], *, is_target_ours: bool, is_judge_asked: bool) -> None:
        """Before the first question: can the target answer, can the judge be asked, can a result be kept?

        What a user can mend ends the session with exit code 4 and a line for each problem.
        """
        prepared = self._active.prepared
        with self._active.usage_errors():
            if is_target_ours:
                self._check_target()
            if prepared.settings.dry_run:
                return
            run = self._active.open(is_judge_asked=is_judge_asked, judges=judges_of_files(self._session))
        if self._workers is not None:
            self._workers.show_progress(len(cases))
        asked = sum(not run.is_done(case) for case in cases)
        line = estimate(prepared.judge, prepared.plan, asked) if is_judge_asked and asked else None
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if line is not None and terminal is not None:
            terminal.write_line(line)

    def _check_target(self) -> None:
        """Is there a target, can it be reached, does it have all answers? A dry run looks at files of answers only."""
        active, settings = self._active, self._active.settings
        if settings.target is None or not settings.dry_run or kind_of(settings.target).is_checkable:
            check_can_answer(active.prepared, active.make_target(), active.all_cases())

    # ── during ────────────────────────────────────────────────────────────────────────────────────────────────

    def take_report(self, report: pytest.TestReport) -> None:
        """Keep the records that a report brings: they are on disk before their case is shown as done."""
        payload: str | list[RecordLine] = report.__dict__.pop("rageval")
        if report.longrepr is not None:
            file, line, _name = report.location
            lineno = 0 if line is None else line + 1
            # pytest shows errors of the setup in full there, too.
            is_line = report.when == "call" and self._config.getoption("tbstyle", None) == "line"
            report.longrepr = summarised(
                report.longrepr, file, lineno, is_line=is_line, same_as=self._same_error(report)
            )
        if report.outcome != "rerun":  # type: ignore[comparison-overlap] # by a plugin
            try:
                if isinstance(payload, str):
                    self._active.writer.take(payload)
                else:
                    self._active.opened().keep(payload)
            except OSError as error:
                self._cannot_write(error)

    def _same_error(self, report: pytest.TestReport) -> str | None:
        """The test that has shown the error of this one's setup already, if there is one."""
        if report.when != "setup" or not report.failed:
            return None
        crash = getattr(report.longrepr, "reprcrash", None)
        first = self._errors.setdefault(str(report.longrepr) if crash is None else crash.message, report.nodeid)
        return first if first != report.nodeid else None

    @pytest.hookimpl(trylast=True)  # once the terminal has shown the case
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End the session if its first calls, over all workers, fail alike in a way that cannot heal."""
        calls = report.__dict__.pop(CALLS, ())
        reason = self._active.opened().breaker.add(calls) if calls else None
        if reason is None:
            return
        session = self._session.of_pytest
        session.shouldfail = reason
        if hasattr(report, "node"):  # xdist looks at its own reasons to stop only, and ends with another exit code
            raise session.Failed(reason)

    def _cannot_write(self, error: OSError) -> NoReturn:
        """End the session in one line: what cannot be kept need not be asked. What is on disk stays."""
        self._active.opened().cannot_write(error)
        folder = self._active.writer.folder.path
        message = f"rageval: {folder} cannot be written to: {error.strerror}; resume the run when it can"
        pytest.exit(message, returncode=pytest.ExitCode.INTERNAL_ERROR)

    # ── after ─────────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        self._active.interrupts.begin_finishing()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Aggregate, compare and gate, before JUnit, pytest-html and the last-failed cache are written."""
        run = self._active.run
        if run is None:
            return
        self._active.interrupts.begin_finishing()
        run.loop.cancel()
        of_workers = self._workers.back_off if self._workers is not None else None
        back_off = of_workers or run.prefetcher.slots.back_off
        self._session.notes += filter(None, [back_off.note])
        if not run.is_broken:
            try:
                has_results = self._has_results(exitstatus)  # first: it takes what workers wrote and could not send
                self._extent = extent_of(session, exitstatus, self._active, self._expected)
                if has_results:
                    self._finish(session, exitstatus)
            except (OSError, RagevalError) as error:
                self._cannot_finish(error)
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        self._active.interrupts.end_finishing()

    @pytest.hookimpl(specname="pytest_sessionfinish", wrapper=True, tryfirst=True)
    def end_session(self) -> Generator[None, None, None]:
        """Outermost: beyond this hook pytest catches no `pytest.exit`."""
        try:
            yield
        finally:
            self._active.interrupts.end_session()

    def close(self) -> None:
        """Once the workers are gone: what they still wrote counts as well; then the run is closed."""
        self._active.interrupts.begin_closing()
        try:
            if self._active.run is not None and not self._active.run.is_broken:
                self._active.stop_asking()
                self._take_late_results()
        except (OSError, RagevalError) as error:
            self._cannot_finish(error)
        finally:
            self._active.close()

    def _take_late_results(self) -> None:
        """Results that were written after the run was aggregated: metrics are of exactly what is on disk."""
        writer = self._active.writer
        if not writer.folder.path.is_dir():  # nothing happened
            return
        # xdist has waited for its workers, unless a second signal left its session before.
        is_repeated = self._active.interrupts.is_repeated
        are_workers_gone = self._workers is None or not is_repeated or self._workers.kill()
        writer.take_over()
        if self._active.opened().has_late_results:
            self._write()
        if are_workers_gone:
            writer.settle()

    def _finish(self, session: pytest.Session, exitstatus: int) -> None:
        self._write()
        assert self._finished is not None
        report_verdict(session, self._finished)
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            report_gates(session, list(gate_tests(self._finished, self._active.prepared.plan)))
        prepared = self._active.prepared
        if prepared.settings.report:
            # Here, because the page and its templates are a fifth of a short run.
            from pytest_rageval.render.html.report_writer import end_report

            folder, baseline = self._finished.folder, prepared.project.baseline_file
            self._report = end_report(folder, prepared.settings, baseline, exit_status=int(exitstatus))

    def _write(self) -> None:
        """Write what the records come to."""
        prepared = self._active.prepared
        self._finished = self._active.opened().finish(self._extent)
        self._session.notes += write_reports(self._finished.folder, prepared.plan, self._finished.cases)

    def _has_results(self, exitstatus: int) -> bool:
        """Is there anything to finish? A run in which no case was reached leaves no folder."""
        writer = self._active.writer
        writer.take_over()
        is_lost = bool(self._expected) and exitstatus == pytest.ExitCode.OK
        if writer.rows or is_lost:
            return True
        if writer.folder.has_observations:
            self._session.notes.append(
                f"interrupted before the first case was done; pytest --rageval-resume {writer.folder.run_id} finishes "
                "the run, and asks nothing again that was answered"
            )
        else:
            writer.discard()
        return False

    def _cannot_finish(self, error: OSError | RagevalError) -> None:
        """Say in one line what could not be written: the records stay, and the run can be finished from them."""
        self._finished = None
        what, run_id = self._active.opened().cannot_write(error), self._active.writer.folder.run_id
        message = f"rageval: {what}; mend that, and finish the run with --rageval-resume {run_id}"
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            terminal.line("")  # behind what is shown of progress
            terminal.write_line(printable(self._active.mask.text(message)), red=True)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._finished is not None:
            write_summary(terminalreporter, self._finished, self._session.notes, self._session.root, self._report)
            if os.environ.get("GITHUB_ACTIONS") == "true":  # most runs are elsewhere, and need not load this
                from pytest_rageval.plugin.display.github_report import report_to_github

                report_to_github(terminalreporter, self._finished, self._config)
        else:
            for note in self._session.notes:
                terminalreporter.write_line(printable(note), yellow=True)
