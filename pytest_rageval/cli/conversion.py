"""`rageval cases convert`: a case file from a test set of another tool, a spreadsheet, or a benchmark."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from pytest_rageval.cases.conversations import cases_from_record
from pytest_rageval.cases.exchange.exchange import OtherTestSet
from pytest_rageval.cases.exchange.formats import READERS, ReadOptions, looks_like_gold, read_other
from pytest_rageval.cases.exchange.map_hints import map_option
from pytest_rageval.cases.exchange.mapped_fields import parsed_fields
from pytest_rageval.cases.gold_places import whole_notes_line
from pytest_rageval.cases.names import ANSWER, GIVEN
from pytest_rageval.cases.note_folder import NoteFolder
from pytest_rageval.cli.options import EXISTING_FILE, FORCE, exit_codes, output_option
from pytest_rageval.cli.record_files import check_can_be_written, record_line, write_records
from pytest_rageval.config.project import find_project
from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.model import NOWHERE, EvalCase, Json
from pytest_rageval.text import counted, printable
from pytest_rageval.views.spot_check import spot_check

MAP = click.option(
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


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--from", "form", type=click.Choice(READERS), help="Format of PATH (default: recognised).")
@MAP
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
    help="Write the answers of a system, too: a file for --rageval-target answers:FILE.",
)
@click.option(
    "--labels",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write people's verdicts on answers, too (RAGTruth): a file for `rageval calibrate`.",
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

    Columns of questions, answers, key facts, places, contexts and labels become fields of cases. All others go into
    `metadata`, and the result line names them. A flag, an expected behaviour or a category may mark a row as
    unanswerable. The meaning of the columns is shown with the first case. If PATH cannot be read, or a column could
    mean two things, nothing is written.
    """
    for target in (output, answers, labels):
        if target is not None:
            check_can_be_written(target, force=force)
    options = ReadOptions(qrels, run, split, parsed_fields(mapped), is_sure=is_sure)
    result = read_other(path, path.as_posix(), form, options)
    show_guess(result, path, is_sure=is_sure)
    if output is None:
        click.echo("".join(f"{record_line(record)}\n" for record in result.cases), nl=False)
    else:
        write_records(output, result.cases)
    cases = [case for record in result.cases for case in _cases_of(record)]
    counts = gold_counts(cases, result.kept)
    # Standard output holds the cases themselves if no file is named.
    click.echo(f"{output}: {counts}" if output else counts, err=output is None)
    click.echo(spot_check(cases), err=output is None)
    _put(result.answers, answers, "answer", "--answers", f"score them with --rageval-target answers:{answers}")
    _put(result.labels, labels, "label", "--labels", f"rageval calibrate {labels}")
    for note in _notes(result):
        click.echo(printable(note), err=True)
    whole_notes = _whole_notes(cases)
    if whole_notes is not None:
        click.echo(printable(whole_notes), err=True)
    if not any(_kinds_of_gold(case) for case in cases):
        click.echo(printable(_no_gold_warning(len(cases), result.used.get(GIVEN))), err=True)
        raise SystemExit(1 if strict else 0)


def _cases_of(record: Mapping[str, Json]) -> list[EvalCase]:
    """Return the case of a record, or the turns of a conversation."""
    return [case for case, _ in cases_from_record(dict(record), NOWHERE)]


def _no_gold_warning(cases: int, given: str | None) -> str:
    """Return the warning that no case has gold. `given`: the column that holds the system's answers."""
    remedy = "say where it stands with --map"
    if given:
        remedy = f"{map_option(ANSWER, given)} reads {given} as gold"
    return f"warning: 0 of {counted(cases, 'case')} have gold; {remedy}"


def _whole_notes(cases: Sequence[EvalCase]) -> str | None:
    """Return the line about golds of whole notes, where the project knows its notes."""
    try:
        folder = find_project().notes
    except RagevalError:  # a conversion needs no project
        return None
    if folder is None:
        return None
    return whole_notes_line(cases, NoteFolder(folder))


def show_guess(result: OtherTestSet, path: Path, *, is_sure: bool = False) -> None:
    """Show which fields were guessed by name, and ask for them on a terminal."""
    if not result.is_guessed:
        return
    guesses = ", ".join(f"{field} = {name}" for field, name in result.used.items())
    click.echo(printable(f"{path.as_posix()}: read by the names of its columns: {guesses}"), err=True)
    is_asked = not is_sure and sys.stdin.isatty() and sys.stderr.isatty()
    if is_asked and not click.confirm("Is that right?", default=True, err=True):
        maps = " ".join(map_option(field, name) for field, name in result.used.items())
        raise SettingsError(f"nothing is written; say where each field stands, as in {maps}")


def gold_counts(cases: Sequence[EvalCase], kept: Sequence[str] = ()) -> str:
    """Return how many cases have gold of each kind: `40 cases; gold answer 38, places 12, none 2; to metadata: x`."""
    counts: Counter[str] = Counter()
    for case in cases:
        counts.update(_kinds_of_gold(case) or ["none"])
    parts = [counted(len(cases), "case")]
    if counts:
        parts.append(", ".join(f"{kind} {counts[kind]}" for kind in _GOLD if counts[kind]))
    if kept:
        parts.append(f"to metadata: {', '.join(kept)}")
    return printable("; ".join(parts))


_GOLD = ("gold answer", "key facts", "places", "ids", "contexts", "assertions", "unanswerable", "none")
"""The kinds of gold in the order in which they are counted."""


def _kinds_of_gold(case: EvalCase) -> list[str]:
    gold = case.gold
    is_there = {
        "gold answer": gold.answers,
        "key facts": gold.key_facts,
        "places": gold.supports,
        "ids": gold.chunk_ids or gold.relevance,
        "contexts": case.contexts,
        "assertions": case.assertions,
        "unanswerable": not case.answerable,
    }
    return [kind for kind, part in is_there.items() if part]


def _notes(result: OtherTestSet) -> Iterator[str]:
    if result.repeated:
        repeats = "repeats" if result.repeated == 1 else "repeat"
        yield f"{counted(result.repeated, 'row')} left out that {repeats} an earlier one"
    yield from result.notes
    used_names = {path.rpartition(".")[2] for path in result.used.values()}
    unexplained = looks_like_gold(result.kept, result.no_gold | used_names)
    for name, field in unexplained.items():
        option = map_option(field, result.kept_at.get(name, name))
        yield f"{name} looks like gold and went to metadata; {option} takes it instead"
    if result.unused:
        types = ", ".join(f"{kind} {number}" for kind, number in result.unused.items())
        many = counted(sum(result.unused.values()), "check")
        yield f"{many} without a counterpart here: kept in metadata.assert ({types})"


def _put(records: Sequence[Mapping[str, Json]], file: Path | None, noun: str, option: str, use: str) -> None:
    """Write what came with the cases if a file is named for it; else report that it is left out."""
    if records and file is not None:
        write_records(file, records)
        click.echo(f"{file}: {counted(len(records), noun)}; {use}", err=True)
    elif records:
        click.echo(f"{counted(len(records), noun)} left out; {option} FILE keeps them", err=True)
