"""How is a spot check of a judge shown and kept? A table, the cases that disagree, a place in metrics.json."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click

from pytest_rageval.cli.stored_run import Opened
from pytest_rageval.io.atomic import write_json, write_text
from pytest_rageval.judges.judge import Judge
from pytest_rageval.plan import Plan
from pytest_rageval.report.columns import aligned
from pytest_rageval.report.summary_markdown import summary_markdown
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.kept_fields import earlier_of
from pytest_rageval.text import printable
from pytest_rageval.workbench.spot_check import TOO_OFTEN, SpotCheck, check_by_second_judge

SHOWN = 50


def spot_check(
    at: Opened, first: Plan, second: Plan, judge: Judge, n: int | None, watch: Callable[[int], None]
) -> None:
    """Check the run's judge against another, say what came, and write it to metrics.json and summary.md."""
    folder = RunFolder(at.run.path)
    folder.claim()
    try:
        found = check_by_second_judge(at.run, first, second, judge, n, watch)
        _write(at, found, first)
    finally:
        folder.close()
    for line in _lines(found):
        click.echo(printable(line))
    if found.rate > TOO_OFTEN:
        rate = f"{found.rate:.0%}".replace("%", " %")
        said = f"the judges disagree on {rate} of the answers: do not rely on either before people have judged some"
        click.secho(f"WARNING: {said}", fg="yellow")


def _write(at: Opened, found: SpotCheck, plan: Plan) -> None:
    earlier = earlier_of(at.run)
    metrics = dict(earlier.metrics) | {"judge_reliability": found.as_mapping()}
    metrics["aggregate_metrics"] = metrics["aggregate_metrics"] | {"judge_reliability": found.in_short()}
    write_json(at.run.path / "metrics.json", metrics)
    if earlier.is_last_of(at.project.reports):
        write_json(at.project.reports / "metrics.json", metrics)
    write_text(at.run.path / "summary.md", summary_markdown(metrics, at.run.config, plan.registry))


def _lines(found: SpotCheck) -> Iterator[str]:
    yield f"{found.first_judge} and {found.second_judge} on {found.n} answers"
    rows = [["rubric", "scores", "disagree", "rate", "mean difference"]]
    for rubric, one in found.by_rubric.items():
        rate, difference = f"{one['disagreement_rate']:.0%}", f"{one['mean_difference']:.3f}"
        rows.append([rubric, str(one["n"]), str(one["disagreeing"]), rate.replace("%", " %"), difference])
    yield from aligned(rows)
    yield "scores as shares of their scale; apart by more than 0.2, or a gate between them, is a disagreement"
    if found.failed:
        yield f"{found.failed} answers could not be judged; the first: {found.problem}"
    if found.disagreeing:
        yield ""
        rows = [["case", "score", "first", "second", "gate between"]]
        for pair in found.disagreeing[:SHOWN]:
            case = f"{pair.case_key} trial {pair.trial}" if pair.trial else pair.case_key
            rows.append([printable(case), pair.score, f"{pair.first:.2f}", f"{pair.second:.2f}", pair.gate or ""])
        yield from aligned(rows, to_the_left=True)
    if len(found.disagreeing) > SHOWN:
        yield f"and {len(found.disagreeing) - SHOWN} more: see judge_reliability in metrics.json"
    rate = f"{found.rate:.0%}".replace("%", " %")
    yield f"disagreement rate: {rate} of {found.n} answers"
