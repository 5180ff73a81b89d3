"""`rageval answers`: files of answers, from traces or from the files of people and other tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from pytest_rageval.cases.exchange.formats import read_other_answers
from pytest_rageval.cases.exchange.mapped_fields import parsed_fields
from pytest_rageval.cli.conversion import MAP, show_guess
from pytest_rageval.cli.options import EXISTING_FILE, FORCE, exit_codes, output_option
from pytest_rageval.cli.record_files import check_can_be_written, write_records
from pytest_rageval.cli.traces import answers_from_traces
from pytest_rageval.text import counted, printable


@click.group()
def answers() -> None:
    """Make files of answers that --rageval-target answers:FILE scores."""


answers.add_command(answers_from_traces)


@answers.command("convert")
@click.argument("file", type=EXISTING_FILE)
@MAP
@output_option("The answers file to write (default: FILE's name with .answers.jsonl).")
@FORCE
@exit_codes({2: "wrong usage, or FILE cannot be read"})
def convert_answers(file: Path, mapped: Sequence[str], output: Path | None, *, force: bool) -> None:
    """Write a file of answers from FILE: CSV, JSON, JSON lines, YAML or Parquet, with any names of columns.

    Each row needs an id or a question, and an answer or retrieved passages. All other columns go into `meta`.
    """
    path = output or file.with_suffix(".answers.jsonl")
    check_can_be_written(path, force=force)
    result = read_other_answers(file, file.as_posix(), parsed_fields(mapped))
    show_guess(result, file)
    write_records(path, result.answers)
    meta = f"; to meta: {', '.join(result.kept)}" if result.kept else ""
    many = counted(len(result.answers), "answer")
    click.echo(printable(f"{path}: {many}{meta}; score with --rageval-target answers:{path}"))
    for note in result.notes:
        click.echo(printable(note), err=True)
