"""Judging by a batch at a provider: `rageval judge RUN --batch` submits it, `--collect` scores the run with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from typing import Any

import click

from pytest_rageval.check.judge_check import configured_judge
from pytest_rageval.cli.judging import judge_again, planned_judging
from pytest_rageval.cli.options import NOT_READY
from pytest_rageval.cli.output import Progress
from pytest_rageval.cli.score import RescoreOptions
from pytest_rageval.cli.stored_run import OpenedRun
from pytest_rageval.errors import SettingsError
from pytest_rageval.judges.cache.sqlite_cache import project_cache
from pytest_rageval.rescore.judge_batch import BatchedRun, Submission, check_submission, submission_of
from pytest_rageval.text import counted, printable


def submit_batch(
    at: OpenedRun, judging: Mapping[str, Any], metrics: tuple[str, ...] = (), tell: Callable[[str], None] = click.echo
) -> None:
    """Submit the judging of a run as a batch; raise RagevalError if that fails."""
    check_submission(at.run)
    with _batched(at, Submission(judging, metrics)) as batched:
        with Progress("gathered") as watch:
            waiting = len(batched.gather(watch))
        if not waiting:
            tell(f"nothing is left to ask: `rageval judge {at.run.run_id}` scores it from the judge cache")
            return
        batched.check_price(batched.plan.settings.max_cost)
        batched.submit()
    _tell_submitted(batched, waiting, tell)


def _tell_submitted(batched: BatchedRun, requests: int, tell: Callable[[str], None] = click.echo) -> None:
    ids = printable(", ".join(batched.submission.batches))
    tell(f"submitted {counted(requests, 'request')} as batch {ids}, at half price")
    tell(f"within a day: rageval judge {batched.run.run_id} --collect")


def collect_batch(at: OpenedRun, shared: RescoreOptions) -> None:
    """Fetch the replies of the run's batch and score the run, or leave with NOT_READY if the batch has not ended."""
    submission = submission_of(at.run)
    if submission is None:
        raise SettingsError(f"run {at.run.run_id} has no batch; `rageval judge {at.run.run_id} --batch` submits one")
    if submission.collected is not None:
        click.echo(f"run {at.run.run_id} was scored with its batch at {submission.collected}; nothing is left to do")
        return
    with _batched(at, submission) as batched:
        states = batched.fetch()
        if not all(state.is_ended for state in states):
            for state in states:
                click.echo(f"batch {printable(state.id)}: {state.words}")
            sys.exit(NOT_READY)
        with Progress("read") as watch:
            batched.gather(watch)
        batched.give_up(states)
        further = len(batched.client.waiting)
        if further:
            batched.submit()
            why = "could be asked only with these replies" if states else "had not been submitted"
            click.echo(f"{counted(further, 'request')} {why}")
            _tell_submitted(batched, further)
            sys.exit(NOT_READY)
    has_a_reply = any(reply.status == 200 for reply in batched.client.replies.values())
    if not has_a_reply:
        batched.end()  # so that it may be submitted again
    judging = submission.judging
    judge_again(at, judging, submission.metrics, shared, is_named="judge" in judging, batched=batched)


@contextmanager
def _batched(at: OpenedRun, submission: Submission) -> Iterator[BatchedRun]:
    plan = planned_judging(at, submission.judging, submission.metrics)
    if plan.settings.judge_cache == "replay":
        raise SettingsError("judge_cache: in replay nothing is asked, and so nothing is submitted")
    made = partial(configured_judge, plan.settings, at.root, "nobody judges; name a judge with --judge")
    cache = project_cache(at.project.settings, at.project.judge_cache_file)
    with closing(cache) if cache is not None else nullcontext():
        yield BatchedRun(at.run, plan, submission, made, cache)
