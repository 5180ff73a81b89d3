"""`rageval score RUN`: a stored run scored again, from what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from pytest_rageval.cases import find_case_files, load_file
from pytest_rageval.cli.end_of_run import end
from pytest_rageval.cli.progress import Progress
from pytest_rageval.cli.stored_run import names_of, opened, run_argument
from pytest_rageval.io.atomic import write_json
from pytest_rageval.io.suggestions import listed
from pytest_rageval.rescore.relabel import Labels, read_new_labels
from pytest_rageval.rescore.rescore import Redo, aggregate_again, check_observed, redo
from pytest_rageval.rescore.rescore_plan import config_again, plan_again
from pytest_rageval.runs.reader import StoredRun


@click.command()
@run_argument
@click.option(
    "--cases", "paths", multiple=True, type=click.Path(exists=True, path_type=Path), metavar="PATH",
    help="Case file, or folder of them, with new labels for the same questions (repeatable).",
)  # fmt: skip
@click.option("--metrics", metavar="NAMES", help="Metrics or layers to score beside those of the run, comma-separated.")
@click.option("--aggregate-only", is_flag=True, help="Leave scores and verdicts; aggregate and compare anew.")
@click.option("--output-metrics", type=click.Path(path_type=Path), metavar="FILE", help="Write metrics.json here too.")
def score(
    run: str,
    reports: str | None,
    baseline: str | None,
    paths: tuple[Path, ...],
    metrics: str | None,
    aggregate_only: bool,
    output_metrics: Path | None,
) -> None:
    """Score RUN (an id, `latest`, `latest~1` or a folder) again from its observations, with the judgements that it has:
    records, verdicts, metrics.json and summary.md are rewritten together. Nothing is asked or judged. Exit code 1: a
    case or a gate of the run fails."""
    if aggregate_only and (paths or metrics):
        raise click.UsageError("--aggregate-only leaves scores as they are; --cases and --metrics change them")
    at = opened(run, reports=reports, baseline=baseline)
    if not aggregate_only:
        check_observed(at.run)
    plan = plan_again(at.run, at.settings, at.root, metrics=names_of(metrics))
    labels = _labels(at.run, paths, at.root, at.settings.max_line_bytes) if paths else None
    changed = {"dataset_hash": labels.dataset, "dataset_version": labels.version} if labels else {}
    config = at.run.config if aggregate_only else config_again(at.run, plan, **changed)
    with Progress("scored") as watch:
        how = Redo(at.run, plan, config, at.baseline, labels=labels.cases if labels else None, watch=watch)
        finished = aggregate_again(how) if aggregate_only else redo(how, labels.applied if labels else None)
    if output_metrics is not None:
        write_json(output_metrics, finished.metrics)
    end(finished, plan, at.project.baseline_file)


def _labels(run: StoredRun, paths: Sequence[Path], root: Path, max_line_bytes: int) -> Labels:
    files = list(dict.fromkeys(file.resolve() for path in paths for file in _files_at(path)))
    if not files:
        raise click.UsageError(f"--cases: no case files in {', '.join(map(str, paths))}")
    labels = read_new_labels(run, [load_file(file, root, max_line_bytes=max_line_bytes) for file in files], root)
    if labels.kept:
        kept = listed(labels.kept)
        click.secho(f"{len(labels.kept)} cases of the run are not there and keep their labels: {kept}", fg="yellow")
    if labels.unasked:
        click.secho(f"{labels.unasked} cases there were not asked in this run and are left out", fg="yellow")
    return labels


def _files_at(path: Path) -> list[Path]:
    return find_case_files(path, ("*.jsonl", "*.csv")) if path.is_dir() else [path]
