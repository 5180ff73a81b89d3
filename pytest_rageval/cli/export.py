"""`rageval export RUN`: a run as CSV, JSON, SQLite or Parquet, for spreadsheets and programs."""

from __future__ import annotations

import sqlite3
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

from pytest_rageval.cli.options import FORCE, FORM_JSON, REPORTS, output_option
from pytest_rageval.cli.stored_run import open_run
from pytest_rageval.errors import SettingsError
from pytest_rageval.export.export_source import ExportSource, look_through
from pytest_rageval.export.formats import FILES, TEXTS, file_name
from pytest_rageval.io.atomic import replacing, write_lines
from pytest_rageval.render.text.columns import shortened
from pytest_rageval.text import counted, printable


@click.command()
@click.argument("run")
@click.option("--format", "form", type=click.Choice([*TEXTS, *FILES]), help="Format to write; required.")
@FORM_JSON
@output_option("Where to (default: report.FORMAT in the run's folder); `-`: stdout.")
@FORCE
@click.option("--full-text", is_flag=True, help="Uncut texts, from observations.jsonl.")
@REPORTS
def export(
    run: str, form: str | None, output: Path | None, reports: str | None, *, force: bool, full_text: bool
) -> None:
    """Export RUN (an id, `latest`, `latest~1` or a folder), each case and trial once, sorted by case key.

    csv: a row each, with a column for each metric; report (or json): report.json, with configuration, aggregates
    and all records; sqlite: tables runs, cases, scores and chunks; parquet: as csv, with the chunks in it; labels:
    the thumbs of rageval web, for rageval calibrate; trec-run and trec-qrels: what was retrieved and what of it is
    relevant, for trec_eval.
    """
    if form is None:
        raise click.UsageError(f"--format is missing; choose one of {', '.join([*TEXTS, *FILES])}")
    stored = open_run(run, reports=reports).run
    path = output or stored.path / file_name(form)
    is_printed = path == Path("-")
    if is_printed and form in FILES:
        raise click.UsageError(f"--output -: {form} is no text; name a file")
    if output and not is_printed and path.exists() and not force:
        raise SettingsError(f"--output: {_shown(path)} is there already; replace it with --force")
    source = look_through(stored, full_text=full_text)
    for note in source.notes:
        click.echo(shortened(printable(note), 500), err=True)
    watch = partial(
        track,
        description="exporting",
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    _write(replace(source, watch=watch), form, None if is_printed else path)
    if not is_printed:
        click.echo(f"{_shown(path)}: {counted(len(source), 'record')}")


def _write(source: ExportSource, form: str, path: Path | None) -> None:
    """Write to a file in one step, or to standard output in parts."""
    try:
        if path is None:
            for line in TEXTS[form](source):
                click.echo(printable(line) if sys.stdout.isatty() else line.encode("utf-8"))
        elif form in TEXTS:
            write_lines(path, TEXTS[form](source))
        else:
            with replacing(path) as new:
                FILES[form](source, new)
    except BrokenPipeError:
        raise
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingsError(f"--output: {_shown(path or Path('-'))} cannot be written: {reason}") from None
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        raise SettingsError(f"run {source.run.run_id}: a record is not what a run writes: {error!r}") from None


def _shown(path: Path) -> str:
    return printable(str(path))
