"""`rageval judge RUN`: the answers of a stored run judged again, or some of them by a second judge."""

from __future__ import annotations

from typing import Any

import click

from pytest_rageval.cli.judge_batch import collect_batch, submit_batch
from pytest_rageval.cli.judging import judge_again, judging_settings
from pytest_rageval.cli.options import NOT_READY, STOPPED, CommandOnRun, exit_codes
from pytest_rageval.cli.score import RescoreOptions, rescore_options, take_rescore_options
from pytest_rageval.cli.spot_check import run_spot_check
from pytest_rageval.cli.stored_run import open_run, run_argument
from pytest_rageval.config.options import OPTIONS
from pytest_rageval.rescore.rescore import check_observed
from pytest_rageval.text import names_of

CACHE_MODES = next(option.choices for option in OPTIONS if option.name == "judge-cache")
OF_JUDGES = ("judge", "judge_base_url", "rubrics")
"""Settings that replace those of the run; the last is a key of the table alone."""


@click.command(cls=CommandOnRun)
@run_argument
@click.option("--judge", metavar="SPEC", help="Who judges (default: the judge of the run).")
@click.option("--judge-base-url", metavar="URL", help="Its server, unless the judge names one.")
@click.option("--judge-cache", "cache_mode", type=click.Choice(CACHE_MODES), help="How to use stored judgements.")
@click.option("--rubrics", metavar="DIR", help="Folder of rubrics to judge by (default: that of the run).")
@click.option("--metrics", metavar="NAMES", help="Further metrics to judge and score, comma-separated.")
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
    overrides = {}
    for name in OF_JUDGES:
        value = options.pop(name)
        if value is not None:
            overrides[name] = value
    flags = {"--judge": overrides, "--metrics": metrics, "--claim-level": claim_level, "--spot-check": is_spot_check}
    shared = take_rescore_options(options, changes_scores=[flag for flag, value in flags.items() if value])
    _check_usage(shared, is_batch=is_batch, is_collecting=is_collecting, is_spot_check=is_spot_check)
    if is_collecting and (overrides or metrics or claim_level):
        raise click.UsageError("--collect judges as was submitted; name judge, rubrics and metrics with --batch")
    at = open_run(
        run,
        reports=reports,
        baseline=baseline,
        judge_cache=cache_mode,
        max_cost=max_cost,
        judge=overrides.get("judge"),
        judge_base_url=overrides.get("judge_base_url"),
    )
    if shared.aggregate_only:
        shared.decide(at)
    check_observed(at.run)
    if is_spot_check:
        run_spot_check(at, overrides, second_judge, spot_check_n)
        return
    if is_collecting:
        collect_batch(at, shared)
        return
    names = names_of(metrics)
    if claim_level:
        names = (*names, "claim_support")
    judging = judging_settings(at, overrides, overrides.get("judge"))
    if is_batch:
        submit_batch(at, judging, names)
    else:
        judge_again(at, judging, names, shared, is_named="judge" in overrides)


def _check_usage(shared: RescoreOptions, *, is_batch: bool, is_collecting: bool, is_spot_check: bool) -> None:
    """Raise UsageError for kinds of judging that do not go together, or not with the shared options."""
    if is_spot_check and (shared.paths or shared.output_metrics):
        raise click.UsageError("--spot-check changes no score; leave --cases and --output-metrics out")
    if [is_batch, is_collecting, is_spot_check].count(True) > 1:
        raise click.UsageError("--batch, --collect and --spot-check are three things; take one of them")
    if (is_batch or is_collecting) and (shared.paths or shared.aggregate_only):
        raise click.UsageError("a batch judges by the labels of the run; leave --cases and --aggregate-only out")
