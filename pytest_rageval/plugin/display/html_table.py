"""Cases in the table of pytest-html: columns and details from the HTML report, if the session has that plugin.

pytest-html fills its table while tests run, and writes it when the session ends. Columns are added at that moment: only
then it is known which metrics there are, and which cases are the worst.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from html import escape
from pathlib import Path
from typing import Any

import pytest

from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.plugin.active import ActiveSession
from pytest_rageval.render.html.page_run import PageRun, compared_side, read_page
from pytest_rageval.render.html.report_file import REPORT
from pytest_rageval.render.html.table_parts import CaseTable, TablePart
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import printable

ID_HEAD = 'data-column-type="testId"'
ID_CELL = '<td class="col-testId">'
NOTHING_LOGGED = "No log output captured."
RERUN = "Rerun"
OUTCOMES = ("passed", "failed", "skipped")
"""Outcomes of the last report of a test: not `rerun`."""


class HtmlTable:
    """Hooks over the rows of cases in pytest-html's table."""

    def __init__(self, active: ActiveSession) -> None:
        self._active = active
        self._session = active.session
        self._texts: dict[str, str] = {}
        """pytest's own text of a case by node id, to be shown if there are no details in the end."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_row(self, report: pytest.TestReport, cells: list[str]) -> None:
        """Escape the case's id in its cell: pytest-html inserts a test's id unescaped."""
        if report.nodeid not in self._active.expected:
            return
        for number, cell in enumerate(cells):
            if cell.startswith(ID_CELL):
                cells[number] = ID_CELL + escape(cell.removeprefix(ID_CELL).removesuffix("</td>")) + "</td>"

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_html_results_table_html(self, report: pytest.TestReport, data: list[str]) -> None:
        """Leave out the text of a case's report, of which the details say more; its output stays."""
        if report.nodeid not in self._active.expected or report.when != "call" or report.outcome not in OUTCOMES:
            return
        text = report.longreprtext
        if data and text:
            self._texts[report.nodeid] = escape(printable(getattr(report, "wasxfail", "") or text)) + "\n"
            del data[0]
        if data == [NOTHING_LOGGED]:
            data.clear()

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_summary(self, prefix: list[str], session: pytest.Session) -> None:
        """Complete the rows of cases just before pytest-html writes its page."""
        finished = self._active.finished
        tests = self._tests
        if finished is None:
            self._put_texts_back()
        if finished is None or not tests:
            return
        try:
            table = CaseTable(self._page(finished.folder, int(session.exitstatus)))
            parts = dict(table.parts())
            above = table.summary(self._link(finished.folder))
        except Exception as error:  # noqa: BLE001 results are on disk: a page must not end their run in an internal error
            self._put_texts_back()
            reason = f"{type(error).__name__}: {error}"
            self._session.notes.append(f"pytest-html: no details of cases: {reason}; report.html has them")
            return
        prefix.append(above)
        keys = {nodeid: case.key for nodeid, case in self._active.expected.items()}
        shown = {case.key for case in table.cases}
        # A browser takes minutes to build a table of many thousand rows.
        for nodeid in [nodeid for nodeid, key in keys.items() if key not in shown]:
            tests.pop(nodeid, None)
        detailed = {nodeid: parts[key] for nodeid, key in keys.items() if key in parts}
        self._add_columns(table, detailed)
        self._put_texts_back(without=detailed)

    def _page(self, folder: Path, exit_status: int) -> PageRun:
        project = self._active.prepared.project
        run = StoredRun(folder)
        before = compared_side(run, project.reports, project.baseline_file)
        return read_page(side_of_run(run), before, project.settings, exit_status=exit_status)

    def _put_texts_back(self, without: Collection[str] = ()) -> None:
        """Show cases as pytest shows any test."""
        for nodeid, text in self._texts.items():
            if nodeid not in without and (row := _row_of_case(self._tests.get(nodeid, ()))) is not None:
                row["log"] = text + row["log"]

    @property
    def _tests(self) -> dict[str, list[dict[str, Any]]]:
        """Return rows by node id; several for a test that was rerun, or whose teardown failed."""
        data = getattr(self._session.html_report, "data", None)
        tests: dict[str, list[dict[str, Any]]] = data.get("tests", {}) if isinstance(data, dict) else {}
        return tests

    def _link(self, folder: Path) -> str | None:
        """Return the address of the run's HTML report, relative to pytest-html's page."""
        report = folder / REPORT
        page = self._session.config.getoption("htmlpath", None)
        if page is None or not report.is_file():
            return None
        try:
            return Path(os.path.relpath(report, Path(os.path.expandvars(page)).expanduser().parent)).as_posix()
        except ValueError:  # on another drive
            return report.as_uri()

    def _add_columns(self, table: CaseTable, parts: Mapping[str, TablePart]) -> None:
        self._session.html_report.table_header = _with_cells(
            self._session.html_report.table_header, ID_HEAD, table.heads()
        )
        blank = table.blank_cells()
        for nodeid, rows in self._tests.items():
            part = parts.get(nodeid)
            row_of_case = _row_of_case(rows) if part is not None else None
            for row in rows:
                cells = part.cells if part is not None and row is row_of_case else blank
                row["resultsTableRow"] = _with_cells(row["resultsTableRow"], ID_CELL, cells)
                row |= part.sorted_by if part is not None and row is row_of_case else table.unsorted
            if part is not None and row_of_case is not None:
                # A new list: the rows of one test share theirs.
                details = {"name": "case", "format_type": "html", "content": part.details}
                row_of_case["extras"] = [*row_of_case["extras"], details]


def _row_of_case(rows: list[dict[str, Any]] | tuple[()]) -> dict[str, Any] | None:
    """Return the row of a test's last call, or of its setup error if there was no call."""
    return next((row for row in rows if row.get("result") != RERUN), None)


def _with_cells(cells: list[str], mark: str, ours: tuple[str, ...] | list[str]) -> list[str]:
    """Insert our cells after the cell of the test's id, or last if another plugin removed that."""
    place = next((number for number, cell in enumerate(cells, 1) if mark in cell), len(cells))
    return [*cells[:place], *ours, *cells[place:]]
