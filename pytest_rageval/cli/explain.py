"""`rageval explain RUN CASE`: everything about one case of a run."""

from __future__ import annotations

import shlex
from operator import itemgetter

import click

from pytest_rageval.cases.gold_places import wide_golds
from pytest_rageval.cases.note_folder import NoteFolder
from pytest_rageval.cli.options import FORM_JSON, REPORTS, echo_json
from pytest_rageval.cli.output import columns
from pytest_rageval.cli.stored_run import open_run, tell_damage
from pytest_rageval.errors import SettingsError
from pytest_rageval.render.html.case_view import conversation_turns, recorded_case_of
from pytest_rageval.render.markdown.case_markdown import case_markdown, conversation_markdown
from pytest_rageval.render.text.explain import Explained, Form, conversation_lines, explanation
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.stored_plan import plan_of, settings_of
from pytest_rageval.text import counted
from pytest_rageval.views.case_before import case_before, failed_gate_lines
from pytest_rageval.views.conversation import conversation_view

FORMATS = ("text", "markdown", "json")
WIDTH = 160
"""Columns of the output in a file."""


@click.command()
@click.argument("run")
@click.argument("case")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="markdown: what the page's copy gives; json: the record, and the observation that it was made of.",
)
@FORM_JSON
@click.option("--full", "is_full", is_flag=True, help="Show texts of answer and chunks in full, not their first lines.")
@REPORTS
def explain(run: str, case: str, form: str, is_full: bool, reports: str | None) -> None:
    """Explain CASE (an id or key) of RUN (an id, `latest`, `latest~1` or a folder): failed gates, gold, answer, chunks,
    the run before, claims, every metric's arithmetic and every gate. The id of a conversation shows all its turns.
    """
    project, stored = open_run(run, reports=reports)
    try:
        record = stored.find(case)
    except SettingsError:
        unit = stored.conversation(case)
        if unit is None:
            raise
        tell_damage(stored)
        _explain_conversation(stored, unit, form, is_full=is_full)
        return
    tell_damage(stored)
    if stored.state == "interrupted":
        keys = {key for key, _ in stored.record_places()}
        results = f"it has results of {counted(len(keys), 'case')}"
        click.echo(f"run {stored.run_id} was interrupted: {results}; --rageval-resume finishes it", err=True)
    plan = plan_of(stored, settings_of(stored, project.settings), project.root)
    explained = recorded_case_of(stored, record, plan.registry, project.baseline_file, plan)
    if form == "json":
        content = {"schema": 1, "run": stored.run_id, "record": explained.record, "observation": explained.observation}
        echo_json(content, [f"rageval report {shlex.quote(stored.run_id)}"], indent=1)
    elif form == "markdown":
        click.echo(case_markdown(explained.view), nl=False)
    else:
        observation = stored.observation(record["case_key"], explained.record["trial"])
        shown = Explained(
            explained.view,
            observation,
            failed_gates=list(failed_gate_lines(explained.record, explained.new_gates)),
            before=case_before(explained.before),
        )
        for line in explanation(shown, Form(columns(WIDTH), is_full)):
            click.echo(line)
        notes = plan.place_rules.notes
        if observation is not None and isinstance(notes, NoteFolder):
            for wide in wide_golds(observation.case, notes):
                covered = f"{wide.sections} sections, the whole note"
                click.echo(f"\ngold {wide.gold + 1} covers {covered}: any of them is a hit")


def _explain_conversation(run: StoredRun, unit: str, form: str, *, is_full: bool) -> None:
    """Print all turns of a conversation of a run, from its key."""
    turns = conversation_turns(run, unit)
    conversation = conversation_view(turns, unit.rpartition("::")[2])
    if form == "json":
        content = {"schema": 1, "run": run.run_id, "conversation": conversation.id, "broke_at": conversation.broke_at}
        keys = {turn.key for turn in turns}
        records = sorted((record for record in run.records() if record["case_key"] in keys), key=itemgetter("turn"))
        echo_json({**content, "records": records}, [f"rageval report {shlex.quote(run.run_id)}"], indent=1)
    elif form == "markdown":
        click.echo(conversation_markdown(conversation), nl=False)
    else:
        for line in conversation_lines(conversation, Form(columns(WIDTH), is_full)):
            click.echo(line)
