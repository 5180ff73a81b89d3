"""A stored run for a verb: opened in its project, and shown with pytest's exit code when it is written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

import click

from pytest_rageval.cli.options import BASELINE, REPORTS
from pytest_rageval.cli.output import echo_view
from pytest_rageval.comparison.baseline import Side, project_baseline
from pytest_rageval.comparison.what_changed import changes_since
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.config.settings import Settings
from pytest_rageval.render.gate_tests import gate_tests
from pytest_rageval.render.run_reports import write_all_reports
from pytest_rageval.run.finish import FinishedRun, accept
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.reader import StoredRun, open_stored_run
from pytest_rageval.text import printable
from pytest_rageval.views.run import run_view
from pytest_rageval.views.verdict_block import verdict_view

F = TypeVar("F", bound=Callable[..., object])


class OpenedRun(NamedTuple):
    """A stored run, and the project in its present state."""

    project: Project
    run: StoredRun

    @property
    def baseline(self) -> Side | None:
        return project_baseline(self.project)

    @property
    def root(self) -> Path:
        return self.project.root

    @property
    def settings(self) -> Settings:
        return self.project.settings


def open_run(run_name: str, **options: Any) -> OpenedRun:
    """Open the run of this id in the project of the current folder; `options` are settings, None where not given."""
    project = find_project(options)
    return OpenedRun(project, open_stored_run(project.reports, run_name, project.baseline_file))


def tell_damage(run: StoredRun) -> None:
    """Say on standard error how the records of a run differ from those that it wrote."""
    if run.damage is not None:
        click.secho(printable(run.damage), fg="red", err=True)


def run_argument(command: F) -> F:
    """Add `RUN`, `--reports` and `--baseline`."""
    return click.argument("run")(REPORTS(BASELINE(command)))


def end(finished: FinishedRun, plan: Plan, baseline: Path, worded: Callable[[str], str] = str) -> NoReturn:
    """Show a run that was just written, write its reports, and leave with its exit code."""
    code = exit_code_of(finished, plan)
    reports = write_all_reports(finished.stored, plan, finished.cases, baseline, exit_status=code)
    accept(finished, baseline)
    show_figures(finished, plan, worded)
    for note in reports.notes:
        click.secho(printable(note), fg="yellow")
    show_verdict(finished, baseline, worded)
    click.echo(f"summary: {finished.folder / 'summary.md'}")
    if reports.page is not None:
        click.echo(printable(reports.page.problem or f"report:  {reports.page.path}"))
    sys.exit(code)


def show_figures(finished: FinishedRun, plan: Plan, worded: Callable[[str], str] = str) -> None:
    """Show the figures of a run, its notes and its failed gates, each line as `worded` makes it."""
    echo_view(run_view(finished.metrics, finished.rows), worded)
    for note in finished.notes:
        click.secho(worded(printable(note)), fg="yellow")
    for test in gate_tests(finished, plan):
        if test.outcome == "failed":
            click.secho(worded(printable(f"FAILED {test.name} - {test.message}")), fg="red")


def show_verdict(finished: FinishedRun, baseline: Path, worded: Callable[[str], str] = str) -> None:
    """Show why cases fail, the verdict, and what changed since the compared run, which comes last of all."""
    changes = changes_since(finished.stored, finished.metrics["comparison"], baseline)
    click.echo()
    echo_view(verdict_view(finished.metrics, finished.rows, changes), worded)


def exit_code_of(finished: FinishedRun, plan: Plan) -> int:
    """Return 1 if a gate or a case failed, else 0."""
    has_failed_gate = any(test.outcome == "failed" for test in gate_tests(finished, plan))
    outcomes = finished.metrics["outcomes"]
    if has_failed_gate or outcomes["failed"] or outcomes["error"]:
        return 1
    return 0
