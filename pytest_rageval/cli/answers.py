"""`rageval answers`: files of answers, for --rageval-target answers:FILE."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from pytest_rageval.cli.case_paths import case_files, sound_cases
from pytest_rageval.cli.exit_codes import exit_codes
from pytest_rageval.config.project import find_project
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.text import counted, printable
from pytest_rageval.tools.trace_answers import Matched, TracedAnswer, match_traces, traced_answer
from pytest_rageval.tools.trace_spans import FORMATS, read_traces

SHOWN = 20
"""Traces and cases that came to nothing, listed at most."""


@click.group()
def answers() -> None:
    """Make files of answers that --rageval-target answers:FILE scores."""


@answers.command("from-traces")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="Who wrote FILE.")
@click.option("--cases", "paths", multiple=True, type=click.Path(exists=True, path_type=Path), metavar="PATH",
              help="Case files or folders (repeatable; default: as configured).")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path),
              help="The answers file to write (default: FILE's name with .answers.jsonl).")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace the answers file if it is there already.")
@exit_codes({2: "wrong usage, or no trace belongs to a case"})
def from_traces(file: Path, form: str, paths: Sequence[Path], output: Path | None, *, force: bool) -> None:
    """Answers of cases from the traces in FILE: JSON or JSON lines, as OTLP, Phoenix or Langfuse write them.

    A trace belongs to the case that its attribute `rageval.case_id` names, else to the one that asks the same question.
    Traces and cases that came to nothing are listed.
    """
    path = output or file.with_name(f"{file.name.removesuffix(file.suffix)}.answers.jsonl")
    if path.suffix != ".jsonl":
        raise SettingsError(f"{path}: what is written is JSON lines; choose a name that ends with .jsonl")
    if path.exists() and not force:
        raise SettingsError(f"{path}: there already; choose another name with -o, or replace it with --force")
    traced = read_traced(file, form)
    matched = match_traces(traced, sound_cases(case_files(paths)))
    _list_rest(matched)
    if not matched.records:
        raise CaseError(f"{file.as_posix()}: none of {counted(len(traced), 'trace')} belongs to a case")
    mask = Mask(find_project().settings.secrets())
    write_lines(path, (json.dumps(mask.value(record), ensure_ascii=False) for record in matched.records))
    partial = " --rageval-allow-partial" if matched.unanswered else ""
    many = counted(len(matched.records), "answer")
    click.echo(printable(f"{path}: {many}; score with --rageval-target answers:{path}{partial}"))


def read_traced(file: Path, form: str) -> list[TracedAnswer]:
    """The answers of all traces in a file."""
    return [traced_answer(trace) for trace in read_traces(file, file.as_posix(), form)]


def _list_rest(matched: Matched) -> None:
    """What came to nothing, to standard error."""
    lines = [f"trace {entry.trace_id}: no case asks {shown_value(entry.question)}" for entry in matched.unmatched]
    lines += [f"trace {entry.trace_id}: holds no question, or neither answer nor documents" for entry in matched.silent]
    for listed in (lines, [f"case {case.key}: no trace" for case in matched.unanswered]):
        for line in listed[:SHOWN]:
            click.echo(printable(line), err=True)
        if len(listed) > SHOWN:
            click.echo(and_more(len(listed) - SHOWN), err=True)
    if matched.repeated:
        click.echo(f"{counted(matched.repeated, 'trace')} left out for a later one of the same case", err=True)
    if matched.undocumented:
        many = counted(matched.undocumented, "answer comes", "answers come")
        click.echo(f"{many} without retrieved documents: retrieval metrics are not applicable to them", err=True)
