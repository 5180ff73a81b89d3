"""`rageval history`: every run's metrics over time, and the changes of configuration in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import click

from pytest_rageval.cli.options import FORM_JSON, REPORTS, echo_json
from pytest_rageval.cli.output import columns, echo_view
from pytest_rageval.config.project import find_project
from pytest_rageval.export.csv_format import Cell, csv_line
from pytest_rageval.render.text.columns import shortened
from pytest_rageval.render.text.view_text import table_width
from pytest_rageval.runs.aggregate import OUTCOMES
from pytest_rageval.runs.history import PastRun, UnreadableFolder, by_dataset, check_metrics, read_history
from pytest_rageval.text import counted, printable
from pytest_rageval.views.history import change_words, history_view, runs_table

WATCHED = (
    "recall_any@k",
    "recall_all@k",
    "mrr",
    "scope_miss",
    "groundedness",
    "correctness",
    "abstention_accuracy",
    "citation_recall",
    "key_fact_recall",
    "hallucinated",
    "error_rate",
)
"""Default metrics of the table, as far as there is room and any run has them."""
SHOWN = 20
"""Runs in the table without --last."""
LINE = 500
"""Columns of a line about a run that is left out."""


@click.command()
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Show this metric (repeatable). `recall_any` means each run's own k.",
)
@click.option("--last", metavar="N", type=click.IntRange(1), help=f"Only the last N runs (table: {SHOWN} by default).")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@FORM_JSON
@REPORTS
def history(metrics: tuple[str, ...], last: int | None, form: str, reports: str | None) -> None:
    """Show the metrics of all finished runs in time, grouped by the cases that they were run with, and below each run
    what was configured otherwise than in the one before.
    """
    folder = find_project({"reports": reports}).reports
    runs, skipped = read_history(folder)
    check_metrics(runs, metrics)
    shown = runs
    if last is not None:
        shown = runs[-last:]
    elif form == "table":
        shown = runs[-SHOWN:]
    for folder_name, reason in skipped:
        click.echo(shortened(printable(f"left out: {folder_name}: {reason}"), LINE), err=True)
    if form == "json":
        commands = ["rageval compare latest~1 latest"] if len(runs) > 1 else ["rageval run"]
        echo_json(_as_json(shown, skipped, metrics), commands, indent=1)
    elif form == "csv":
        for line in _csv(shown, metrics):
            click.echo(line)
    elif not shown:
        click.echo(f"{printable(str(folder / 'runs'))} holds no finished runs")
    else:
        names = metrics or _fitting(shown, columns())
        for number, group in enumerate(by_dataset(shown)):
            if number:
                click.echo()
            echo_view(history_view(group, names))
        if last is None and len(shown) < len(runs):
            earlier = counted(len(runs) - len(shown), "earlier run")
            click.echo(f"\n{earlier}; --last {len(runs)} shows all")


def _fitting(runs: Sequence[PastRun], width: int) -> list[str]:
    """Return as many of the watched metrics as a line has room for."""
    room = width - table_width(runs_table(runs, ()))
    names = []
    for name in WATCHED:
        if any(run.value(name) is not None for run in runs):
            room -= 2 + len(name)
            if room < 0:
                break
            names.append(name)
    return names


# ── for programs ──────────────────────────────────────────────────────────────────────────────────────────────


def _as_json(runs: Sequence[PastRun], skipped: Sequence[UnreadableFolder], metrics: Sequence[str]) -> dict[str, Any]:
    return {
        "schema": 1,
        "runs": [_run_as_json(run, metrics) for run in runs],
        "skipped": [folder._asdict() for folder in skipped],
    }


def _run_as_json(run: PastRun, metrics: Sequence[str]) -> dict[str, Any]:
    """Return a run with these metrics, or with all that it has."""
    return {
        "run_id": run.run_id,
        "timestamp": run.timestamp,
        "description": run.description,
        "dataset_version": run.dataset_version,
        "dataset_hash": run.dataset_hash,
        "partial": run.is_partial,
        "k": run.k,
        "total_tests": run.total,
        "outcomes": run.outcomes,
        "flaky": run.flaky,
        "overall_score": run.overall,
        "metrics": {name: run.value(name) for name in metrics} if metrics else run.metrics,
        "changes": [setting._asdict() for setting in run.changes],
    }


def _csv(runs: Sequence[PastRun], metrics: Sequence[str]) -> Iterator[str]:
    fields = ("run_id", "timestamp", "dataset_version", "dataset_hash", "partial", "total_tests", *OUTCOMES)
    measured = metrics or dict.fromkeys(chain.from_iterable(run.metrics for run in runs))
    names = [name for name in measured if name != "overall_score"]
    yield csv_line([*fields, "overall_score", *names, "changes", "description"])
    for run in runs:
        cells: list[Cell] = [run.run_id, run.timestamp, run.dataset_version, run.dataset_hash, run.is_partial]
        cells.append(run.total)
        cells += [run.outcomes.get(name, 0) for name in OUTCOMES]
        cells.append(run.overall)
        cells += [run.value(name) for name in names]
        changes = "; ".join(map(change_words, run.changes))
        yield csv_line([*cells, changes, run.description])
