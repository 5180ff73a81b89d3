"""`rageval generate`: drafts of cases from a folder of notes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import click

from pytest_rageval.cases.drafts import add_drafts, check_is_drafts, drafts_in
from pytest_rageval.cases.note_folder import NoteFolder
from pytest_rageval.cases.project_cases import readable_cases
from pytest_rageval.cli.drafting_model import (
    MAX_COST,
    asked_model,
    cost_in_words,
    exit_after,
    spent_as_json,
    stored_replies,
    tell_spent,
    this_command,
)
from pytest_rageval.cli.generate_conversations import conversations
from pytest_rageval.cli.options import FOLDER, JSON, STOPPED, echo_json, exit_codes, output_option
from pytest_rageval.cli.output import from_here
from pytest_rageval.cli.verb_with_parts import VerbWithParts
from pytest_rageval.config.project import find_project
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.masking import Mask
from pytest_rageval.make.asked_once import AskedOnce, Spent
from pytest_rageval.make.follow_ups import FollowUps, NewDrafts
from pytest_rageval.make.generate import Draft, NotePassage, questions_in, sift
from pytest_rageval.make.model_drafts import ModelDrafts
from pytest_rageval.providers import FORMS
from pytest_rageval.text import counted, printable


@click.command(cls=VerbWithParts)
@click.argument("docs", type=FOLDER)
@output_option("The file of drafts to add to (default: evalcases/DOCS.drafts.jsonl).")
@click.option("--llm", metavar="SPEC", help=f"Ask a model, too: {', '.join(FORMS)}.")
@click.option(
    "--questions",
    "most",
    default=3,
    show_default=True,
    type=click.IntRange(1, 20),
    metavar="N",
    help="Questions a section at most, of the model.",
)
@click.option("--follow-ups", is_flag=True, help="Ask the model for two follow-ups of each new question, too.")
@MAX_COST
@click.option("--dry-run", is_flag=True, help="Say what asking the model would cost, and stop.")
@JSON
@exit_codes(
    {
        1: "the model stopped answering, or --max-cost is spent;"
        " what was drafted is kept, and the same command goes on",
        STOPPED: "interrupted; what was drafted is kept, and the same command goes on",
    }
)
def generate(
    docs: Path,
    output: Path | None,
    llm: str | None,
    most: int,
    max_cost: float | None,
    *,
    follow_ups: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Draft cases from the notes in DOCS: from `Q: … A: …`, from headings that are questions and, with --llm, from
    what a model asks about each section. With --follow-ups, each new question becomes a conversation.

    What a draft quotes must stand in its section, else it is dropped; so is one that asks nearly what a case or another
    draft asks. No run asks drafts: accept them one by one into a case file. Asking a model says before what it may
    cost; stopped at any point, the same command goes on where it was, and pays nothing twice.
    """
    if follow_ups and llm is None:
        raise click.UsageError("--follow-ups is for a model; name it with --llm")
    project = find_project()
    path = output or project.root / "evalcases" / f"{docs.resolve().name}.drafts.jsonl"
    check_is_drafts(path)
    asked_before = [case.question for case in (*drafts_in(path), *readable_cases(project))]
    notes = NoteFolder(docs)
    passages = _passages(notes)
    if not passages:
        raise SettingsError(f"{docs}: no notes there; what is read are .md, .markdown and .txt files with text")
    click.echo(f"{counted(len(passages), 'section')} in {printable(str(docs))}", err=as_json)
    found = list(chain.from_iterable(map(questions_in, passages)))
    model = None
    if llm is not None:
        replies = stored_replies(path, Mask(project.settings.secrets()))
        model = asked_model(project, "--llm", llm, replies, max_cost)
    drafting = _Drafting(notes, passages, found, asked_before, model, most, has_follow_ups=follow_ups)
    estimate = drafting.tell_estimate()
    if dry_run and model is None:
        click.echo("nothing is asked of a model without --llm", err=as_json)
    drafted = NewDrafts() if dry_run else drafting.draft()
    added = add_drafts(path, drafted.records) if drafted.records else 0
    file = str(from_here(path))
    spent = Spent() if model is None else model.spent
    if as_json:
        dropped = {"not_in_section": drafted.not_in_text, "asked_already": drafted.repeated}
        content = {
            "file": file,
            "sections": len(passages),
            "new_drafts": added,
            "conversations": drafted.conversations,
            "dropped": {**dropped, "no_follow_up": drafted.no_follow_up},
            "waiting": drafted.unasked,
            "estimate": estimate,
            "model": None if model is None else spent_as_json(spent),
            "interrupted": spent.is_interrupted,
        }
        echo_json(content, _next(spent, added, file))
    elif not dry_run:
        _tell_drafted(drafted, added, file)
    exit_after(spent)


@dataclass(frozen=True, slots=True)
class _Drafting:
    """What is drafted from: notes, questions found in them, and the model that is asked, if one is."""

    notes: NoteFolder
    passages: Sequence[NotePassage]
    found: Sequence[Draft]
    asked_before: Sequence[str]
    model: AskedOnce | None
    most: int
    has_follow_ups: bool

    def tell_estimate(self) -> dict[str, float | None] | None:
        """Say what asking the model may take; return it, or None without a model."""
        if self.model is None:
            return None
        requests, dollars = ModelDrafts(self.model, most=self.most).estimate(self.passages)
        more = ""
        if self.has_follow_ups:
            usual = Draft("What does it cost?", self.passages[0], "", "model")
            further, costs = FollowUps(self.model).estimate(self.found, requests * self.most, usual)
            more = f", up to {further:,} of them for follow-ups"
            requests += further
            dollars = None if dollars is None or costs is None else dollars + costs
        click.echo(f"asking the model: {counted(requests, 'request')}{more}, {cost_in_words(dollars)}", err=True)
        return {"requests": requests, "dollars": dollars}

    def draft(self) -> NewDrafts:
        """Draft all there is, until Ctrl-C, the budget or an error of the model's server ends it."""
        drafts = list(self.found)
        if self.model is not None:
            drafts += ModelDrafts(self.model, most=self.most).drafts(self.passages)
        sifted = sift(drafts, self.notes, self.asked_before)
        if self.model is not None and self.has_follow_ups:
            drafted = FollowUps(self.model).conversations(sifted.drafts, self.notes, self.asked_before)
        else:
            drafted = NewDrafts([draft.record() for draft in sifted.drafts])
        drafted.not_in_text += sifted.not_in_text
        drafted.repeated += sifted.repeated
        if self.model is not None:
            tell_spent(self.model.spent)
        return drafted


def _passages(notes: NoteFolder) -> list[NotePassage]:
    """Return the sections of all notes that have a text."""
    passages = []
    for rel_path in notes.rel_paths:
        sections = notes.sections(rel_path) or ()
        passages += [NotePassage(rel_path, section) for section in sections if section.text.strip()]
    return passages


def _next(spent: Spent, added: int, file: str) -> Iterator[str]:
    if spent.has_stopped_early:
        yield this_command()
    if added:
        yield f"rageval label {shlex.quote(file)}"


def _tell_drafted(drafted: NewDrafts, added: int, file: str) -> None:
    if drafted.not_in_text:
        click.echo(f"{counted(drafted.not_in_text, 'draft')} dropped: what they quote is not in their section")
    if drafted.repeated:
        click.echo(f"{counted(drafted.repeated, 'draft')} dropped: asked already, or nearly")
    if drafted.no_follow_up:
        click.echo(f"{counted(drafted.no_follow_up, 'follow-up')} dropped: understood without the question before")
    if drafted.unasked:
        click.echo(f"{counted(drafted.unasked, 'draft')} left out: the model was not asked for follow-ups yet")
    talks = f", {counted(drafted.conversations, 'conversation')} among them" if drafted.conversations else ""
    new = f"{file}: {counted(added, 'new draft')}{talks}; no run asks them before they are accepted"
    click.echo(printable(new) if added else "no new drafts")


generate.add_command(conversations)
