"""`rageval history`: every run's metrics in time, and what was changed in between."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click
from rich.cells import cell_len

from pytest_rageval.cli.options import FORM_JSON, REPORTS, echo_json
from pytest_rageval.config.project import find_project
from pytest_rageval.export.formats import Cell, csv_line
from pytest_rageval.model import Json
from pytest_rageval.numbers import NO_VALUE, change, score_text
from pytest_rageval.render.text.columns import aligned, blocks, shortened
from pytest_rageval.runs.aggregate import OUTCOMES
from pytest_rageval.runs.config_diff import SettingChange, setting_text
from pytest_rageval.runs.history import PastRun, Skipped, by_dataset, check_metrics, read_history
from pytest_rageval.text import counted, printable

OWN_NAME = re.compile(r"\d{8}_\d{6}(_\d+)?")
"""What a run is called where it was given no name: the time says nothing more then."""
COUNTS = ("passed", "failed", "error")
KNOWN = "xfailed"
"""Known failures: a column only where a run has some."""
CHARTED = 12
"""Runs of a chart at most: it may not widen its column by much."""
BARS = "▁▂▃▄▅▆▇█"
WATCHED = ("recall_any@k", "recall_all@k", "mrr", "scope_miss", "groundedness", "correctness", "abstention_accuracy",
           "citation_recall", "key_fact_recall", "hallucinated", "error_rate")  # fmt: skip
"""Metrics of the table where none is asked for, as far as there is room and any run has them."""
WIDEST = 32
LINE = 500


@click.command()
@click.option("--metric", "metrics", multiple=True, metavar="NAME",
              help="Show this metric; repeatable. `recall_any` is that at each run's own k.")  # fmt: skip
@click.option("--last", metavar="N", type=click.IntRange(1), help="Only the last N runs.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@FORM_JSON
@REPORTS
def history(metrics: tuple[str, ...], last: int | None, form: str, reports: str | None) -> None:
    """Show the metrics of all finished runs in time, grouped by the cases that they were run with, and below each run
    what was configured otherwise than in the one before."""
    folder = find_project({"reports": reports}).reports
    runs, skipped = read_history(folder)
    check_metrics(runs, metrics)
    shown = runs if last is None else runs[-last:]
    for folder_name, reason in skipped:
        click.echo(shortened(printable(f"left out: {folder_name}: {reason}"), LINE), err=True)
    if form == "json":
        commands = ["rageval compare latest~1 latest"] if len(runs) > 1 else ["rageval run"]
        echo_json(_as_json(shown, skipped, metrics), commands, indent=1)
    elif form == "csv":
        for line in _csv(shown, metrics):
            click.echo(line.encode())
    elif not shown:
        click.echo(f"{printable(str(folder / 'runs'))} holds no finished runs")
    else:
        width = shutil.get_terminal_size().columns
        for line in _tables(shown, metrics or _fitting(shown, width), width):
            click.echo(line)


# ── table ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _tables(runs: Sequence[PastRun], metrics: Sequence[str], width: int) -> Iterator[str]:
    for number, group in enumerate(by_dataset(runs)):
        if number:
            yield ""
        version = _value(group[-1].dataset_version)
        yield f"cases of version {version}: {counted(len(group), 'run')}"
        yield from _table(group, metrics, width)


def _table(runs: Sequence[PastRun], metrics: Sequence[str], width: int) -> Iterator[str]:
    """The runs of one dataset; below each what was changed, at the end how far the complete ones have come, as a figure
    and as a chart. Columns that have no room stand below, under the same names."""
    for number, block in enumerate(blocks(_rows(runs, metrics), width - 2)):
        head, *lines = aligned(block, indent="  ")
        yield from ["", head] if number else [head]
        for line, run in zip(lines, runs, strict=False):
            yield line
            notes = [*(["partial"] if run.is_partial else []), *map(_change, run.changes)]
            if notes and not number:
                yield f"      {'; '.join(notes)}"
        yield from lines[len(runs) :]


def _rows(runs: Sequence[PastRun], metrics: Sequence[str]) -> list[list[str]]:
    has_names = not all(OWN_NAME.fullmatch(run.run_id) for run in runs)
    counts = {name: name for name in COUNTS}
    if any(run.outcomes.get(KNOWN) for run in runs):
        counts[KNOWN] = "known"
    rows = [["run", "ended (UTC)", *counts.values(), "overall", *map(printable, metrics)]]
    rows += [_row(run, counts, metrics) for run in runs]
    complete = [run for run in runs if not run.is_partial]
    values = [[run.overall for run in complete], *([run.value(name) for run in complete] for name in metrics)]
    blank = [""] * (1 + len(counts))
    if len(complete) > 1:
        rows.append(["first to last", *blank, *map(_way, values)])
    if len(complete) > 2:
        rows.append([f"last {min(len(complete), CHARTED)} runs", *blank, *map(_chart, values)])
    return rows if has_names else [[first, *others] for first, _, *others in rows]


def _row(run: PastRun, names: Iterable[str], metrics: Sequence[str]) -> list[str]:
    counts = [str(run.outcomes.get(name, 0)) for name in names]
    values = [score_text(run.value(name)) for name in metrics]
    ended = run.timestamp[:16].replace("T", " ")
    return [shortened(printable(run.run_id), WIDEST), ended, *counts, score_text(run.overall), *values]


def _way(values: Sequence[float | None]) -> str:
    """How far it is from the first value to the last."""
    numbers = [value for value in values if value is not None]
    return change(numbers[-1] - numbers[0]) if len(numbers) > 1 else NO_VALUE


def _chart(values: Sequence[float | None]) -> str:
    """The last values as bars between the least and the greatest of them; a dot where a run has none."""
    shown = values[-CHARTED:]
    numbers = [value for value in shown if value is not None]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    step = (high - low) / (len(BARS) - 1)
    middle = BARS[len(BARS) // 2]
    return "".join("·" if each is None else BARS[round((each - low) / step)] if step else middle for each in shown)


def _fitting(runs: Sequence[PastRun], width: int) -> list[str]:
    """As many of the watched metrics as a line has room for."""
    room = width - cell_len(aligned(_rows(runs, ()), indent="  ")[0])
    names = []
    for name in WATCHED:
        if any(run.value(name) is not None for run in runs):
            room -= 2 + len(name)
            if room < 0:
                break
            names.append(name)
    return names


def _change(setting: SettingChange) -> str:
    """`k 5→10`, or what was added to a list and taken from it."""
    if isinstance(setting.before, list) and isinstance(setting.after, list):
        parts = [*(f"+{_value(item)}" for item in setting.after), *(f"-{_value(item)}" for item in setting.before)]
        return f"{_value(setting.name)} {' '.join(parts)}"
    return f"{_value(setting.name)} {_value(setting.before)}→{_value(setting.after)}"


def _value(value: Json) -> str:
    return shortened(setting_text(value), WIDEST)


# ── for programs ──────────────────────────────────────────────────────────────────────────────────────────────


def _as_json(runs: Sequence[PastRun], skipped: Sequence[Skipped], metrics: Sequence[str]) -> dict[str, Any]:
    return {
        "schema": 1,
        "runs": [
            {
                "run_id": run.run_id,
                "timestamp": run.timestamp,
                "description": run.description,
                "dataset_version": run.dataset_version,
                "dataset_hash": run.dataset_hash,
                "partial": run.is_partial,
                "k": run.k,
                "total_tests": run.total,
                "outcomes": run.outcomes,
                "overall_score": run.overall,
                "metrics": {name: run.value(name) for name in metrics} if metrics else run.metrics,
                "changes": [setting._asdict() for setting in run.changes],
            }
            for run in runs
        ],
        "skipped": [folder._asdict() for folder in skipped],
    }


def _csv(runs: Sequence[PastRun], metrics: Sequence[str]) -> Iterator[str]:
    fields = ("run_id", "timestamp", "dataset_version", "dataset_hash", "partial", "total_tests", *OUTCOMES)
    measured = metrics or dict.fromkeys(name for run in runs for name in run.metrics)
    names = [name for name in measured if name != "overall_score"]
    yield csv_line([*fields, "overall_score", *names, "changes", "description"])
    for run in runs:
        cells: list[Cell] = [run.run_id, run.timestamp, run.dataset_version, run.dataset_hash, run.is_partial]
        cells += [run.total, *(run.outcomes.get(name, 0) for name in OUTCOMES)]
        cells += [run.overall, *(run.value(name) for name in names)]
        yield csv_line([*cells, "; ".join(map(_change, run.changes)), run.description])
