"""`rageval score RUN`: a stored run scored again, from what was observed."""

from __future__ import annotations

from typing import Any

import click

from pytest_rageval.cli.decided_again import deciding, deciding_options
from pytest_rageval.cli.earlier_names import CommandOnRun
from pytest_rageval.cli.exit_codes import exit_codes
from pytest_rageval.cli.stored_run import opened, run_argument
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
    shared.score_again(opened(run, reports=reports, baseline=baseline), names_of(metrics))
