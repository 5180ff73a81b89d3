"""`rageval cases export`: cases, and answers, as test sets of other tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from pytest_rageval.cases.exchange.formats import WRITERS
from pytest_rageval.cli.cases.case_paths import PATHS, case_files, sound_cases
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.model import Answer, EvalCase
from pytest_rageval.targets.answer_files import load_answers
from pytest_rageval.targets.answers_target import AnswersTarget
from pytest_rageval.text import counted, printable


@click.command("export")
@PATHS
@click.option("--to", "form", type=click.Choice([*WRITERS]), required=True, help="What to write.")
@click.option("-o", "--output", metavar="DIR", default=".", type=click.Path(file_okay=False, path_type=Path),
              help="Folder for the files (default: this one).")  # fmt: skip
@click.option("--answers", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Answers to put beside the cases: a file as for --rageval-target answers:FILE.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace files that are there already.")
def export_cases(paths: Sequence[Path], form: str, output: Path, answers: Path | None, *, force: bool) -> None:
    """Write cases as a test set of another tool.

    PATHS are files or folders; without any, the files that `cases` in the configuration names. What a format has no
    field for is kept in one named `rageval`, if it has room for that, so that `rageval cases convert` brings it back;
    what it has no room for is said.
    """
    cases = _with_unique_ids(sound_cases(case_files(paths)))
    given = _answers_by_id(answers, cases) if answers is not None else {}
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


def _with_unique_ids(cases: Sequence[EvalCase]) -> list[EvalCase]:
    """An id that stands in several files is given its file before it."""
    counts = Counter(case.id for case in cases)
    return [case if counts[case.id] == 1 else replace(case, id=case.key) for case in cases]


def _answers_by_id(path: Path, cases: Sequence[EvalCase]) -> dict[str, Answer]:
    target = AnswersTarget(load_answers(path, shown_as=path.as_posix()))
    return {case.id: answer for case in cases if (answer := target.of(case)) is not None}
