"""Cases and answers from traces: `rageval answers from-traces` and `rageval cases from-traces`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from pytest_rageval.cases.drafts import ENDING, add_drafts, check_is_drafts
from pytest_rageval.cases.project_cases import sound_cases
from pytest_rageval.cli.case_files import case_files
from pytest_rageval.cli.options import EXISTING_FILE, FORCE, exit_codes, output_option
from pytest_rageval.cli.record_files import check_can_be_written, write_records
from pytest_rageval.config.project import find_project
from pytest_rageval.errors import CaseError
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.make.trace_answer import TracedAnswer, traced_answer
from pytest_rageval.make.trace_spans import FORMATS, read_traces
from pytest_rageval.make.traces import MatchedTraces, drafts_of, match_traces
from pytest_rageval.text import counted, printable

SHOWN = 20
"""Unmatched traces and cases to list at most."""
_TRACES = click.argument("file", type=EXISTING_FILE)
_WRITTEN_BY = click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="Format of FILE.")


@click.command("from-traces")
@_TRACES
@_WRITTEN_BY
@click.option(
    "--cases",
    "paths",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Case files or folders (repeatable; default: as configured).",
)
@output_option("The answers file to write (default: FILE's name with .answers.jsonl).")
@FORCE
@exit_codes({2: "wrong usage, or no trace belongs to a case"})
def answers_from_traces(file: Path, form: str, paths: Sequence[Path], output: Path | None, *, force: bool) -> None:
    """Write a file of answers from the traces in FILE: JSON or JSON lines of OTLP, Phoenix or Langfuse.

    A trace belongs to the case that its attribute `rageval.case_id` names, else to the one that asks the same question.
    Traces and cases without a partner are listed.
    """
    path = output or file.with_suffix(".answers.jsonl")
    check_can_be_written(path, force=force)
    traced = _read_traced(file, form)
    matched = match_traces(traced, sound_cases(case_files(paths)))
    _list_rest(matched)
    if not matched.records:
        raise CaseError(f"{file.as_posix()}: none of {counted(len(traced), 'trace')} belongs to a case")
    mask = Mask(find_project().settings.secrets())
    write_records(path, map(mask.value, matched.records))
    partial = " --rageval-allow-partial" if matched.unanswered else ""
    many = counted(len(matched.records), "answer")
    click.echo(printable(f"{path}: {many}; score with --rageval-target answers:{path}{partial}"))


@click.command("from-traces")
@_TRACES
@_WRITTEN_BY
@click.option(
    "--feedback",
    type=click.Choice(["down", "up"]),
    default="down",
    show_default=True,
    help="The feedback that makes a draft.",
)
@output_option(f"The file of drafts to add to (default: FILE's name with {ENDING}).")
def cases_from_traces(file: Path, form: str, feedback: str, output: Path | None) -> None:
    """Draft cases from the traces in FILE whose answers people disliked: question, bad answer, what it cited, no gold.

    No run asks drafts before a person labels them. A question that exists as a case or draft is left out.
    """
    path = output or file.with_suffix(ENDING)
    check_is_drafts(path)
    traced = _read_traced(file, form)
    drafts = drafts_of(traced, feedback)
    mask = Mask(find_project().settings.secrets())
    added = add_drafts(path, [mask.value(draft) for draft in drafts])
    judged = sum(entry.feedback is not None for entry in traced)
    questions = counted(len(drafts), "question")
    click.echo(f"{counted(len(traced), 'trace')}, {judged} with feedback, {questions} {feedback}")
    if added:
        click.echo(printable(f"{path}: {counted(added, 'new draft')}; no run asks them before they are labelled"))
    elif drafts:
        click.echo(printable(f"{path}: nothing new"))


def _read_traced(file: Path, form: str) -> list[TracedAnswer]:
    return [traced_answer(trace) for trace in read_traces(file, file.as_posix(), form)]


def _list_rest(matched: MatchedTraces) -> None:
    """Write the unmatched traces and cases to standard error."""
    lines = [f"trace {entry.trace_id}: no case asks {shown_value(entry.questions[0])}" for entry in matched.unmatched]
    lines += [f"trace {entry.trace_id}: holds no question, or neither answer nor documents" for entry in matched.silent]
    _list_some(lines)
    _list_some([f"case {case.key}: no trace" for case in matched.unanswered])
    if matched.repeated:
        click.echo(f"{counted(matched.repeated, 'trace')} left out for a later one of the same case", err=True)
    if matched.undocumented:
        many = counted(matched.undocumented, "answer comes", "answers come")
        click.echo(f"{many} without retrieved documents: retrieval metrics are not applicable to them", err=True)


def _list_some(lines: Sequence[str]) -> None:
    for line in lines[:SHOWN]:
        click.echo(printable(line), err=True)
    if len(lines) > SHOWN:
        click.echo(and_more(len(lines) - SHOWN), err=True)
