"""`rageval explain RUN CASE`: one case of a run, everything."""

from __future__ import annotations

import click

from pytest_rageval.config.project import find_project
from pytest_rageval.report.explain import explanation
from pytest_rageval.runs.disk.reader import open_stored_run
from pytest_rageval.runs.stored_plan import plan_of


@click.command()
@click.argument("run")
@click.argument("case")
@click.option("--reports", metavar="DIR", help="Folder of runs (default: as configured).")
def explain(run: str, case: str, reports: str | None) -> None:
    """Explain CASE (an id or key) of RUN (an id, `latest`, `latest~1` or a folder): gold, what came, every metric's
    arithmetic and every gate."""
    project = find_project({"reports": reports})
    stored = open_stored_run(project.reports, run, project.baseline_file)
    record = stored.find(case)
    plan = plan_of(stored, project.settings, project.root)
    if stored.state == "interrupted":
        cases = len({key for key, _ in stored.record_places()})
        click.echo(
            f"run {stored.run_id} was interrupted: it has results of {cases} cases; --rageval-resume finishes it",
            err=True,
        )
    for line in explanation(record, stored.observation(record["case_key"]), plan):
        click.echo(line)
