"""A spot check of a judge: run it, print the scores that disagree, write it to metrics.json."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click

from pytest_rageval.cli.stored_run import Opened
from pytest_rageval.finish import is_last_run
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.judges.judge import Judge
from pytest_rageval.plan import Plan
from pytest_rageval.report.columns import aligned
from pytest_rageval.report.run_reports import write_reports
from pytest_rageval.runs.disk.folder import RunFolder
from pytest_rageval.runs.disk.metrics_file import write_metrics
from pytest_rageval.text import counted, printable
from pytest_rageval.workbench.spot_check import TOO_OFTEN, SpotCheck, check_by_second_judge

SHOWN = 50


def spot_check(
    at: Opened,
    first: Plan,
    second: Plan,
    judge: Judge,
    n: int | None,
    watch: Callable[[int], None],
    begin_writing: Callable[[], None],
) -> None:
    """Check the run's judge against another, say what came, and write it to metrics.json and the reports."""
    folder = RunFolder(at.run.path)
    folder.claim()
    try:
        check = check_by_second_judge(at.run, first, second, judge, n, watch)
        begin_writing()
        _write(at, check, first)
    finally:
        folder.close()
    for line in _lines(check):
        click.echo(printable(line))
    if check.served:
        names = printable(", ".join(sorted(check.served)))
        click.secho(
            f"WARNING: both judges were served by {names}: this shows how steady it is, not whether it is right",
            fg="yellow",
        )
    if check.rate > TOO_OFTEN:
        rate = f"{check.rate:.0%}".replace("%", " %")
        warning = f"the judges disagree on {rate} of the answers: do not rely on either before people have judged some"
        click.secho(f"WARNING: {warning}", fg="yellow")


def _write(at: Opened, check: SpotCheck, plan: Plan) -> None:
    metrics = dict(at.run.finished_metrics) | {"judge_reliability": check.as_mapping()}
    metrics["aggregate_metrics"] = metrics["aggregate_metrics"] | {"judge_reliability": check.in_short()}
    write_metrics(at.run.path / "metrics.json", metrics)
    if is_last_run(metrics, at.project.reports):
        write_metrics(at.project.reports / "metrics.json", metrics)
    for problem in write_reports(at.run.path, plan, at.run.scores.cases if at.run.scores else {}):
        click.secho(printable(problem), fg="yellow")


def _lines(check: SpotCheck) -> Iterator[str]:
    yield f"{check.first_judge} and {check.second_judge} on {counted(check.n, 'answer')}"
    rows = [["rubric", "scores", "disagree", "rate", "mean difference"]]
    for rubric, figures in check.by_rubric.items():
        rate, difference = f"{figures['disagreement_rate']:.0%}", f"{figures['mean_difference']:.3f}"
        rows.append([rubric, str(figures["n"]), str(figures["disagreeing"]), rate.replace("%", " %"), difference])
    yield from aligned(rows)
    yield "scores as shares of their scale; apart by more than 0.2, or a gate between them, is a disagreement"
    if check.failed:
        yield f"{counted(check.failed, 'answer')} could not be judged; the first: {check.problem}"
    if check.disagreeing:
        yield ""
        rows = [["case", "score", "first", "second", "gate between"]]
        for pair in check.disagreeing[:SHOWN]:
            case = f"{pair.case_key} trial {pair.trial}" if pair.trial else pair.case_key
            rows.append([printable(case), pair.score, f"{pair.first:.2f}", f"{pair.second:.2f}", pair.gate or ""])
        yield from aligned(rows, to_the_left=True)
    if len(check.disagreeing) > SHOWN:
        yield and_more(len(check.disagreeing) - SHOWN) + ": see judge_reliability in metrics.json"
    rate = f"{check.rate:.0%}".replace("%", " %")
    yield f"disagreement rate: {rate} of {counted(check.n, 'answer')}"
