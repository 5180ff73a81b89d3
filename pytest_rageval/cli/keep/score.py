"""`rageval score RUN`: a stored run scored again, from what was observed."""

from __future__ import annotations

from typing import Any

import click

from pytest_rageval.cli.decided_again import deciding, deciding_options
from pytest_rageval.cli.earlier_names import CommandOnRun
from pytest_rageval.cli.exit_codes import exit_codes
from pytest_rageval.cli.progress import Progress
from pytest_rageval.cli.stored_run import opened, run_argument
from pytest_rageval.rescore.rescore import Redo, check_observed, redo
from pytest_rageval.rescore.rescore_plan import config_again, plan_again
from pytest_rageval.text import names_of


@click.command(cls=CommandOnRun)
@run_argument
@click.option("--metrics", metavar="NAMES", help="Metrics or layers to score beside those of the run, comma-separated.")
@deciding_options
@exit_codes({1: "a case or a gate of the run fails"})
def score(run: str, reports: str | None, baseline: str | None, metrics: str | None, **options: Any) -> None:
    """Score RUN (an id, `latest`, `latest~1` or a folder) again from its observations, with the judgements that it has:
    records, verdicts, metrics.json and summary.md are rewritten together. Nothing is asked or judged."""
    shared = deciding(options, changes_scores=["--metrics"] if metrics else [])
    at = opened(run, reports=reports, baseline=baseline)
    if shared.aggregate_only:
        shared.end_with_aggregates(at)
    check_observed(at.run)
    plan = plan_again(at.run, at.settings, at.root, metrics=names_of(metrics))
    labels = shared.labels(at)
    config = config_again(at.run, plan, **(labels.changed if labels else {}))
    with Progress("scored") as watch:
        how = Redo(at.run, plan, config, at.baseline, labels=labels.cases if labels else None, watch=watch)
        finished = redo(how, labels.applied if labels else None)
    shared.end(finished, plan, at)
