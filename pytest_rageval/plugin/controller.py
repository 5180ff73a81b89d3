"""What only the controlling process does: check before anything runs, keep results, compare, gate, set the exit status.

Registered on every process but the workers of xdist. Imports what is heavy when a case has been seen.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_rageval.model import EvalCase
    from pytest_rageval.plugin.session import EvalSession
    from pytest_rageval.runs.finish import Extent, Finished
    from pytest_rageval.runs.keep import Keeper


TEST_ID_CELL = '<td class="col-testId">'


class Controller:
    """Hooks over one session."""

    def __init__(self, run: EvalSession) -> None:
        self._run = run
        self._config = run.config
        self._keeper: Keeper | None = None
        self._expected: dict[str, EvalCase] = {}
        """Cases by node id: every one of them must have a record at the end."""
        self._finished: Finished | None = None

    # ── before ────────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Under xdist the controller collects nothing: check settings and cases before it starts its workers.

        Last, so that the terminal is ready; xdist's own is later still, as it was registered later.
        """
        if not self._config.pluginmanager.hasplugin("dsession"):
            return
        from pytest_rageval.plugin.foresight import case_files_of

        self._run.collected += case_files_of(self._config, self._run)
        if self._run.collected:
            self._run.is_used = True
            self._run.raise_problem()
            self._check_target()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Under xdist: end the session over broken case files before a worker asks anything."""
        if self._run.collected:
            from pytest_rageval.plugin.foresight import report_problems

            report_problems(session, [self._run.load(path) for path in self._run.collected])

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        if self._run.is_used:
            node.workerinput["rageval_config_hash"] = self._run.config_hash

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
            self._run.stretches.foresee(list(session.items))

    def _check_target(self) -> None:
        """Before the first question: is there a target, can it be reached, does it have all answers?"""
        from pytest_rageval.errors import RagevalError
        from pytest_rageval.plugin.foresight import check_target

        try:
            check_target(self._run)
        except RagevalError as error:
            raise pytest.UsageError(*error.problems) from None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if self._run.is_used and not self._expected:
            from pytest_rageval.plugin.foresight import cases_by_node_id

            known = cases_by_node_id(self._run)
            self._expected = {nodeid: known[nodeid] for nodeid in ids if nodeid in known}

    # ── during ────────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A record is on disk before its case is shown as done."""
        payload: str | None = report.__dict__.pop("rageval", None)
        if payload is not None and report.outcome != "rerun":  # type: ignore[comparison-overlap] # by a plugin
            self._run.is_used = True
            self.keeper.take(payload)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """A case whose worker died is an error, recorded like any other."""
        case = self._expected.get(crashitem)
        if case is not None:
            report.when = "setup"
            self.keeper.crashed(case, str(report.longrepr))

    @property
    def keeper(self) -> Keeper:
        if self._keeper is None:
            from pytest_rageval.runs.keep import Keeper

            self._keeper = Keeper(self._run.reports, self._run.plan, self._run.run_config)
        return self._keeper

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
        if "ahead" in self._run.__dict__:
            self._run.ahead.cancel()
        is_lost = self._expected and exitstatus == pytest.ExitCode.OK and not self._run.settings.dry_run
        if self._keeper is None and not is_lost:
            return
        from pytest_rageval.plugin.gate_reports import gate_tests, report_gates
        from pytest_rageval.report.markdown import summary_markdown
        from pytest_rageval.runs.finish import finish
        from pytest_rageval.runs.store import write_text

        run, plan = self._run, self._run.plan
        self._finished = finish(self.keeper, plan, self._extent(session, exitstatus), run.baseline, run.baseline_file)
        text = summary_markdown(self._finished.metrics, self._finished.config, plan.registry)
        write_text(self._finished.folder / "summary.md", text)
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            report_gates(session, list(gate_tests(self._finished, plan)))

    def _extent(self, session: pytest.Session, exitstatus: int) -> Extent:
        from pytest_rageval.runs.finish import Extent

        is_ended_early = bool(session.shouldstop or session.shouldfail) or exitstatus == pytest.ExitCode.INTERRUPTED
        return Extent(
            every={case.key for case in self._run.all_cases()},
            expected={case.key for case in self._expected.values()},
            is_cut_short=is_ended_early,
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._finished is not None:
            from pytest_rageval.plugin.summary import write_summary

            write_summary(terminalreporter, self._finished, self._run)


def _is_ours(definition: Any) -> bool:
    """Is this fixture definition the one of this plugin, or one that cannot be known?"""
    function = getattr(definition, "func", None)
    return definition is None or getattr(function, "__module__", "") == "pytest_rageval.plugin.fixtures"
