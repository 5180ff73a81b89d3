"""`rageval report RUN`: the page of a stored run."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from pytest_rageval.cli.options import REPORTS, output_option
from pytest_rageval.cli.stored_run import open_run, tell_damage
from pytest_rageval.comparison.baseline import open_side
from pytest_rageval.render.html.report_file import MEGABYTE
from pytest_rageval.render.html.report_page import BUDGET
from pytest_rageval.render.html.report_writer import write_report
from pytest_rageval.text import file_size


@click.command()
@click.argument("run")
@click.option("--compare", "other", metavar="B", help="Compare with run B instead of what the run was compared with.")
@click.option("--full", is_flag=True, help=f"Put the page of every case into the file, not of the worst {BUDGET:,}.")
@click.option("--max-mb", type=click.FloatRange(min=0.1), metavar="N", help="As many pages of cases as fit into N MB.")
@output_option("Default: report.html in the run.")
@click.option("--open", "is_opened", is_flag=True, help="Open it in a browser.")
@REPORTS
def report(
    run: str,
    other: str | None,
    full: bool,
    max_mb: float | None,
    output: Path | None,
    is_opened: bool,
    reports: str | None,
) -> None:
    """Write the HTML report of RUN (an id, `latest`, `latest~1`, `baseline` or a folder) as one file."""
    project, stored = open_run(run, reports=reports)
    side = open_side(project.reports, project.baseline_file, other) if other else None
    most_bytes = int(max_mb * MEGABYTE) if max_mb else None
    path = write_report(
        stored,
        project.settings,
        project.baseline_file,
        other=side,
        budget=None if full else BUDGET,
        most_bytes=most_bytes,
        path=output,
    )
    if stored.state in ("complete", "partial"):  # the page says itself what is broken otherwise
        tell_damage(stored)
    click.echo(f"report: {path}")
    size = path.stat().st_size
    if max_mb is not None and size > max_mb * MEGABYTE:
        click.echo(f"note: {file_size(size)}, more than --max-mb {max_mb:g}, without the page of any case")
    if is_opened:
        webbrowser.open(path.resolve().as_uri())
