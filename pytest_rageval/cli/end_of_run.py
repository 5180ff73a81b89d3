"""The end of a command that has written a run: summary, failed gates and pytest's exit code."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click

from pytest_rageval.finish import Finished
from pytest_rageval.plan import Plan
from pytest_rageval.render.gate_tests import gate_tests
from pytest_rageval.render.run_reports import write_all_reports
from pytest_rageval.render.text.view_text import view_lines
from pytest_rageval.text import printable
from pytest_rageval.views.run import run_view

COLOURS = {"green": "green", "red": "red", "yellow": "yellow"}


def end(finished: Finished, plan: Plan, baseline: Path) -> NoReturn:
    """Show a run that was just written, write its reports, and leave: 1 where a gate or a case failed."""
    code = exit_code_of(finished, plan)
    reports = write_all_reports(finished.folder, plan, finished.cases, baseline, exit_status=code)
    show(finished, plan)
    for note in reports.notes:
        click.secho(printable(note), fg="yellow")
    click.echo(f"summary: {finished.folder / 'summary.md'}")
    if reports.page is not None:
        click.echo(printable(reports.page.problem or f"report:  {reports.page.path}"))
    sys.exit(code)


def show(finished: Finished, plan: Plan, worded: Callable[[str], str] = str) -> int:
    """Show what a run comes to; the exit code is 1 where a gate or a case failed, else 0.

    `worded`: makes of each line what the command says.
    """
    width = shutil.get_terminal_size().columns
    for line in view_lines(run_view(finished.metrics, finished.rows), width):
        click.secho(worded(line.text), fg=COLOURS.get(line.style), bold=line.style == "bold")
    for note in finished.notes:
        click.secho(worded(printable(note)), fg="yellow")
    for test in gate_tests(finished, plan):
        if test.outcome == "failed":
            click.secho(worded(printable(f"FAILED {test.name} - {test.message}")), fg="red")
    return exit_code_of(finished, plan)


def exit_code_of(finished: Finished, plan: Plan) -> int:
    """1 where a gate or a case failed, else 0."""
    has_failed_gate = any(test.outcome == "failed" for test in gate_tests(finished, plan))
    outcomes = finished.metrics["outcomes"]
    return int(bool(has_failed_gate or outcomes["failed"] or outcomes["error"]))
