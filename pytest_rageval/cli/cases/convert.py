"""`rageval cases convert`: test sets of other tools as a case file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click

from pytest_rageval.cases.exchange.formats import READERS, Parts, read_other
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_text
from pytest_rageval.model import Json
from pytest_rageval.text import counted


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--from", "form", type=click.Choice(READERS), help="Format of PATH (default: recognised).")
@click.option("--qrels", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Relevance judgements of TREC, for the topics in PATH.")  # fmt: skip
@click.option("--run", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A run of TREC, for the topics in PATH: what a system retrieved.")  # fmt: skip
@click.option("--split", metavar="NAME", help="Split of a folder of BEIR (default: test) or RAGTruth (default: all).")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path),
              help="The case file to write (default: standard output).")  # fmt: skip
@click.option("--answers", metavar="FILE", type=click.Path(path_type=Path),
              help="Write what a system gave, too: a file for --rageval-target answers:FILE.")  # fmt: skip
@click.option("--labels", metavar="FILE", type=click.Path(path_type=Path),
              help="Write what people said of answers, too (RAGTruth): a file for `rageval calibrate`.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace files that are there already.")
def convert(
    path: Path,
    form: str | None,
    qrels: Path | None,
    run: Path | None,
    split: str | None,
    output: Path | None,
    answers: Path | None,
    labels: Path | None,
    *,
    force: bool,
) -> None:
    """Convert PATH to a case file: a test set of Ragas, DeepEval or promptfoo (JSON, JSONL, CSV or Parquet), of SQuAD
    or TREC, or a folder of BEIR or RAGTruth.

    Questions, references, contexts, relevant ids and labels take the names that they have here; what else there is
    goes into `metadata`. Where PATH cannot be read, nothing is written.
    """
    for target in (output, answers, labels):
        if target is not None and target.suffix != ".jsonl":
            raise SettingsError(f"{target}: what is written is JSON lines; choose a name that ends with .jsonl")
        if target is not None and target.exists() and not force:
            raise SettingsError(f"{target}: there already; choose another name, or replace it with --force")
    result = read_other(path, path.as_posix(), form, Parts(qrels, run, split))
    if output is None:
        click.echo(_lines(result.cases), nl=False)
    else:
        _write(output, result.cases)
        click.echo(f"{output}: {counted(len(result.cases), 'case')}")
    _put(result.answers, answers, "answer", "--answers", f"score them with --rageval-target answers:{answers}")
    _put(result.labels, labels, "label", "--labels", f"rageval calibrate {labels}")
    if result.repeated:
        click.echo(
            f"{counted(result.repeated, 'row')} left out that repeat{'s' * (result.repeated == 1)} an earlier one",
            err=True,
        )
    for note in result.notes:
        click.echo(note, err=True)
    if result.unused:
        click.echo(f"{counted(result.unused, 'check')} without a counterpart here: kept in metadata.assert", err=True)


def _put(records: Sequence[Mapping[str, Json]], file: Path | None, noun: str, option: str, use: str) -> None:
    """Write what stood beside the cases where a file is named for it; else say that it is left out."""
    if records and file is not None:
        _write(file, records)
        click.echo(f"{file}: {counted(len(records), noun)}; {use}", err=True)
    elif records:
        click.echo(f"{counted(len(records), noun)} left out; {option} FILE keeps them", err=True)


def _write(file: Path, records: Iterable[Mapping[str, Json]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, _lines(records))


def _lines(records: Iterable[Mapping[str, Json]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
