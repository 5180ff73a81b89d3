"""`rageval abstention RUN`: the abstentions of a stored run scored again, from what was observed."""

from __future__ import annotations

from typing import Any

import click

from pytest_rageval.cli.decided_again import deciding, deciding_options
from pytest_rageval.cli.earlier_names import CommandOnRun
from pytest_rageval.cli.exit_codes import exit_codes
from pytest_rageval.cli.progress import Progress
from pytest_rageval.cli.stored_run import opened, run_argument
from pytest_rageval.metrics.registry import Measure
from pytest_rageval.rescore.recorded_measures import is_described_measure
from pytest_rageval.rescore.rescore import Redo, check_observed, redo
from pytest_rageval.rescore.rescore_plan import config_again, plan_again


@click.command(cls=CommandOnRun)
@run_argument
@deciding_options
@exit_codes({1: "a case or a gate of the run fails"})
def abstention(run: str, reports: str | None, baseline: str | None, **options: Any) -> None:
    """Score the abstention layer of RUN (an id, `latest`, `latest~1` or a folder) again from its observations; also
    where the run had not scored it. All other scores stay as recorded, unless --cases brings new labels; verdicts,
    metrics.json and summary.md follow."""
    shared = deciding(options)
    at = opened(run, reports=reports, baseline=baseline)
    if shared.aggregate_only:
        shared.end_with_aggregates(at)
    check_observed(at.run)
    plan = plan_again(at.run, at.settings, at.root, metrics=("abstention",))
    labels = shared.labels(at)
    config = config_again(at.run, plan, **(labels.changed if labels else {}))
    # Scores by the old labels must not stand beside those by the new ones.
    stays = is_described_measure if labels else _is_of_another_layer
    with Progress("scored") as watch:
        cases = labels.cases if labels else None
        how = Redo(at.run, plan, config, at.baseline, stays=stays, labels=cases, watch=watch)
        finished = redo(how, labels.applied if labels else None)
    shared.end(finished, plan, at)


def _is_of_another_layer(measure: Measure) -> bool:
    return measure.metric.layer != "abstention"
