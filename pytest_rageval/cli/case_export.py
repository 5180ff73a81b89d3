"""`rageval cases export`: cases as a test set of another tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from pytest_rageval.cases.conversations import alone
from pytest_rageval.cases.exchange.formats import WRITERS
from pytest_rageval.cases.project_cases import sound_cases
from pytest_rageval.cli.case_files import PATHS, case_files
from pytest_rageval.cli.options import EXISTING_FILE, FORCE, output_option
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.model import Answer, EvalCase
from pytest_rageval.targets.answer_files import load_answers
from pytest_rageval.targets.answers_target import AnswersTarget
from pytest_rageval.text import counted, printable


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
    help="Answers to export with the cases: a file as for --rageval-target answers:FILE.",
)
@FORCE
def export_cases(paths: Sequence[Path], form: str, output: Path, answers: Path | None, *, force: bool) -> None:
    """Write cases as a test set of another tool.

    PATHS are files or folders; without any, the files that `cases` in the configuration names. Fields without a
    counterpart are kept in a field named `rageval`, which `rageval cases convert` reads back. A format without room
    for it draws a warning.
    """
    cases = [alone(case) for case in _with_unique_ids(sound_cases(case_files(paths)))]
    given = {} if answers is None else _answers_of(cases, answers)
    written = WRITERS[form](cases, given)
    places = {output / name: lines for name, lines in written.files.items()}
    taken = [str(path) for path in places if path.exists()]
    if taken and not force:
        raise SettingsError(
            f"{', '.join(taken)}: there already; choose another folder with -o, or replace with --force"
        )
    for path, lines in places.items():
        write_lines(path, lines)
        click.echo(printable(str(path)))
    for note in written.notes:
        click.echo(printable(note), err=True)
    counts = counted(len(cases), "case")
    if answers:
        counts += f", {counted(len(given), 'answer')}"
    click.echo(counts)


def _with_unique_ids(cases: Sequence[EvalCase]) -> list[EvalCase]:
    """Return the cases; an id that several files have is prefixed by its file."""
    counts = Counter(case.id for case in cases)
    return [case if counts[case.id] == 1 else replace(case, id=case.key) for case in cases]


def _answers_of(cases: Sequence[EvalCase], file: Path) -> dict[str, Answer]:
    """Return the answers of a file by the id of their case."""
    target = AnswersTarget(load_answers(file, shown_as=file.as_posix()))
    answers: dict[str, Answer] = {}
    for case in cases:
        answer = target.of(case)
        if answer is not None:
            answers[case.id] = answer
    return answers
