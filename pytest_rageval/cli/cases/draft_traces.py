"""`rageval cases from-traces`: answers that people disliked, as drafts of cases."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_rageval.cases.drafts import ENDING, add_drafts, check_is_drafts
from pytest_rageval.cli.cases.answers import read_traced
from pytest_rageval.config.project import find_project
from pytest_rageval.io.masking import Mask
from pytest_rageval.text import counted, printable
from pytest_rageval.workbench.traces.spans import FORMATS
from pytest_rageval.workbench.traces.trace_answers import drafts_of


@click.command("from-traces")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="Who wrote FILE.")
@click.option("--feedback", type=click.Choice(["down", "up"]), default="down", show_default=True,
              help="What people said of the answers.")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path),
              help=f"The file of drafts to add to (default: FILE's name with {ENDING}).")  # fmt: skip
def draft_traces(file: Path, form: str, feedback: str, output: Path | None) -> None:
    """Draft cases from the traces in FILE whose answers people disliked: question, bad answer, what it cited, no gold.

    Drafts stand in a file that no run asks, until somebody labels them. A question that is there already is left out.
    """
    path = output or file.with_name(f"{file.name.removesuffix(file.suffix)}{ENDING}")
    check_is_drafts(path)
    traced = read_traced(file, form)
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
