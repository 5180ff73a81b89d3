"""Judging of a stored run: planned, put before the judge at hand, interruptible, and scored."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

import click

from pytest_rageval.check.judge_check import judge_at_hand
from pytest_rageval.cli.options import STOPPED
from pytest_rageval.cli.output import Progress
from pytest_rageval.cli.score import RescoreOptions
from pytest_rageval.cli.stored_run import OpenedRun
from pytest_rageval.errors import SettingsError
from pytest_rageval.judges.judge import BaseJudge, described_judge
from pytest_rageval.rescore.judge_batch import BatchedRun
from pytest_rageval.rescore.rejudge import Rejudge, check_judge_of
from pytest_rageval.rescore.relabel import Lines
from pytest_rageval.rescore.rescore import Rescoring, plan_again
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.prepare import run_check
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.interrupts import Interrupts
from pytest_rageval.runs.judge_notes import estimate
from pytest_rageval.text import counted, printable


def judging_settings(at: OpenedRun, overrides: Mapping[str, str], spec: str | None) -> dict[str, Any]:
    """Return the settings that replace the run's; another judge that names no server uses the project's."""
    settings = {"retrieval_only": False, **overrides}
    if spec is not None:
        settings |= {"judge": spec, "judge_base_url": at.settings.judge_base_url}
    return settings


def planned_judging(at: OpenedRun, judging: Mapping[str, Any], metrics: tuple[str, ...]) -> Plan:
    """Return the plan of judging a run again; raise SettingsError if nothing in it is judged."""
    plan = plan_again(at.run, at.settings, at.root, metrics=metrics, judging=judging)
    was_retrieval_only = at.run.config["settings"]["retrieval_only"]
    is_without_rubrics = not plan.rubrics and plan.settings.judge != "none"
    if is_without_rubrics or (was_retrieval_only and not metrics):
        raise SettingsError(
            f"run {at.run.run_id} measures nothing that is judged; name what to judge, as in "
            "--metrics groundedness,correctness"
        )
    return plan


def judge_again(
    at: OpenedRun,
    judging: Mapping[str, Any],
    metrics: tuple[str, ...],
    shared: RescoreOptions,
    *,
    is_named: bool,
    batched: BatchedRun | None = None,
) -> None:
    """Judge the answers, score the run, and leave with its exit code.

    is_named  the judge was named, and need not be the run's own
    batched   the batch whose collected replies are used instead of asking
    """
    plan = planned_judging(at, judging, metrics)
    labels = shared.labels(at)
    with interruptible(at.run.run_id) as begin_writing:
        with judge_of_plan(plan, at, batched) as judge:
            if batched is None:
                cost = estimate(judge, plan, at.run.finished_metrics["total_tests"])
                if cost is not None:
                    click.echo(printable(cost), err=True)
            if not is_named:
                check_judge_of(at.run, judge)
            changed: dict[str, Any] = {"judge": described_judge(judge, plan.settings.judge_temperature)}
            if not judge.heuristic:
                changed["judge_check"] = run_check(at.project, judge, plan)
            rescoring = Rescoring(at.run, plan, at.baseline, labels, changed=changed)
            with Progress("judged") as watch:
                again = Rejudge(at.run, plan, judge, watch)

                def judged_lines(lines: Lines) -> Lines:
                    yield from again.lines(lines)
                    begin_writing()

                finished = rescoring.score(judged_lines)
        if again.problem is not None:
            failed = f"{again.failed} of {counted(again.judged, 'answer')} could not be judged"
            warn(f"{failed}; the first: {again.problem.kind}: {again.problem.message}")
        if batched is not None:
            batched.end()
        shared.end(finished, plan, at)


def judge_of_plan(plan: Plan, at: OpenedRun, batched: BatchedRun | None = None) -> AbstractContextManager[BaseJudge]:
    """Return the judge of the plan as a context; with a batch, the one that answers from its replies."""
    problem = "nobody judges; name a judge with --judge"
    judge = None if batched is None else batched.deferring_judge()
    give_secret = RunFolder(at.run.path).give_secret
    return judge_at_hand(at.project, plan.settings, plan.mask, problem, warn, judge, give_secret)


def warn(note: str) -> None:
    click.secho(printable(note), fg="yellow")


@contextmanager
def interruptible(run_id: str) -> Iterator[Callable[[], None]]:
    """Let a signal end the judging of a run until the given function is called; then wait for the end.

    The function is to be called before the first file of the run is replaced.
    """

    def leave(state: str) -> NoReturn:
        click.echo(f"interrupted: run {run_id} {state}", err=True)
        sys.exit(STOPPED)

    def begin_writing() -> None:
        interrupts.install()
        interrupts.begin_finishing()

    interrupts = Interrupts(lambda: leave("was written by then, with what was judged"))
    try:
        yield begin_writing
    except SystemExit:  # a command ends so as well
        interrupts.end_finishing()
        raise
    except KeyboardInterrupt:
        leave("is as it was; what was judged is in the judge cache")
    else:
        interrupts.end_finishing()
    finally:
        interrupts.restore()
