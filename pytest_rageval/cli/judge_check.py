"""`rageval judge-check`: put answers whose worth is beyond doubt to a judge, before its scores are believed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from pytest_rageval.cli.options import JSON, echo_json, exit_codes, run_options, settings_given
from pytest_rageval.config.project import find_project
from pytest_rageval.judges.canaries import Verdict, canaries_for, rubrics_of
from pytest_rageval.judges.judge import Judge, identity_of
from pytest_rageval.llm.endpoint_options import Tariff
from pytest_rageval.model import Rubric
from pytest_rageval.plan import own_rubrics
from pytest_rageval.render.text.columns import aligned
from pytest_rageval.text import printable
from pytest_rageval.tools.judge_check import NO_JUDGE, configured_judge, keep_result, verdicts_on

VERDICT = ("rubric", "canary", "expected", "score", "scores", "error", "passed")
PASSAGES = 1
"""Passages of usual length: those of the canaries are short."""


@click.command("judge-check")
@run_options("judge", "judge-base-url")
@click.option(
    "--repeats",
    type=click.IntRange(1, 99),
    default=1,
    metavar="N",
    help="Put each canary so many times; it must be right each time.",
)
@JSON
@exit_codes({0: "all canaries passed", 1: "some did not", 2: "wrong usage, or the judge cannot be asked"})
def judge_check(repeats: int, *, as_json: bool, **options: Any) -> None:
    """Put canaries to a judge: answers known to be good or bad, some of which ask for a better score.

    A judge that fails them is not fit for its rubric; one that passes may still err on harder cases, which only a
    comparison with people's labels tells. A model is asked some 60 short questions. The result is kept beside the judge
    cache and stands in config.json of later runs with this judge.
    """
    project = find_project(settings_given(options))
    wordings = own_rubrics(project.settings, project.root)
    judge = configured_judge(project.settings, project.root, NO_JUDGE)
    if (cost := estimated_cost(judge, wordings, repeats)) is not None:
        click.echo(printable(cost), err=True)
    verdicts = verdicts_on(judge, wordings, repeats)
    if (note := keep_result(project, judge, verdicts, wordings, repeats)) is not None:
        click.secho(printable(note), fg="yellow", err=True)
    conclusion = [printable(line) for line in conclusion_lines(judge.model, verdicts)]
    passed = sum(verdict.passed for verdict in verdicts)
    is_sound = passed == len(verdicts)
    if as_json:
        content = {
            "model": judge.model,
            "identity": identity_of(judge),
            "heuristic": judge.heuristic,
            "repeats": repeats,
            "passed": passed,
            "failed": len(verdicts) - passed,
            "verdicts": [{name: getattr(verdict, name) for name in VERDICT} for verdict in verdicts],
            "conclusion": conclusion,
        }
        echo_json(content, ["rageval run"] if is_sound else ())
    else:
        click.echo("\n".join((*table_lines(verdicts), "", *conclusion)))
    raise SystemExit(0 if is_sound else 1)


def estimated_cost(judge: Judge, wordings: Mapping[str, Rubric], repeats: int) -> str | None:
    """Return the estimated cost of the canaries; None for a judge that is free."""
    tariff: Tariff | None = getattr(judge, "tariff", None)
    if tariff is None:
        return None
    prompts = [rubric.prompt for rubric, _ in canaries_for(judge, wordings)]
    dollars = tariff.estimate(prompts, passages=PASSAGES, times=repeats)
    cost = "its price is not known" if dollars is None else f"about ${dollars:.2f} by list prices"
    return f"judge {tariff.model}: {len(prompts) * repeats} short requests, {cost}"


def table_lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield each canary with the expected and the actual result."""
    rows = [("", "rubric", "canary", "expected", "came")]
    rows += [
        ("✓" if verdict.passed else "✗", verdict.rubric, verdict.canary, _band(verdict), _came(verdict))
        for verdict in verdicts
    ]
    yield from aligned(rows, to_the_left=True)
    for error in dict.fromkeys(verdict.error for verdict in verdicts if verdict.error is not None):
        yield f"error: {error}"


def conclusion_lines(model: str, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield one line each on what the judge can and cannot be trusted with."""
    by_rubric = rubrics_of(verdicts)
    if trusted := [rubric for rubric, group in by_rubric.items() if all(verdict.passed for verdict in group)]:
        yield f"{model} can be trusted with {', '.join(trusted)}, as far as these canaries tell"
    for rubric, group in by_rubric.items():
        failed = [verdict for verdict in group if not verdict.passed]
        names = ", ".join(verdict.canary for verdict in failed)
        # The same bad answer without the attack got a low score, so the attack raised it.
        if failed and all(verdict.is_attack and verdict.score is not None for verdict in failed):
            yield f"{model} is talked into a better score for {rubric}: {names}"
        elif failed:
            yield f"{model} cannot be trusted with {rubric}, {len(failed)} of {len(group)} canaries failed: {names}"


def _band(verdict: Verdict) -> str:
    low, high = verdict.expected
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _came(verdict: Verdict) -> str:
    if verdict.score is None:
        return "no score" if verdict.error is None else "error"
    least, most = min(verdict.scores), max(verdict.scores)
    spread = f" ({round(least, 3):g} to {round(most, 3):g})" if most > least else ""
    return f"{round(verdict.score, 3):g}{spread}" + ("" if verdict.error is None else ", error")
