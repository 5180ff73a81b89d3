"""`rageval abstention RUN`: the abstentions of a stored run scored again, from what was observed."""

from __future__ import annotations

from typing import Any

import click

from pytest_rageval.cli.decided_again import deciding, deciding_options
from pytest_rageval.cli.earlier_names import CommandOnRun
from pytest_rageval.cli.exit_codes import exit_codes
from pytest_rageval.cli.stored_run import opened, run_argument
from pytest_rageval.metrics.registry import Measure


@click.command(cls=CommandOnRun)
@run_argument
@deciding_options
@exit_codes({1: "a case or a gate of the run fails"})
def abstention(run: str, reports: str | None, baseline: str | None, **options: Any) -> None:
    """Score the abstention layer of RUN (an id, `latest`, `latest~1` or a folder) again from its observations; also
    where the run had not scored it. All other scores stay as recorded, unless --cases brings new labels; verdicts,
    metrics.json and summary.md follow."""
    at = opened(run, reports=reports, baseline=baseline)
    deciding(options).score_again(at, ("abstention",), stays=_is_of_another_layer)


def _is_of_another_layer(measure: Measure) -> bool:
    return measure.metric.layer != "abstention"
