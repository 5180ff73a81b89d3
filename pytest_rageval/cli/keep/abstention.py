"""`rageval abstention RUN`: the abstentions of a stored run scored again, from what was observed."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_rageval.cli.end_of_run import end
from pytest_rageval.cli.progress import Progress
from pytest_rageval.cli.stored_run import opened, run_argument
from pytest_rageval.io.atomic import write_json
from pytest_rageval.metrics.registry import Measure
from pytest_rageval.rescore.rescore import Redo, check_observed, redo
from pytest_rageval.rescore.rescore_plan import config_again, plan_again


@click.command()
@run_argument
@click.option("--output-metrics", type=click.Path(path_type=Path), metavar="FILE", help="Write metrics.json here too.")
def abstention(run: str, reports: str | None, baseline: str | None, output_metrics: Path | None) -> None:
    """Score the abstention layer of RUN (an id, `latest`, `latest~1` or a folder) again from its observations; also
    where the run had not scored it. All other scores stay as recorded; verdicts, metrics.json and summary.md follow.
    Exit code 1: a case or a gate of the run fails."""
    at = opened(run, reports=reports, baseline=baseline)
    check_observed(at.run)
    plan = plan_again(at.run, at.settings, at.root, metrics=("abstention",))
    with Progress("scored") as watch:
        config = config_again(at.run, plan)
        finished = redo(Redo(at.run, plan, config, at.baseline, stays=_is_of_another_layer, watch=watch))
    if output_metrics is not None:
        write_json(output_metrics, finished.metrics)
    end(finished, plan, at.project.baseline_file)


def _is_of_another_layer(measure: Measure) -> bool:
    return measure.metric.layer != "abstention"
