"""The role of the process that writes the run: opened after checks, results written, the end reported in pytest."""

from __future__ import annotations

import os
from collections.abc import Collection, Generator, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from pytest_rageval.cases.project_cases import pattern_problems
from pytest_rageval.comparison.what_changed import changes_since
from pytest_rageval.config.options import kind_of
from pytest_rageval.errors import RagevalError
from pytest_rageval.model import EvalCase
from pytest_rageval.plugin.active import ActiveSession
from pytest_rageval.plugin.batches import plan_batches
from pytest_rageval.plugin.case_hook import add_to_config
from pytest_rageval.plugin.display.progress_line import ProgressLine, tally_text
from pytest_rageval.plugin.display.run_verdict import (
    RunEnd,
    report_gates,
    report_verdict,
    summarised,
    write_figures,
    write_verdict,
)
from pytest_rageval.plugin.display.summary_end import SummaryEnd
from pytest_rageval.plugin.extent import extent_of
from pytest_rageval.plugin.items import EvalItem
from pytest_rageval.plugin.preflight import (
    CLIENT,
    JUDGE,
    judges_of_files,
    judges_of_tests,
    overrides,
    report_patterns,
    report_problems,
    used_target,
)
from pytest_rageval.plugin.report_payload import CALLS
from pytest_rageval.plugin.workers import WORKERS, ControlledWorkers
from pytest_rageval.render.gate_tests import gate_tests
from pytest_rageval.render.html.report_file import EndReport
from pytest_rageval.render.run_reports import write_reports
from pytest_rageval.run.extent import Extent
from pytest_rageval.run.ongoing_run import OngoingRun
from pytest_rageval.run.prepare import check_can_answer, run_configuration
from pytest_rageval.runs.interrupts import Interrupted, Interrupts, is_called_by_script
from pytest_rageval.runs.judge_notes import estimate
from pytest_rageval.runs.records.result_line import RecordLine
from pytest_rageval.runs.shards import Shard
from pytest_rageval.text import printable


class Controller:
    """Hooks of the controlling process, which runs tests itself or through the workers of xdist."""

    def __init__(self, active: ActiveSession) -> None:
        self.active = active
        self.session = active.session
        self.config = active.config
        self.interrupts = Interrupts(
            self._leave,
            KeyboardInterrupt if active.config.getoption("fulltrace", False) else Interrupted,
            is_program=partial(is_called_by_script, "_pytest.config", "console_main", "_console_main"),
        )
        self._errors: dict[str, str] = {}
        """The first test that showed each setup error, by its message."""
        self._report: EndReport | None = None
        self._extent = Extent(frozenset(), frozenset())
        self._workers: ControlledWorkers | None = None
        self._summary_end = SummaryEnd(self._write_end)
        manager = self.config.pluginmanager
        manager.register(self._summary_end, "rageval-summary-end")
        if manager.hasplugin("dsession"):
            self._workers = ControlledWorkers(self.active, self.cannot_write)
            manager.register(self._workers, WORKERS)
        if self.config.getoption("htmlpath", None):
            from pytest_rageval.plugin.display.html_table import HtmlTable  # here: most sessions write no such page

            manager.register(HtmlTable(self.active), "rageval-html")

    def _leave(self) -> NoReturn:
        """End the session at once, at a second signal."""
        remedy = " twice"
        if self.active.run is not None:
            remedy = f"; pytest --rageval-resume {self.run_id} finishes the run"
        pytest.exit(f"interrupted{remedy}", returncode=pytest.ExitCode.INTERRUPTED)

    @property
    def run_id(self) -> str:
        return self.active.writer.folder.run_id

    # ── before ────────────────────────────────────────────────────────────────────────────────────────────────

    def open_for_workers(self) -> None:
        """Check settings, target and judge, and open the run, before xdist starts its workers."""
        self.active.check_settings()
        if self.config.option.setuponly:
            return
        self.active.check_gates()
        files = [path for path in self.session.collected if not self.session.is_deselected(path)]
        if not files:
            return
        shard = Shard.parse(self.active.settings.shard) if self.active.settings.shard else None
        cases = [case for path in files for case in self.active.load(path).cases]
        if self._workers is not None:
            self._workers.arrange_blocks(cases)
        selected = [case for case in cases if shard is None or shard.takes(case.unit)]
        self._open(selected, files)
        judge = self.active.prepared.judge
        if judge is not None and self.active.run is not None:
            self.active.run.release(judge)  # workers have judges of their own: this one was only checked

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """End a session with workers before they ask anything, if case files are broken; report lost ones in any."""
        ours = self.session
        if not ours.has_lost_cases:
            problems = []
        else:
            problems = pattern_problems(ours.root, ours.unmatched_globs, ours.found_files)
        report_patterns(session, problems)
        if ours.collected:
            report_problems(session, [self.active.load(path) for path in ours.collected])
        elif ours.has_lost_cases:  # pytest itself passes over what is no file
            report_problems(session, [self.active.load(path) for path in ours.lost_files], ends_session=False)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Take the final order of items; raise a usage error if nothing could be asked."""
        items = [item for item in session.items if isinstance(item, EvalItem)]
        option = self.config.option
        if option.collectonly or option.setuponly:
            return
        self.active.check_gates()
        if not items:
            return
        self.active.expected |= {item.nodeid: item.case for item in items}
        # pytest is about to end the session: no run begins that asks nothing.
        if session.testsfailed and not option.continue_on_collection_errors:
            return
        self._open([item.case for item in items], {item.path for item in items})
        run = self.active.run
        if run is not None:
            plan_batches(item for item in items if not run.is_done(item.case))

    def _open(self, cases: Sequence[EvalCase], files: Iterable[Path]) -> None:
        """Check that the target of these files can answer and their judge can be asked, and open the run.

        What a user can mend ends the session with exit code 4 and a line for each problem.
        """
        prepared = self.active.prepared
        session = self.session
        is_judge_asked = None in overrides(session, JUDGE, files).values()
        with self.active.usage_errors():
            target = prepared.settings.target
            # A dry run checks files of answers only.
            is_checked = target is None or not prepared.settings.dry_run or kind_of(target).is_checkable
            if is_checked and None in overrides(session, CLIENT, files).values():
                check_can_answer(prepared, self.active.fixtures.make_target(), cases, self.active.all_cases())
            if prepared.settings.dry_run:
                return
            run = self._new_run(is_judge_asked=is_judge_asked, judges=judges_of_files(session))
        self.active.begin(run)
        asked = sum(not run.is_done(case) for case in cases)
        run.prefetcher.expected = asked * run.plan.settings.repeat
        line = estimate(prepared.judge, prepared.plan, asked) if is_judge_asked and asked else None
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if line is not None and terminal is not None:
            terminal.write_line(line)

    def _new_run(self, *, is_judge_asked: bool, judges: Collection[str | None]) -> OngoingRun:
        """Open the run; raise SettingsError if that fails. `judges` as for `run_configuration`."""
        target = used_target(self.session, self.active.settings.target)
        files = self.session.all_files
        config = run_configuration(self.active.prepared, self.active.all_cases(), files, judges=judges, target=target)
        add_to_config(self.config, config)
        run = OngoingRun.open(self.active.prepared, config, is_judge_asked=is_judge_asked, interrupts=self.interrupts)
        progress_line = ProgressLine(self.config, partial(tally_text, run.prefetcher.tally))
        if progress_line.is_wanted:
            self.active.progress_line = progress_line
            run.loop.on_wait = progress_line.show
        return run

    def open_run(self, own_test: pytest.Item | None) -> OngoingRun:
        """Open the run for tests of the project's own, at their first case."""
        judges = judges_of_tests(own_test) if own_test else (None,)
        with self.active.usage_errors():
            return self._new_run(is_judge_asked=False, judges=judges)

    # ── during ────────────────────────────────────────────────────────────────────────────────────────────────

    def take_report(self, report: pytest.TestReport) -> None:
        """Write the records of a report: they are on disk before their case is shown as done."""
        payload: str | list[RecordLine] = report.__dict__.pop("rageval")
        if report.longrepr is not None:
            file, line, _name = report.location
            first: str | None = None
            if report.when == "setup" and report.failed:
                crash = getattr(report.longrepr, "reprcrash", None)
                message = str(report.longrepr) if crash is None else crash.message
                first = self._errors.setdefault(message, report.nodeid)
            report.longrepr = summarised(
                report.longrepr,
                file,
                0 if line is None else line + 1,
                # pytest shows errors of the setup in full there, too.
                is_line=report.when == "call" and self.config.getoption("tbstyle", None) == "line",
                same_as=first if first != report.nodeid else None,
            )
        # What pytest-rerunfailures is about to repeat is no result yet.
        if report.outcome != "rerun":  # type: ignore[comparison-overlap] # by a plugin
            try:
                if isinstance(payload, str):
                    self.active.writer.take(payload.encode())
                else:
                    self.active.opened().keep(payload)
            except OSError as error:
                self.cannot_write(error)

    def count_calls(self, report: pytest.TestReport) -> None:
        """End the session if its first calls, over all workers, fail alike in a way that cannot heal."""
        calls = report.__dict__.pop(CALLS)
        run = self.active.opened()
        session = self.session.of_pytest
        if run.broken_off is not None:
            return
        run.count(calls)
        if run.broken_off is not None:
            session.shouldfail = run.broken_off
            if hasattr(report, "node"):  # xdist ignores other reasons than its own, and ends with another exit code
                raise session.Failed(run.broken_off)

    def cannot_write(self, error: OSError) -> NoReturn:
        """End the session in one line: results that cannot be written need not be asked for."""
        message = f"rageval: {self.active.opened().cannot_write(error, '--rageval-resume')}"
        pytest.exit(message, returncode=pytest.ExitCode.INTERNAL_ERROR)

    # ── after ─────────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        self.interrupts.begin_finishing()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
        """Aggregate, compare and gate, before JUnit, pytest-html and the last-failed cache are written."""
        try:
            if self.active.run is not None:
                self._end_run(self.active.run, session, exitstatus)
            earned = session.exitstatus
            yield
            if self.active.run is not None:
                self._keep_exit_status(session, earned)
        finally:
            self.interrupts.end_session()  # beyond this hook pytest catches no `pytest.exit`

    def _keep_exit_status(self, session: pytest.Session, earned: int) -> None:
        """Undo an exit status of 0 that another hook set although the run failed."""
        if earned == pytest.ExitCode.OK or session.exitstatus != pytest.ExitCode.OK:
            return
        session.exitstatus = earned
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            message = f"rageval: a hook set exit status 0 although the run failed; it stays {int(earned)}"
            terminal.write_line(message, red=True)

    def _end_run(self, run: OngoingRun, session: pytest.Session, exitstatus: int) -> None:
        self.interrupts.begin_finishing()
        # What is still under way costs money, and nobody waits for it.
        run.loop.cancel()
        of_workers = self._workers.back_off if self._workers is not None else None
        back_off = of_workers or run.prefetcher.back_off
        self.session.notes += filter(None, [back_off.note])
        if not run.is_broken:
            try:
                run.writer.collect_results()  # what workers wrote and could not send
                self._extent = extent_of(session, exitstatus, self.active)
                is_lost = bool(self.active.expected) and exitstatus == pytest.ExitCode.OK
                if run.writer.rows or is_lost:
                    self._finish(session, exitstatus)
                    assert self.active.finished is not None
                    run.accept(self.active.finished)
                elif run.writer.folder.has_observations:
                    # Answers cost money and time: they are kept, also without a single result.
                    self.session.notes.append(
                        f"interrupted before the first case was done; pytest --rageval-resume {self.run_id} finishes "
                        "the run, and asks nothing again that was answered"
                    )
                else:
                    run.writer.discard()
            except (OSError, RagevalError) as error:
                self._cannot_finish(error)
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        self.interrupts.end_finishing()

    def pytest_unconfigure(self) -> None:
        """Take the last results of the workers, once they have ended, and close the run."""
        self.interrupts.begin_closing()
        try:
            run = self.active.run
            if run is not None and not run.is_broken:
                self.active.stop_asking()
                if run.writer.folder.path.is_dir():  # else there were no results
                    # xdist has waited for its workers, unless a second signal ended its session first.
                    is_repeated = self.interrupts.is_repeated
                    are_workers_gone = self._workers is None or not is_repeated or self._workers.kill()
                    run.writer.collect_results()
                    if run.has_late_results:
                        self._write()  # the metrics are of exactly what is on disk
                    if are_workers_gone:
                        run.writer.fold_worker_files()
        except (OSError, RagevalError) as error:
            self._cannot_finish(error)
        finally:
            self.active.close()

    def _finish(self, session: pytest.Session, exitstatus: int) -> None:
        self._write()
        assert self.active.finished is not None
        report_verdict(session, self.active.finished)
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            report_gates(session, list(gate_tests(self.active.finished, self.active.prepared.plan)))
        prepared = self.active.prepared
        if prepared.settings.report:
            # Here, because the HTML report and its templates take a fifth of a short run.
            from pytest_rageval.render.html.report_writer import end_report

            finished = self.active.finished
            baseline = prepared.project.baseline_file
            self._report = end_report(
                finished.stored, prepared.settings, baseline, exit_status=int(exitstatus), scores=finished.cases
            )

    def _write(self) -> None:
        """Write metrics and reports of the records."""
        prepared = self.active.prepared
        self.active.finished = self.active.opened().finish(self._extent)
        finished = self.active.finished
        baseline = prepared.project.baseline_file
        self.session.notes += write_reports(finished.stored, prepared.plan, finished.cases, baseline)

    def _cannot_finish(self, error: OSError | RagevalError) -> None:
        """Print in one line what could not be written; the run can be finished from its records."""
        self.active.finished = None
        message = f"rageval: {self.active.opened().cannot_write(error, '--rageval-resume')}"
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            terminal.line("")  # after the progress line
            terminal.write_line(printable(self.active.mask.text(message)), red=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the figures between pytest's failures and its short summary; `SummaryEnd` writes what follows that."""
        if self._summary_end.folded is not None:
            self._summary_end.folded.unfold()
            self._summary_end.folded.write_note()
        if self.active.finished is not None:
            write_figures(terminalreporter, self.active.finished, self.session.notes)
            if os.environ.get("GITHUB_ACTIONS") == "true":  # most runs need not load this
                from pytest_rageval.plugin.display.github_report import report_to_github

                baseline = self.active.prepared.project.baseline_file
                report_to_github(terminalreporter, self.active.finished, self.config, baseline)
        else:
            for note in self.session.notes:
                terminalreporter.write_line(printable(note), yellow=True)

    def _write_end(self, terminal: pytest.TerminalReporter) -> None:
        """Write the verdict, below pytest's short summary."""
        finished = self.active.finished
        if finished is None:
            return
        baseline = self.active.prepared.project.baseline_file
        changes = changes_since(finished.stored, finished.metrics["comparison"], baseline)
        end = RunEnd(changes, self.active.opened().how_to_finish)
        write_verdict(terminal, finished, end, self.session.root, self._report)
