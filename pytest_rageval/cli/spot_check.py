"""The spot check of `rageval judge RUN --spot-check`: some answers of a run, put before a second judge."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pytest_rageval.check.spot_check import TOO_OFTEN, SpotCheck, check_by_second_judge
from pytest_rageval.cli.judging import interruptible, judge_of_plan, judging_settings, warn
from pytest_rageval.cli.output import Progress
from pytest_rageval.cli.stored_run import OpenedRun
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.render.run_reports import write_reports
from pytest_rageval.render.text.columns import aligned
from pytest_rageval.rescore.rejudge import check_judge_of
from pytest_rageval.rescore.rescore import plan_again
from pytest_rageval.run.finish import is_last_run
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.folder import RunFolder, write_metrics
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import counted, percent, printable

SHOWN = 50
"""Disagreements to list."""


def run_spot_check(at: OpenedRun, overrides: dict[str, str], second_judge: str | None, number: int | None) -> None:
    """Put some answers of a run before a second judge, and record how often the judges disagree.

    overrides     the settings of judges that were given, by name
    second_judge  its specification; without one, the same judge reads other rubrics
    number        how many answers; None for the usual share
    """
    if second_judge is None and "rubrics" not in overrides:
        raise click.UsageError("--spot-check needs a second opinion: --second-judge SPEC, or --rubrics DIR")
    first_plan = plan_again(at.run, at.settings, at.root)
    judging = judging_settings(at, overrides, second_judge or overrides.get("judge"))
    second_plan = plan_again(at.run, at.settings, at.root, judging=judging)
    folder = RunFolder(at.run.path)
    with judge_of_plan(second_plan, at) as judge:
        if second_judge is None and "judge" not in overrides:
            check_judge_of(at.run, judge)
        with interruptible(at.run.run_id) as begin_writing, Progress("judged") as watch:
            folder.lock()
            try:
                check = check_by_second_judge(at.run, first_plan, second_plan, judge, number, watch)
                begin_writing()
                _record(check, at, first_plan)
            finally:
                folder.close()
        for line in _lines(check):
            click.echo(printable(line))
        _warn_of_disagreement(check)


def _record(check: SpotCheck, at: OpenedRun, plan: Plan) -> None:
    """Write the figures into metrics.json, and the reports of the run again."""
    in_short = {name: check.figures[name] for name in ("disagreement_rate", "spot_check_n")}
    metrics = dict(at.run.finished_metrics)
    metrics["judge_reliability"] = check.figures
    metrics["aggregate_metrics"] = metrics["aggregate_metrics"] | {"judge_reliability": in_short}
    write_metrics(at.run.path / "metrics.json", metrics)
    if is_last_run(metrics, at.project.reports):
        write_metrics(at.project.reports / "metrics.json", metrics)
    # Not the run that was opened: its metrics are those of before.
    for problem in write_reports(StoredRun(at.run.path), plan, at.run.scores or {}, at.project.baseline_file):
        warn(problem)


def _warn_of_disagreement(check: SpotCheck) -> None:
    if check.served:
        names = ", ".join(sorted(check.served))
        warn(f"WARNING: both judges were served by {names}: this shows how steady it is, not whether it is right")
    rate = check.figures["disagreement_rate"]
    if rate > TOO_OFTEN:
        disagree = f"the judges disagree on {percent(rate)} of the answers"
        warn(f"WARNING: {disagree}: do not rely on either before people have judged some")


def _lines(check: SpotCheck) -> Iterator[str]:
    figures = check.figures
    answers = counted(figures["spot_check_n"], "answer")
    yield f"{figures['judge']} and {figures['second_judge']} on {answers}"
    rows = [["rubric", "scores", "disagree", "rate", "mean difference"]]
    for rubric, counts in figures["by_rubric"].items():
        rate = percent(counts["disagreement_rate"])
        difference = f"{counts['mean_difference']:.3f}"
        rows.append([rubric, str(counts["n"]), str(counts["disagreeing"]), rate, difference])
    yield from aligned(rows)
    yield "scores as shares of their scale; apart by more than 0.2, or a gate between them, is a disagreement"
    if figures["failed"]:
        yield f"{counted(figures['failed'], 'answer')} could not be judged; the first: {check.problem}"
    if check.disagreeing:
        yield ""
        rows = [["case", "score", "first", "second", "gate between"]]
        for pair in check.disagreeing[:SHOWN]:
            case = f"{pair.case_key} trial {pair.trial}" if pair.trial else pair.case_key
            rows.append([printable(case), pair.score, f"{pair.first:.2f}", f"{pair.second:.2f}", pair.gate or ""])
        yield from aligned(rows, to_the_left=True)
    if len(check.disagreeing) > SHOWN:
        yield and_more(len(check.disagreeing) - SHOWN) + ": see judge_reliability in metrics.json"
    yield f"disagreement rate: {percent(figures['disagreement_rate'])} of {answers}"
