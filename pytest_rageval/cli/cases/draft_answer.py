"""`rageval cases draft`: a bad answer of a run, as a draft of a case."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_rageval.cases.drafts import ENDING, add_drafts, check_is_drafts
from pytest_rageval.compare.case_diff import representative_trial
from pytest_rageval.config.project import find_project
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.line_index import record_at
from pytest_rageval.io.masking import Mask
from pytest_rageval.runs.disk.reader import open_stored_run
from pytest_rageval.text import printable
from pytest_rageval.workbench.answer_draft import answer_draft, drafts_file_of


@click.command("draft")
@click.argument("run")
@click.argument("case")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path),
              help=f"The file of drafts to add to (default: the one beside the case's file, X{ENDING}).")  # fmt: skip
@click.option("--reports", metavar="DIR", help="Folder of runs (default: as configured).")
def draft_answer(run: str, case: str, output: Path | None, reports: str | None) -> None:
    """Draft a case from the answer to CASE (its key or id) in RUN: question, bad answer, what it cited, no gold.

    Drafts stand in a file that no run asks, until somebody labels them. A question that is there already is left out.
    """
    project = find_project({"reports": reports})
    stored = open_stored_run(project.reports, run, project.baseline_file)
    key = stored.find(case)["case_key"]
    records = {trial: record_at(place) for (name, trial), place in stored.record_places().items() if name == key}
    record = representative_trial(records)
    place = stored.observation_places().get((key, record["trial"]))
    draft = answer_draft(record, record_at(place) if place else None, stored.run_id)
    if draft is None:
        raise SettingsError(f"run {stored.run_id} keeps no texts (redact): there is no question to draft a case from")
    path = output or project.root / drafts_file_of(record)
    check_is_drafts(path)
    added = add_drafts(path, [Mask(project.settings.secrets()).value(draft)])
    what = f"a new draft, {draft['id']}; no run asks it before it is labelled" if added else "nothing new"
    click.echo(printable(f"{path}: {what}"))
