"""`rageval judge-check`: put answers whose worth is beyond doubt to a judge, before its scores are believed."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pytest_rageval.cli.check_lines import conclusion_lines, estimate_lines, table_lines
from pytest_rageval.cli.exit_codes import exit_codes
from pytest_rageval.cli.json_output import echo_json
from pytest_rageval.config.project import find_project
from pytest_rageval.judges.canaries import Verdict
from pytest_rageval.judges.judge import Judge, identity_of
from pytest_rageval.plan import own_rubrics
from pytest_rageval.text import printable
from pytest_rageval.tools.judge_check import NO_JUDGE, configured_judge, keep_result, verdicts_on


@click.command("judge-check")
@click.option("--judge", "spec", metavar="SPEC", help="The judge (default: as configured).")
@click.option("--judge-base-url", metavar="URL", help="Its server, where the spec names none (default: as configured).")
@click.option(
    "--repeats",
    type=click.IntRange(1, 99),
    default=1,
    metavar="N",
    help="Put each canary so many times; it must be right each time.",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object instead of text.")
@exit_codes({0: "all canaries passed", 1: "some did not", 2: "wrong usage, or the judge cannot be asked"})
def judge_check(spec: str | None, judge_base_url: str | None, repeats: int, *, as_json: bool) -> None:
    """Put canaries to a judge: answers known to be good or bad, some of which ask for a better score.

    A judge that fails them is not fit for its rubric; one that passes may still err on harder cases, which only a
    comparison with people's labels tells. A model is asked some 60 short questions. The result is kept beside the judge
    cache and stands in config.json of later runs with this judge.
    """
    project = find_project({"judge": spec, "judge_base_url": judge_base_url})
    wordings = own_rubrics(project.settings, project.root)
    judge = configured_judge(project.settings, project.root, NO_JUDGE)
    for line in estimate_lines(judge, wordings, repeats):
        click.echo(printable(line), err=True)
    verdicts = verdicts_on(judge, wordings, repeats)
    if (note := keep_result(project, judge, verdicts, wordings, repeats)) is not None:
        click.secho(printable(note), fg="yellow", err=True)
    conclusion = [printable(line) for line in conclusion_lines(judge.model, verdicts)]
    if as_json:
        is_sound = all(verdict.passed for verdict in verdicts)
        echo_json(_as_json(judge, verdicts, conclusion, repeats), ["rageval run"] if is_sound else ())
    else:
        click.echo("\n".join((*table_lines(verdicts), "", *conclusion)))
    raise SystemExit(0 if all(verdict.passed for verdict in verdicts) else 1)


def _as_json(judge: Judge, verdicts: Sequence[Verdict], conclusion: Sequence[str], repeats: int) -> dict[str, object]:
    return {
        "model": judge.model,
        "identity": identity_of(judge),
        "heuristic": judge.heuristic,
        "repeats": repeats,
        "passed": sum(verdict.passed for verdict in verdicts),
        "failed": sum(not verdict.passed for verdict in verdicts),
        "verdicts": [
            {
                "rubric": verdict.rubric,
                "canary": verdict.canary,
                "expected": list(verdict.expected),
                "score": verdict.score,
                "scores": list(verdict.scores),
                "error": verdict.error,
                "passed": verdict.passed,
            }
            for verdict in verdicts
        ],
        "conclusion": list(conclusion),
    }
