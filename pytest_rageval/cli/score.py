"""`rageval score RUN` and `rageval abstention RUN`: a stored run scored again, from what was observed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

import click

from pytest_rageval.cases.project_cases import files_at, load_files
from pytest_rageval.cli.options import EXISTING, PLACE, CommandOnRun, exit_codes
from pytest_rageval.cli.output import Progress
from pytest_rageval.cli.stored_run import OpenedRun, end, open_run, run_argument
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.suggestions import listed
from pytest_rageval.metrics.registry import Measure
from pytest_rageval.rescore.relabel import Labels, read_new_labels
from pytest_rageval.rescore.rescore import Rescoring, check_observed, is_described_measure, plan_again
from pytest_rageval.run.finish import FinishedRun
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.folder import write_metrics
from pytest_rageval.text import counted, names_of

F = TypeVar("F", bound=Callable[..., object])


class RescoreOptions(NamedTuple):
    """The shared options: files of new labels, aggregates alone, and a second place for metrics.json."""

    paths: tuple[Path, ...]
    aggregate_only: bool
    output_metrics: Path | None

    def labels(self, at: OpenedRun) -> Labels | None:
        """Read the new labels for the run, and print what they leave out; None without files."""
        return _labels(at, self.paths) if self.paths else None

    def decide(
        self, at: OpenedRun, metrics: Sequence[str] = (), stays: Callable[[Measure], bool] = is_described_measure
    ) -> NoReturn:
        """Re-score the run, or only aggregate it, by the new labels if any were named, and leave.

        `stays`: which measures keep their scores where the labels are those of the run.
        """
        if not self.aggregate_only:
            check_observed(at.run)
        added = () if self.aggregate_only else metrics
        plan = plan_again(at.run, at.settings, at.root, metrics=added)
        labels = self.labels(at)
        with Progress("scored") as watch:
            rescoring = Rescoring(at.run, plan, at.baseline, labels, stays, watch=watch)
            finished = rescoring.aggregate() if self.aggregate_only else rescoring.score()
        self.end(finished, plan, at)

    def end(self, finished: FinishedRun, plan: Plan, at: OpenedRun) -> NoReturn:
        """Write metrics.json to the second place too, show the run, and leave."""
        if self.output_metrics is not None:
            write_metrics(self.output_metrics, finished.metrics)
        end(finished, plan, at.project.baseline_file)


def rescore_options(command: F) -> F:
    """Add `--cases`, `--aggregate-only` and `--output-metrics`, as parameters for `take_rescore_options`."""
    labels = "Case file or folder with new labels for the same questions (repeatable)."
    for option in (
        click.option("--output-metrics", type=PLACE, metavar="FILE", help="Write metrics.json here too."),
        click.option("--aggregate-only", is_flag=True, help="Keep scores and verdicts; aggregate and compare again."),
        click.option("--cases", "paths", multiple=True, type=EXISTING, metavar="PATH", help=labels),
    ):
        command = option(command)
    return command


def take_rescore_options(options: dict[str, Any], *, changes_scores: Sequence[str] = ()) -> RescoreOptions:
    """Take the shared options out of a command's; `changes_scores`: its other options that were given."""
    shared = RescoreOptions(**{name: options.pop(name) for name in RescoreOptions._fields})
    if shared.aggregate_only and changes_scores:
        options_given = " and ".join(changes_scores)
        change = "change" if len(changes_scores) > 1 else "changes"
        raise click.UsageError(f"--aggregate-only leaves scores as they are; {options_given} {change} them")
    return shared


def _labels(at: OpenedRun, paths: Sequence[Path]) -> Labels:
    files = files_at(path.resolve() for path in paths)
    if not files:
        raise click.UsageError(f"--cases: no case files in {', '.join(map(str, paths))}")
    labels = read_new_labels(at.run, load_files(at.project, files), at.root, Mask(at.settings.secrets()))
    if labels.kept:
        kept = listed(labels.kept)
        click.secho(f"{counted(len(labels.kept), 'case')} of the run not there, labels kept: {kept}", fg="yellow")
    if labels.unasked:
        click.secho(f"{counted(labels.unasked, 'case')} there not asked in this run, left out", fg="yellow")
    return labels


@click.command(cls=CommandOnRun)
@run_argument
@click.option("--metrics", metavar="NAMES", help="Further metrics or layers to score, comma-separated.")
@rescore_options
@exit_codes({1: "a case or a gate of the run fails"})
def score(run: str, reports: str | None, baseline: str | None, metrics: str | None, **options: Any) -> None:
    """Score RUN (an id, `latest`, `latest~1` or a folder) again from its observations, with the judgements that it has:
    records, verdicts, metrics.json and summary.md are rewritten together. Nothing is asked or judged.
    """
    shared = take_rescore_options(options, changes_scores=["--metrics"] if metrics else [])
    shared.decide(open_run(run, reports=reports, baseline=baseline), names_of(metrics))


@click.command(cls=CommandOnRun)
@run_argument
@rescore_options
@exit_codes({1: "a case or a gate of the run fails"})
def abstention(run: str, reports: str | None, baseline: str | None, **options: Any) -> None:
    """Score the abstention layer of RUN (an id, `latest`, `latest~1` or a folder) again from its observations; also
    where the run had not scored it. All other scores stay as recorded, unless --cases brings new labels; verdicts,
    metrics.json and summary.md follow.
    """
    at = open_run(run, reports=reports, baseline=baseline)
    take_rescore_options(options).decide(at, ("abstention",), stays=_is_of_other_layer)


def _is_of_other_layer(measure: Measure) -> bool:
    return measure.metric.layer != "abstention"
