"""`rageval judge-check`: put answers whose worth is beyond doubt to a judge, before its scores are believed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from pytest_rageval.check.judge_check import try_judge
from pytest_rageval.cli.options import JSON, echo_json, exit_codes, run_options, settings_given
from pytest_rageval.config.project import find_project
from pytest_rageval.judges.canaries import Verdict
from pytest_rageval.judges.judge import identity_of
from pytest_rageval.render.text.columns import aligned
from pytest_rageval.text import printable

VERDICT = ("rubric", "canary", "expected", "score", "scores", "error", "passed")


@click.command("judge-check")
@run_options("judge", "judge-base-url")
@click.option(
    "--repeats",
    type=click.IntRange(1, 99),
    default=1,
    metavar="N",
    help="Put each canary N times; all verdicts must be right.",
)
@JSON
@exit_codes({0: "all canaries passed", 1: "some did not", 2: "wrong usage, or the judge cannot be asked"})
def judge_check(repeats: int, *, as_json: bool, **options: Any) -> None:
    """Put canaries to a judge: answers known to be good or bad, some of which ask for a better score.

    A judge that fails them is not fit for its rubric. One that passes may still err on harder cases: compare it with
    people's labels. A model is asked some 60 short questions. Later runs with this judge record the result in
    config.json.
    """
    project = find_project(settings_given(options))
    tried = try_judge(project, lambda cost: click.echo(printable(cost), err=True), repeats)
    judge = tried.judge
    verdicts = tried.verdicts
    if tried.note is not None:
        click.secho(printable(tried.note), fg="yellow", err=True)
    conclusion = [printable(found.line) for found in tried.conclusions()]
    passed = sum(verdict.passed for verdict in verdicts)
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
        echo_json(content, ["rageval run"] if tried.is_sound else ())
    else:
        click.echo("\n".join((*table_lines(verdicts), "", *conclusion)))
    raise SystemExit(0 if tried.is_sound else 1)


def table_lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield each canary with the expected and the actual result."""
    rows = [("", "rubric", "canary", "expected", "received")]
    for verdict in verdicts:
        mark = "✓" if verdict.passed else "✗"
        rows.append((mark, verdict.rubric, verdict.canary, _expected(verdict), _received(verdict)))
    yield from aligned(rows, to_the_left=True)
    for error in dict.fromkeys(verdict.error for verdict in verdicts if verdict.error is not None):
        yield f"error: {error}"


def _expected(verdict: Verdict) -> str:
    low, high = verdict.expected
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _received(verdict: Verdict) -> str:
    if verdict.score is None:
        return "no score" if verdict.error is None else "error"
    text = f"{round(verdict.score, 3):g}"
    least = min(verdict.scores)
    most = max(verdict.scores)
    if most > least:
        text += f" ({round(least, 3):g} to {round(most, 3):g})"
    if verdict.error is not None:
        text += ", error"
    return text
