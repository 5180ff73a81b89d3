"""`rageval merge RUN RUN…`: one run from the runs of its shards."""

from __future__ import annotations

from functools import partial

import click

from pytest_rageval.cases.project_cases import readable_cases
from pytest_rageval.cli.options import REPORTS, as_taken_by, exit_codes
from pytest_rageval.cli.stored_run import end
from pytest_rageval.comparison.baseline import project_baseline
from pytest_rageval.config.project import find_project
from pytest_rageval.rescore.merge import check_parts
from pytest_rageval.rescore.merge import merge as merge_runs
from pytest_rageval.runs.reader import open_stored_run
from pytest_rageval.runs.stored_plan import plan_of, settings_of


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option("--run-id", metavar="ID", help="Name of the merged run's folder (default: the UTC time).")
@REPORTS
@click.option("--baseline", metavar="PATH", help="Baseline to compare with (default: REPORTS/baseline.json).")
@click.option("--update-baseline", is_flag=True, help="Accept the merged run as the new baseline.")
@exit_codes({1: "a case or a gate of the whole run fails"})
def merge(runs: tuple[str, ...], **options: object) -> None:
    """Merge RUNs (ids or folders) of shards into one, equal to the run that was never divided."""
    project = find_project({name: value for name, value in options.items() if value})
    parts = [open_stored_run(project.reports, run, project.baseline_file) for run in runs]
    check_parts(parts, readable_cases(project))
    baseline = project_baseline(project)
    plan = plan_of(parts[0], settings_of(parts[0], project.settings), project.root)
    finished = merge_runs(parts, plan, project.reports, baseline, project.baseline_file.name)
    end(finished, plan, project.baseline_file, partial(as_taken_by, click.get_current_context().command))
