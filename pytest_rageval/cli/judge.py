"""`rageval judge RUN`: the answers of a stored run judged again, or some of them by a second judge."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from typing import Any, NoReturn

import click

from pytest_rageval.check.judge_check import (
    TOO_OFTEN,
    SpotCheck,
    check_by_second_judge,
    configured_judge,
    judge_at_hand,
)
from pytest_rageval.cli.options import NOT_READY, STOPPED, CommandOnRun, exit_codes
from pytest_rageval.cli.output import Progress
from pytest_rageval.cli.score import RescoreOptions, rescore_options, take_rescore_options
from pytest_rageval.cli.stored_run import OpenedRun, open_run, run_argument
from pytest_rageval.config.options import OPTIONS
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.judges.cache.sqlite_cache import project_cache
from pytest_rageval.judges.judge import BaseJudge, described_judge
from pytest_rageval.render.run_reports import write_reports
from pytest_rageval.render.text.columns import aligned
from pytest_rageval.rescore.judge_batch import BatchedRun, Submission, check_submission, submission_of
from pytest_rageval.rescore.rejudge import Rejudge, check_judge_of
from pytest_rageval.rescore.relabel import Lines
from pytest_rageval.rescore.rescore import Rescoring, check_observed, plan_again
from pytest_rageval.run.finish import is_last_run
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.prepare import run_check
from pytest_rageval.runs.folder import RunFolder, write_metrics
from pytest_rageval.runs.interrupts import Interrupts
from pytest_rageval.runs.judge_notes import estimate
from pytest_rageval.text import counted, names_of, percent, printable

CACHE_MODES = next(option.choices for option in OPTIONS if option.name == "judge-cache")
OF_JUDGES = ("judge", "judge_base_url", "rubrics")
"""Settings that replace those of the run; the last is a key of the table alone."""


@click.command(cls=CommandOnRun)
@run_argument
@click.option("--judge", metavar="SPEC", help="Who judges (default: the judge of the run).")
@click.option("--judge-base-url", metavar="URL", help="Its server, where the spec names none.")
@click.option("--judge-cache", "cache_mode", type=click.Choice(CACHE_MODES), help="What stored judgements are for.")
@click.option("--rubrics", metavar="DIR", help="Folder of rubrics to judge by (default: that of the run).")
@click.option("--metrics", metavar="NAMES", help="Metrics to judge and score beside those of the run, comma-separated.")
@click.option("--claim-level", is_flag=True, help="Judge each claim of an answer too: the metric claim_support.")
@click.option("--max-cost", metavar="USD", help="US dollars after which no new judgement is asked for.")
@click.option("--batch", "is_batch", is_flag=True, help="Submit what is to be judged as a batch, at half price.")
@click.option("--collect", "is_collecting", is_flag=True, help="Fetch the replies of the batch, and score the run.")
@click.option("--spot-check", "is_spot_check", is_flag=True, help="Put some answers to a second judge.")
@click.option("--spot-check-n", type=click.IntRange(1), metavar="N", help="How many (default: 20, or 5 % of the run).")
@click.option("--second-judge", metavar="SPEC", help="The second judge of a spot check.")
@rescore_options
@exit_codes(
    {
        1: "a case or a gate of the run fails",
        NOT_READY: "the batch has not ended",
        STOPPED: "interrupted; the run is whole, and a line says as what",
    }
)
def judge(
    run: str,
    reports: str | None,
    baseline: str | None,
    cache_mode: str | None,
    max_cost: str | None,
    metrics: str | None,
    claim_level: bool,
    is_batch: bool,
    is_collecting: bool,
    is_spot_check: bool,
    spot_check_n: int | None,
    second_judge: str | None,
    **options: Any,
) -> None:
    """Judge the stored answers of RUN (an id, `latest`, `latest~1` or a folder) again, also those whose judging had
    failed, and score the run with the new judgements.

    With --batch, the requests are submitted to the batch interface of OpenAI or Anthropic; --collect fetches the
    replies, within a day or so, and scores the run. Both may be repeated: nothing is asked or scored twice.

    With --spot-check, some answers are put before a second judge (--second-judge), or the same one with other rubrics
    (--rubrics); no score changes. The exit code is 0, however often they disagree.
    """
    if not is_spot_check and (spot_check_n is not None or second_judge is not None):
        raise click.UsageError("--spot-check-n and --second-judge go with --spot-check")
    if is_spot_check and (metrics or claim_level):
        raise click.UsageError("--spot-check compares what was judged; leave --metrics and --claim-level out")
    overrides = {name: value for name in OF_JUDGES if (value := options.pop(name)) is not None}
    flags = {"--judge": overrides, "--metrics": metrics, "--claim-level": claim_level, "--spot-check": is_spot_check}
    shared = take_rescore_options(options, changes_scores=[flag for flag, value in flags.items() if value])
    if is_spot_check and (shared.paths or shared.output_metrics):
        raise click.UsageError("--spot-check changes no score; leave --cases and --output-metrics out")
    if is_batch + is_collecting + is_spot_check > 1:
        raise click.UsageError("--batch, --collect and --spot-check are three things; take one of them")
    if (is_batch or is_collecting) and (shared.paths or shared.aggregate_only):
        raise click.UsageError("a batch judges by the labels of the run; leave --cases and --aggregate-only out")
    if is_collecting and (overrides or metrics or claim_level):
        raise click.UsageError("--collect judges as was submitted; name judge, rubrics and metrics with --batch")
    spending = {"judge_cache": cache_mode, "max_cost": max_cost}
    at = open_run(
        run, reports=reports, baseline=baseline, **spending, **{name: overrides.get(name) for name in OF_JUDGES[:2]}
    )
    if shared.aggregate_only:
        shared.decide(at)
    check_observed(at.run)
    if is_spot_check:
        _spot_check(at, overrides, second_judge, spot_check_n)
    elif is_collecting:
        _collect(at, shared)
    else:
        names = (*names_of(metrics), *(["claim_support"] if claim_level else []))
        judging = _judging(at, overrides, overrides.get("judge"))
        if is_batch:
            submit_batch(at, judging, names)
        else:
            _judge_again(at, judging, names, shared, is_named="judge" in overrides)


def _judging(at: OpenedRun, overrides: dict[str, str], spec: str | None) -> dict[str, Any]:
    """Return the settings that replace the run's; another judge that names no server uses the project's."""
    server = {} if spec is None else {"judge": spec, "judge_base_url": at.settings.judge_base_url}
    return {"retrieval_only": False, **overrides, **server}


def _planned(at: OpenedRun, judging: Mapping[str, Any], metrics: tuple[str, ...]) -> Plan:
    plan = plan_again(at.run, at.settings, at.root, metrics=metrics, judging=judging)
    was_retrieval_only = at.run.config["settings"]["retrieval_only"]
    if (was_retrieval_only and not metrics) or (not plan.rubrics and plan.settings.judge != "none"):
        raise SettingsError(
            f"run {at.run.run_id} measures nothing that is judged; name what to judge, as in "
            "--metrics groundedness,correctness"
        )
    return plan


def _judge_again(
    at: OpenedRun,
    judging: Mapping[str, Any],
    metrics: tuple[str, ...],
    shared: RescoreOptions,
    *,
    is_named: bool,
    batched: BatchedRun | None = None,
) -> None:
    """Judge the answers and score the run; from the replies of `batched` if they were collected."""
    plan = _planned(at, judging, metrics)
    labels = shared.labels(at)
    with interruptible(at.run.run_id) as begin_writing:
        with _judge_at_hand(plan, at, batched) as judge:
            cost = estimate(judge, plan, at.run.finished_metrics["total_tests"]) if batched is None else None
            if cost is not None:
                click.echo(printable(cost), err=True)
            if not is_named:
                check_judge_of(at.run, judge)
            described = described_judge(judge, plan.settings.judge_temperature)
            check = {} if judge.heuristic else {"judge_check": run_check(at.project, judge, plan)}
            rescoring = Rescoring(at.run, plan, at.baseline, labels, changed={"judge": described, **check})
            with Progress("judged") as watch:
                again = Rejudge(at.run, plan, judge, watch)

                def judged(lines: Lines) -> Lines:
                    yield from again.lines(lines)
                    begin_writing()

                finished = rescoring.score(judged)
        if again.problem is not None:
            failed = f"{again.failed} of {counted(again.judged, 'answer')} could not be judged"
            _tell(f"{failed}; the first: {again.problem.kind}: {again.problem.message}")
        if batched is not None:
            batched.end()
        shared.end(finished, plan, at)


# ── batches ───────────────────────────────────────────────────────────────────────────────────────────────────


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
    _say_submitted(batched, waiting, tell)


def _say_submitted(batched: BatchedRun, requests: int, tell: Callable[[str], None] = click.echo) -> None:
    ids = printable(", ".join(batched.submission.batches))
    tell(f"submitted {counted(requests, 'request')} as batch {ids}, at half price")
    tell(f"within a day: rageval judge {batched.run.run_id} --collect")


def _collect(at: OpenedRun, shared: RescoreOptions) -> None:
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
        if further := len(batched.client.waiting):
            batched.submit()
            why = "could be asked only with these replies" if states else "had not been submitted"
            click.echo(f"{counted(further, 'request')} {why}")
            _say_submitted(batched, further)
            sys.exit(NOT_READY)
    if not any(reply.status == 200 for reply in batched.client.replies.values()):
        batched.end()  # nothing came: it may be submitted again
    judging = submission.judging
    _judge_again(at, judging, submission.metrics, shared, is_named="judge" in judging, batched=batched)


@contextmanager
def _batched(at: OpenedRun, submission: Submission) -> Iterator[BatchedRun]:
    plan = _planned(at, submission.judging, submission.metrics)
    if plan.settings.judge_cache == "replay":
        raise SettingsError("judge_cache: in replay nothing is asked, and so nothing is submitted")
    made = partial(configured_judge, plan.settings, at.root, "nobody judges; name a judge with --judge")
    cache = project_cache(at.project.settings, at.project.judge_cache_file)
    with closing(cache) if cache is not None else nullcontext():
        yield BatchedRun(at.run, plan, submission, made, cache)


def _spot_check(at: OpenedRun, overrides: dict[str, str], second_judge: str | None, n: int | None) -> None:
    if second_judge is None and "rubrics" not in overrides:
        raise click.UsageError("--spot-check needs a second opinion: --second-judge SPEC, or --rubrics DIR")
    first = plan_again(at.run, at.settings, at.root)
    second = plan_again(
        at.run, at.settings, at.root, judging=_judging(at, overrides, second_judge or overrides.get("judge"))
    )
    folder = RunFolder(at.run.path)
    with _judge_at_hand(second, at) as judge:
        if second_judge is None and "judge" not in overrides:
            check_judge_of(at.run, judge)
        with interruptible(at.run.run_id) as begin_writing, Progress("judged") as watch:
            folder.lock()
            try:
                check = check_by_second_judge(at.run, first, second, judge, n, watch)
                begin_writing()
                metrics = dict(at.run.finished_metrics) | {"judge_reliability": check.figures}
                in_short = {name: check.figures[name] for name in ("disagreement_rate", "spot_check_n")}
                metrics["aggregate_metrics"] = metrics["aggregate_metrics"] | {"judge_reliability": in_short}
                write_metrics(at.run.path / "metrics.json", metrics)
                if is_last_run(metrics, at.project.reports):
                    write_metrics(at.project.reports / "metrics.json", metrics)
                for problem in write_reports(at.run.path, first, at.run.scores or {}):
                    _tell(problem)
            finally:
                folder.close()
        for line in _lines(check):
            click.echo(printable(line))
        if check.served:
            names = ", ".join(sorted(check.served))
            _tell(f"WARNING: both judges were served by {names}: this shows how steady it is, not whether it is right")
        if (rate := check.figures["disagreement_rate"]) > TOO_OFTEN:
            disagree = f"the judges disagree on {percent(rate)} of the answers"
            _tell(f"WARNING: {disagree}: do not rely on either before people have judged some")


def _judge_at_hand(plan: Plan, at: OpenedRun, batched: BatchedRun | None = None) -> AbstractContextManager[BaseJudge]:
    problem = "nobody judges; name a judge with --judge"
    judge = None if batched is None else batched.deferring_judge()
    give_secret = RunFolder(at.run.path).give_secret
    return judge_at_hand(at.project, plan.settings, plan.mask, problem, _tell, judge, give_secret)


def _tell(note: str) -> None:
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


SHOWN = 50


def _lines(check: SpotCheck) -> Iterator[str]:
    figures = check.figures
    answers = counted(figures["spot_check_n"], "answer")
    yield f"{figures['judge']} and {figures['second_judge']} on {answers}"
    rows = [["rubric", "scores", "disagree", "rate", "mean difference"]]
    for rubric, counts in figures["by_rubric"].items():
        rate, difference = percent(counts["disagreement_rate"]), f"{counts['mean_difference']:.3f}"
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
