"""Cases and answers from and for other tools: `rageval answers`, and the verbs of `rageval cases` that convert."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.drafts import ENDING, add_drafts, check_is_drafts
from pytest_rageval.cases.exchange.exchange import OtherTestSet
from pytest_rageval.cases.exchange.formats import (
    READERS,
    WRITERS,
    ReadOptions,
    looks_like_gold,
    parsed_fields,
    read_other,
    read_other_answers,
)
from pytest_rageval.cases.gold_places import whole_notes_line
from pytest_rageval.cases.names import GIVEN
from pytest_rageval.cases.note_folder import NoteFolder
from pytest_rageval.cases.project_cases import sound_cases
from pytest_rageval.cli.case_files import PATHS, case_files
from pytest_rageval.cli.options import EXISTING_FILE, FORCE, exit_codes, output_option
from pytest_rageval.config.project import find_project
from pytest_rageval.errors import CaseError, RagevalError, SettingsError
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.make.trace_answer import TracedAnswer, traced_answer
from pytest_rageval.make.trace_spans import FORMATS, read_traces
from pytest_rageval.make.traces import MatchedTraces, drafts_of, match_traces
from pytest_rageval.model import NOWHERE, Answer, EvalCase, Json
from pytest_rageval.targets.answer_files import load_answers
from pytest_rageval.targets.answers_target import AnswersTarget
from pytest_rageval.text import counted, printable
from pytest_rageval.views.spot_check import spot_check

SHOWN = 20
"""Unmatched traces and cases to list at most."""
_TRACES = click.argument("file", type=EXISTING_FILE)
_WRITTEN_BY = click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="Who wrote FILE.")


# ── traces ────────────────────────────────────────────────────────────────────────────────────────────────────


@click.group()
def answers() -> None:
    """Make files of answers that --rageval-target answers:FILE scores."""


@answers.command("from-traces")
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
    """Answers of cases from the traces in FILE: JSON or JSON lines, as OTLP, Phoenix or Langfuse write them.

    A trace belongs to the case that its attribute `rageval.case_id` names, else to the one that asks the same question.
    Traces and cases that came to nothing are listed.
    """
    path = output or file.with_suffix(".answers.jsonl")
    _check_can_be_written(path, force=force)
    traced = _read_traced(file, form)
    matched = match_traces(traced, sound_cases(case_files(paths)))
    _list_rest(matched)
    if not matched.records:
        raise CaseError(f"{file.as_posix()}: none of {counted(len(traced), 'trace')} belongs to a case")
    mask = Mask(find_project().settings.secrets())
    write_lines(path, map(_line, map(mask.value, matched.records)))
    partial = " --rageval-allow-partial" if matched.unanswered else ""
    many = counted(len(matched.records), "answer")
    click.echo(printable(f"{path}: {many}; score with --rageval-target answers:{path}{partial}"))


_MAP = click.option(
    "--map",
    "mapped",
    multiple=True,
    metavar="FIELD=EXPR",
    help="Where a field stands, as in question=Frage or gold.paths=meta.source: a name or JMESPath; empty, as in id=: "
    "nowhere (repeatable).",
)
_YES = click.option(
    "--yes", "is_sure", is_flag=True, help="Take the first meaning of a column that could have two, and ask nothing."
)


@answers.command("convert")
@click.argument("file", type=EXISTING_FILE)
@_MAP
@output_option("The answers file to write (default: FILE's name with .answers.jsonl).")
@FORCE
@exit_codes({2: "wrong usage, or FILE cannot be read"})
def convert_answers(file: Path, mapped: Sequence[str], output: Path | None, *, force: bool) -> None:
    """Answers from FILE (CSV, JSON, JSON lines, YAML or Parquet) with the names of people or another tool.

    Each row needs an id or a question, and an answer or retrieved passages; what else there is goes into `meta`.
    """
    path = output or file.with_suffix(".answers.jsonl")
    _check_can_be_written(path, force=force)
    result = read_other_answers(file, file.as_posix(), parsed_fields(mapped))
    _show_guess(result, file)
    _write(path, result.answers)
    meta = f"; to meta: {', '.join(result.kept)}" if result.kept else ""
    many = counted(len(result.answers), "answer")
    click.echo(printable(f"{path}: {many}{meta}; score with --rageval-target answers:{path}"))
    for note in result.notes:
        click.echo(printable(note), err=True)


@click.command("from-traces")
@_TRACES
@_WRITTEN_BY
@click.option(
    "--feedback",
    type=click.Choice(["down", "up"]),
    default="down",
    show_default=True,
    help="What people said of the answers.",
)
@output_option(f"The file of drafts to add to (default: FILE's name with {ENDING}).")
def cases_from_traces(file: Path, form: str, feedback: str, output: Path | None) -> None:
    """Draft cases from the traces in FILE whose answers people disliked: question, bad answer, what it cited, no gold.

    Drafts stand in a file that no run asks, until somebody labels them. A question that is there already is left out.
    """
    path = output or file.with_suffix(ENDING)
    check_is_drafts(path)
    traced = _read_traced(file, form)
    drafts = drafts_of(traced, feedback)
    mask = Mask(find_project().settings.secrets())
    added = add_drafts(path, [mask.value(draft) for draft in drafts])
    judged = sum(entry.feedback is not None for entry in traced)
    click.echo(
        f"{counted(len(traced), 'trace')}, {judged} with feedback, {counted(len(drafts), 'question')} {feedback}"
    )
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


# ── test sets of other tools ──────────────────────────────────────────────────────────────────────────────────


@click.command("export")
@PATHS
@click.option("--to", "form", type=click.Choice([*WRITERS]), required=True, help="What to write.")
@output_option(
    "Folder for the files (default: this one).",
    metavar="DIR",
    default=".",
    type=click.Path(file_okay=False, path_type=Path),
)
@click.option(
    "--answers",
    metavar="FILE",
    type=EXISTING_FILE,
    help="Answers to put beside the cases: a file as for --rageval-target answers:FILE.",
)
@FORCE
def export_cases(paths: Sequence[Path], form: str, output: Path, answers: Path | None, *, force: bool) -> None:
    """Write cases as a test set of another tool.

    PATHS are files or folders; without any, the files that `cases` in the configuration names. What a format has no
    field for is kept in one named `rageval`, if it has room for that, so that `rageval cases convert` brings it back;
    what it has no room for is said.
    """
    cases = sound_cases(case_files(paths))
    counts = Counter(case.id for case in cases)  # an id in several files is prefixed by its file
    cases = [case if counts[case.id] == 1 else replace(case, id=case.key) for case in cases]
    given: dict[str, Answer] = {}
    if answers is not None:
        target = AnswersTarget(load_answers(answers, shown_as=answers.as_posix()))
        given = {case.id: answer for case in cases if (answer := target.of(case)) is not None}
    written = WRITERS[form](cases, given)
    places = {output / name: lines for name, lines in written.files.items()}
    if not force and (taken := [str(path) for path in places if path.exists()]):
        raise SettingsError(
            f"{', '.join(taken)}: there already; choose another folder with -o, or replace with --force"
        )
    for path, lines in places.items():
        write_lines(path, lines)
        click.echo(printable(str(path)))
    for note in written.notes:
        click.echo(printable(note), err=True)
    click.echo(f"{counted(len(cases), 'case')}" + (f", {counted(len(given), 'answer')}" if answers else ""))


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--from", "form", type=click.Choice(READERS), help="Format of PATH (default: recognised).")
@_MAP
@click.option(
    "--qrels", metavar="FILE", type=EXISTING_FILE, help="Relevance judgements of TREC, for the topics in PATH."
)
@click.option(
    "--run", metavar="FILE", type=EXISTING_FILE, help="A run of TREC, for the topics in PATH: what a system retrieved."
)
@click.option("--split", metavar="NAME", help="Split of a folder of BEIR (default: test) or RAGTruth (default: all).")
@output_option("The case file to write (default: standard output).")
@click.option(
    "--answers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write what a system gave, too: a file for --rageval-target answers:FILE.",
)
@click.option(
    "--labels",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write what people said of answers, too (RAGTruth): a file for `rageval calibrate`.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if no case has gold.")
@_YES
@FORCE
@exit_codes(
    {1: "no case has gold, with --strict", 2: "wrong usage, PATH cannot be read, or a column could mean two things"}
)
def convert(
    path: Path,
    form: str | None,
    mapped: Sequence[str],
    qrels: Path | None,
    run: Path | None,
    split: str | None,
    output: Path | None,
    answers: Path | None,
    labels: Path | None,
    *,
    strict: bool,
    is_sure: bool,
    force: bool,
) -> None:
    """Convert PATH to a case file: a test set of another tool (JSON, JSONL, CSV, YAML or Parquet), a spreadsheet of
    questions and answers, a file of TREC, or a folder of BEIR or RAGTruth.

    Questions, answers, key facts, places, contexts and labels take the names that they have here; what else there is
    goes into `metadata`, which the result line names. A row may say that it has no answer, by a flag, its expected
    behaviour or its category. What columns mean is decided once for the file and shown with the first case. Where PATH
    cannot be read, or a column could mean two things, nothing is written.
    """
    for target in filter(None, (output, answers, labels)):
        _check_can_be_written(target, force=force)
    options = ReadOptions(qrels, run, split, parsed_fields(mapped), is_sure=is_sure)
    result = read_other(path, path.as_posix(), form, options)
    _show_guess(result, path, is_sure=is_sure)
    if output is None:
        click.echo("".join(f"{_line(record)}\n" for record in result.cases), nl=False)
    else:
        _write(output, result.cases)
    cases = [case_from_record(dict(record), NOWHERE)[0] for record in result.cases]
    counts = gold_counts(cases, result.kept)
    click.echo(f"{output}: {counts}" if output else counts, err=output is None)
    click.echo(spot_check(cases), err=output is None)
    _put(result.answers, answers, "answer", "--answers", f"score them with --rageval-target answers:{answers}")
    _put(result.labels, labels, "label", "--labels", f"rageval calibrate {labels}")
    for note in _notes(result):
        click.echo(printable(note), err=True)
    if (line := _whole_notes(cases)) is not None:
        click.echo(printable(line), err=True)
    if not any(map(_kinds_of_gold, cases)):
        given = result.used.get(GIVEN)
        remedy = f"--map gold.answer={given} reads {given} as gold" if given else "say where it stands with --map"
        click.echo(printable(f"warning: 0 of {counted(len(cases), 'case')} have gold; {remedy}"), err=True)
        raise SystemExit(1 if strict else 0)


def _whole_notes(cases: Sequence[EvalCase]) -> str | None:
    """Return the line about golds of whole notes, where the project knows its notes."""
    try:
        folder = find_project().notes
    except RagevalError:  # a conversion needs no project
        return None
    return None if folder is None else whole_notes_line(cases, NoteFolder(folder))


def _show_guess(result: OtherTestSet, path: Path, *, is_sure: bool = False) -> None:
    """Show which fields were guessed by name, and ask for them on a terminal."""
    if not result.is_guessed:
        return
    guesses = ", ".join(f"{field} = {name}" for field, name in result.used.items())
    click.echo(printable(f"{path.as_posix()}: read by the names of its columns: {guesses}"), err=True)
    is_asked = not is_sure and sys.stdin.isatty() and sys.stderr.isatty()
    if is_asked and not click.confirm("Is that right?", default=True, err=True):
        maps = " ".join(f"--map {field}={name!r}" for field, name in result.used.items())
        raise SettingsError(f"nothing is written; say where each field stands, as in {maps}")


def gold_counts(cases: Sequence[EvalCase], kept: Sequence[str] = ()) -> str:
    """Return how many cases have gold of each kind: `40 cases; gold answer 38, places 12, none 2; to metadata: x`."""
    counts = Counter(kind for case in cases for kind in _kinds_of_gold(case) or ("none",))
    parts = [counted(len(cases), "case"), ", ".join(f"{kind} {counts[kind]}" for kind in _GOLD if counts[kind])]
    if kept:
        parts.append(f"to metadata: {', '.join(kept)}")
    return printable("; ".join(filter(None, parts)))


_GOLD = ("gold answer", "key facts", "places", "ids", "contexts", "unanswerable", "none")


def _kinds_of_gold(case: EvalCase) -> list[str]:
    gold = case.gold
    has = (gold.answers, gold.key_facts, gold.supports, gold.chunk_ids or gold.relevance, case.contexts)
    return [kind for kind, part in zip(_GOLD, (*has, not case.answerable), strict=False) if part]


def _notes(result: OtherTestSet) -> Iterator[str]:
    if result.repeated:
        repeats = "repeats" if result.repeated == 1 else "repeat"
        yield f"{counted(result.repeated, 'row')} left out that {repeats} an earlier one"
    yield from result.notes
    used = {path.rpartition(".")[2] for path in result.used.values()}
    for name, field in looks_like_gold(result.kept, result.no_gold | used).items():
        yield f"{name} looks like gold and went to metadata; --map {field}={name} takes it instead"
    if result.unused:
        types = ", ".join(f"{kind} {number}" for kind, number in result.unused.items())
        many = counted(sum(result.unused.values()), "check")
        yield f"{many} without a counterpart here: kept in metadata.assert ({types})"


def _check_can_be_written(path: Path, *, force: bool) -> None:
    if path.suffix != ".jsonl":
        raise SettingsError(f"{path}: what is written is JSON lines; choose a name that ends with .jsonl")
    if path.exists() and not force:
        raise SettingsError(f"{path}: there already; choose another name, or replace it with --force")


def _put(records: Sequence[Mapping[str, Json]], file: Path | None, noun: str, option: str, use: str) -> None:
    """Write what came with the cases if a file is named for it; else report that it is left out."""
    if records and file is not None:
        _write(file, records)
        click.echo(f"{file}: {counted(len(records), noun)}; {use}", err=True)
    elif records:
        click.echo(f"{counted(len(records), noun)} left out; {option} FILE keeps them", err=True)


def _write(file: Path, records: Iterable[Mapping[str, Json]]) -> None:
    write_lines(file, map(_line, records))


def _line(record: Mapping[str, Json]) -> str:
    return json.dumps(record, ensure_ascii=False)
