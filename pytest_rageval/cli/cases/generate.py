"""`rageval generate`: drafts of cases from a folder of notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from pytest_rageval.cases import find_case_files, load_file
from pytest_rageval.cases.drafts import add_drafts, check_is_drafts, drafts_in
from pytest_rageval.cases.notes.note_folder import NoteFolder
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import SettingsError
from pytest_rageval.llm.budget import Budget
from pytest_rageval.llm.chat_model import ChatModel
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.model_spec import chat_model
from pytest_rageval.text import counted, printable
from pytest_rageval.workbench.generate.draft import Draft, NotePassage, Sifted, sift
from pytest_rageval.workbench.generate.model_drafts import ModelDrafts
from pytest_rageval.workbench.generate.note_questions import questions_in

REPLIES = ".drafts.replies"
"""What the name of the file of kept replies ends with; no case file has such a name."""


@click.command()
@click.argument("docs", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path),
              help="The file of drafts to add to (default: evalcases/DOCS.drafts.jsonl).")  # fmt: skip
@click.option("--llm", metavar="SPEC", help="Ask a model, too: openai:MODEL, openai:MODEL@URL, anthropic:MODEL …")
@click.option("--questions", "most", default=3, show_default=True, type=click.IntRange(1, 20), metavar="N",
              help="Questions a section at most, of the model.")  # fmt: skip
@click.option("--max-cost", metavar="USD", type=click.FloatRange(min=0, min_open=True),
              help="US dollars after which the model is not asked any more.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what asking the model would cost, and stop.")
def generate(
    docs: Path, output: Path | None, llm: str | None, most: int, max_cost: float | None, *, dry_run: bool
) -> None:
    """Draft cases from the notes in DOCS: from `Q: … A: …`, from headings that are questions and, with --llm, from
    what a model asks about each section.

    What a draft quotes must stand in its section, else it is dropped; so is one that asks nearly what a case or another
    draft asks. No run asks drafts: accept them one by one into a case file. Asking a model says before what it may
    cost; stopped at any point, the same command goes on where it was, and pays nothing twice.
    """
    project = find_project()
    path = output or project.root / "evalcases" / f"{docs.resolve().name}.drafts.jsonl"
    check_is_drafts(path)
    there = [case.question for case in drafts_in(path)] + _questions(project)
    notes = NoteFolder(docs)
    passages = [
        NotePassage(rel_path, section)
        for rel_path in notes.rel_paths
        for section in notes.sections(rel_path) or ()
        if section.text.strip()
    ]
    if not passages:
        raise SettingsError(f"{docs}: no notes there; what is read are .md, .markdown and .txt files with text")
    click.echo(f"{counted(len(passages), 'section')} in {printable(str(docs))}")
    drafts = [draft for passage in passages for draft in questions_in(passage)]
    if llm is not None:
        asking = _asking(project, llm, path, most, max_cost)
        _say_before(asking, passages)
        if dry_run:
            return
        drafts += _drafted(asking, passages)
    elif dry_run:
        click.echo("nothing is asked of a model without --llm")
        return
    _keep(path, sift(drafts, notes, there))


def _questions(project: Project) -> list[str]:
    """The questions of all case files of the project, as far as these can be read."""
    files = find_case_files(project.root, project.settings.cases)
    return [case.question for path in files for case in load_file(path, project.root).cases]


def _asking(project: Project, spec: str, path: Path, most: int, max_cost: float | None) -> ModelDrafts:
    settings = project.settings
    options = EndpointOptions(
        timeout=settings.timeout, retries=settings.retries, concurrency=settings.judge_concurrency,
        requests_per_minute=settings.judge_requests_per_minute, tokens_per_minute=settings.judge_tokens_per_minute,
    )  # fmt: skip
    model = _model(spec, options)
    if max_cost is not None:
        if not model.tariff.is_known:
            raise SettingsError(f"--max-cost: the price of {model.model!r} is not known; leave it out")
        model = _model(spec, replace(options, budget=Budget(max_cost)))
    replies = path.with_name(path.name.removesuffix(".drafts.jsonl") + REPLIES)
    return ModelDrafts(model, replies, most=most, concurrency=settings.judge_concurrency)


def _model(spec: str, options: EndpointOptions) -> ChatModel:
    try:
        return chat_model(spec, options)
    except SettingsError as error:
        raise SettingsError(*(f"--llm: {problem}" for problem in error.problems)) from None


def _say_before(asking: ModelDrafts, passages: Sequence[NotePassage]) -> None:
    requests, dollars = asking.estimate(passages)
    cost = "at a price that is not known" if dollars is None else f"about ${dollars:.4f}"
    click.echo(f"asking the model: {counted(requests, 'request')}, {cost}", err=True)


def _drafted(asking: ModelDrafts, passages: Sequence[NotePassage]) -> Iterator[Draft]:
    yield from asking.drafts(passages)
    spent = asking.spent
    cost = "cost unknown" if spent.dollars is None else f"${spent.dollars:.4f}"
    kept = f", {spent.kept} kept from before" if spent.kept else ""
    unreadable = f", {spent.unreadable} unreadable" if spent.unreadable else ""
    click.echo(f"the model: {counted(spent.requests, 'request')}, {cost}{kept}{unreadable}", err=True)
    if spent.stopped is not None:
        click.echo(printable(f"stopped: {spent.stopped}; the same command goes on from here"), err=True)


def _keep(path: Path, sifted: Sifted) -> None:
    added = add_drafts(path, [draft.record() for draft in sifted.drafts])
    if sifted.not_in_text:
        click.echo(f"{counted(sifted.not_in_text, 'draft')} dropped: what they quote is not in their section")
    if sifted.repeated:
        click.echo(f"{counted(sifted.repeated, 'draft')} dropped: asked already, or nearly")
    if added:
        here = Path.cwd()
        shown = path.relative_to(here) if path.is_relative_to(here) else path
        click.echo(printable(f"{shown}: {counted(added, 'new draft')}; no run asks them before they are accepted"))
    else:
        click.echo("no new drafts")
