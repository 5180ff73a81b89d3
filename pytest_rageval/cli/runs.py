"""`rageval runs`: list, show and remove the runs that are kept."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from pytest_rageval.cli.options import JSON, REPORTS, echo_json, exit_codes
from pytest_rageval.cli.output import columns
from pytest_rageval.cli.stored_run import open_run, tell_damage
from pytest_rageval.comparison.baseline import read_baseline
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import SettingsError
from pytest_rageval.render.text.columns import aligned, shortened
from pytest_rageval.render.text.view_text import table_lines
from pytest_rageval.runs.config_diff import flat_settings, setting_text
from pytest_rageval.runs.history import RunSummary, remove, run_summaries, run_summary, runs_to_prune
from pytest_rageval.text import NO_VALUE, counted, denominator, file_size, printable, score_text
from pytest_rageval.views.parts import FigureTable, TableRow

VERSIONS = ("dataset_version", "index_build_version", "retriever_version", "answerer_version")
WIDEST = 80
"""Columns of a name or a value."""
PIPED = 200
"""Columns without a terminal: a run is one line, for grep."""


@click.group()
def runs() -> None:
    """List, show and remove the runs that are kept."""


@runs.command(name="list")
@REPORTS
@JSON
def list_(reports: str | None, *, as_json: bool) -> None:
    """List all runs by time, with outcomes and size."""
    project = find_project({"reports": reports})
    runs = run_summaries(project.reports)
    baseline = _baseline(project, is_lenient=True)
    if as_json:
        listed = [_as_json(run) | {"is_baseline": run.run_id == baseline} for run in runs]
        echo_json({"runs": listed, "bytes": sum(run.bytes for run in runs)}, _next_of_list(runs), indent=1)
        return
    if not runs:
        click.echo(f"{printable(str(project.reports / 'runs'))} holds no runs")
        return
    for line in table_lines(_table(runs, baseline), columns(PIPED)):
        click.echo(line.text)
    size = file_size(sum(run.bytes for run in runs))
    click.echo(f"{counted(len(runs), 'run')}, {size}")


@runs.command()
@click.argument("run")
@REPORTS
@JSON
def show(run: str, reports: str | None, *, as_json: bool) -> None:
    """Show RUN (an id, `latest`, `latest~1` or a folder): configuration, versions, files, aggregates."""
    project, stored = open_run(run, reports=reports)
    kept = run_summary(stored)
    if kept.outcomes is not None:
        tell_damage(stored)
    metrics = None if kept.outcomes is None else stored.metrics
    if as_json:
        files = {file.name: file.bytes for file in kept.files}
        content = _as_json(kept) | {"files": files, "configuration": stored.config, "aggregates": metrics}
        echo_json(content, _next_of_run(kept, _baseline(project, is_lenient=True)), indent=1)
        return
    try:
        lines = list(_shown(kept, stored.config, metrics, _baseline(project, is_lenient=True)))
    except (KeyError, TypeError, AttributeError) as error:
        raise SettingsError(f"run {kept.run_id}: its JSON files are not what a run writes: {error!r}") from None
    for line in lines:
        click.echo(line)


@runs.command()
@click.option("--keep", metavar="N", type=click.IntRange(0), help="Keep the last N runs.")
@click.option("--older-than", metavar="DAYS", type=click.FloatRange(0, 100_000), help="Only what is older than that.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@REPORTS
@exit_codes({1: "a run could not be removed"})
def prune(keep: int | None, older_than: float | None, reports: str | None, *, dry_run: bool, yes: bool) -> None:
    """Remove runs that are neither among the last N nor younger than DAYS.

    The run of the baseline and runs that are being written stay.
    """
    if keep is None and older_than is None:
        raise click.UsageError("say what may go: --keep, --older-than, or both")
    project = find_project({"reports": reports})
    baseline = _baseline(project, is_lenient=False)
    every = run_summaries(project.reports)
    selection = runs_to_prune(every, keep=keep, older_than_days=older_than, baseline=baseline)
    for run, reason in selection.kept:
        click.echo(f"stays: {_id(run)}: {reason}")
    if not selection.removed:
        click.echo(f"nothing to remove among {counted(len(every), 'run')}")
        return
    going = counted(len(selection.removed), "run")
    if dry_run or not yes:
        _echo_removed("would go: ", selection.removed)
    if dry_run:
        return
    if not yes and not sys.stdin.isatty():
        raise SettingsError(f"{going} would be removed, and nobody can be asked here; say --yes, or --dry-run")
    if not yes and not click.confirm(f"Remove {going}?"):
        click.echo("nothing is removed")
        return
    done = remove(selection.removed)
    _echo_removed("removed: ", done.removed)
    for run, reason in done.kept:
        click.echo(f"stays: {_id(run)}: {printable(reason)}", err=True)
    freed = file_size(sum(run.bytes for run in done.removed))
    left = len(every) - len(done.removed)
    click.echo(f"removed {counted(len(done.removed), 'run')}, {freed}; {left} left")
    sys.exit(1 if done.kept else 0)


def _baseline(project: Project, *, is_lenient: bool) -> str | None:
    """Return the id of the baseline's run; if it cannot be read, None if `is_lenient`, else SettingsError."""
    try:
        baseline = read_baseline(project.baseline_file, is_required=False)
    except SettingsError:
        if is_lenient:
            return None
        raise
    return baseline.run_id if baseline else None


# ── showing ───────────────────────────────────────────────────────────────────────────────────────────────────


def _table(runs: Sequence[RunSummary], baseline: str | None) -> FigureTable:
    """Return a row for each run, with a column of known failures if a run has any."""
    names = {"passed": "passed", "failed": "failed", "error": "error"}
    if any((run.outcomes or {}).get("xfailed") for run in runs):
        names["xfailed"] = "known"
    heads = ("run", "ended (UTC)", "cases", *names.values(), "overall", "size", "note")
    rows = tuple(_row(run, list(names), baseline) for run in runs)
    return FigureTable(heads, rows, has_verdicts=True, least=3)


def _row(run: RunSummary, names: Sequence[str], baseline: str | None) -> TableRow:
    """Return the row of a run, with a cell for each outcome that is named."""
    outcomes = [NO_VALUE] * len(names)
    if run.outcomes:
        outcomes = [str(run.outcomes.get(name, 0)) for name in names]
    cells = (
        _id(run),
        f"{run.timestamp:%Y-%m-%d %H:%M}",
        NO_VALUE if run.total is None else str(run.total),
        *outcomes,
        score_text(run.overall),
        file_size(run.bytes),
        _note(run, baseline),
    )
    return TableRow(cells)


def _note(run: RunSummary, baseline: str | None) -> str:
    parts: list[str] = []
    if run.state != "complete":
        parts.append(run.state)
    if run.run_id == baseline:
        parts.append("baseline")
    if run.description:
        parts.append(shortened(printable(run.description), WIDEST))
    return "; ".join(parts)


def _shown(
    run: RunSummary, config: Mapping[str, Any], metrics: Mapping[str, Any] | None, baseline: str | None
) -> Iterator[str]:
    note = _note(run, baseline)
    line = f"{_id(run)}  {run.timestamp:%Y-%m-%d %H:%M:%S} UTC"
    if note:
        line += f"  {note}"
    yield line
    yield from _titled("configuration", _configuration(config))
    yield from _titled("versions", [[name, _value(config.get(name))] for name in VERSIONS])
    if metrics is not None:
        outcomes = metrics["outcomes"].items()
        yield from _titled("cases", [[name, str(number)] for name, number in outcomes if number])
        yield from _titled("metrics", _means(metrics))
    yield from _titled("files", [[printable(file.name), file_size(file.bytes)] for file in run.files])


def _configuration(config: Mapping[str, Any]) -> list[list[str]]:
    """Return the settings that were set, without the long lists that `--json` has."""
    rows = []
    for name, value in flat_settings(config).items():
        is_set = value not in (None, {}, "server default")
        if is_set and not isinstance(value, list):
            rows.append([name, _value(value)])
    return rows


def _means(metrics: Mapping[str, Any]) -> list[list[str]]:
    rows = [["overall", score_text(metrics["overall_score"]), ""]]
    for name, metric in metrics["metrics"].items():
        if metric["n_scored"] and name != "overall_score":
            rows.append([name, score_text(metric["mean"], metric.get("unit")), denominator(metric)])
    return rows


def _titled(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    return ["", title, *aligned(rows, indent="  ", to_the_left=True)]


def _value(value: Any) -> str:
    return shortened(setting_text(value), WIDEST)


def _echo_removed(prefix: str, runs: Sequence[RunSummary]) -> None:
    rows = [[_id(run), f"{run.timestamp:%Y-%m-%d %H:%M}", file_size(run.bytes)] for run in runs]
    for line in aligned(rows, indent=prefix):
        click.echo(line)


def _id(run: RunSummary) -> str:
    return shortened(printable(run.run_id), WIDEST)


def _as_json(run: RunSummary) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "timestamp": run.timestamp.isoformat(timespec="seconds"),
        "state": run.state,
        "total_tests": run.total,
        "outcomes": run.outcomes,
        "overall_score": run.overall,
        "description": run.description,
        "bytes": run.bytes,
    }


def _next_of_list(runs: Sequence[RunSummary]) -> Iterator[str]:
    if not runs:
        yield "rageval run"
        return
    yield f"rageval runs show {shlex.quote(runs[-1].run_id)}"
    if len(runs) > 1:
        yield "rageval compare latest~1 latest"


def _next_of_run(run: RunSummary, baseline: str | None) -> Iterator[str]:
    name = shlex.quote(run.run_id)
    if run.state == "interrupted":
        yield f"rageval run --resume {name}"
    elif baseline is not None and run.outcomes is not None:
        yield f"rageval compare baseline {name}"
    if run.outcomes is not None:
        yield f"rageval report {name}"
