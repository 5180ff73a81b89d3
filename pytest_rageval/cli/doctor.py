"""`rageval doctor`: checks that this project is ready to run, and what to mend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from pytest_rageval.check.diagnosis import MARKS, Diagnosis
from pytest_rageval.check.doctor import CHECKS, diagnoses
from pytest_rageval.check.judge_check import try_judge
from pytest_rageval.cli.options import JSON, echo_json, exit_codes
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import SettingsError
from pytest_rageval.render.text.columns import aligned
from pytest_rageval.text import printable


@click.command()
@click.option("--judge", "is_judge_tried", is_flag=True, help="Put canaries to the judge too, which may cost money.")
@JSON
@exit_codes({0: "nothing is wrong", 1: "something is wrong"})
def doctor(*, is_judge_tried: bool, as_json: bool) -> None:
    """Check what a run needs, from configuration to disk: ✔ fine, ! doubtful, ✘ wrong, each with what to do.

    Takes at most 5 seconds and asks the system one question. With --judge, it shows what the canaries of
    `rageval judge-check` may cost, and puts them to the judge.
    """
    diagnosed = list(_diagnosed(is_judge_tried=is_judge_tried))
    is_ready = all(finding.mark != "problem" for _, finding in diagnosed)
    if as_json:
        listed = [_content(subject, finding) for subject, finding in diagnosed]
        echo_json({"ready": is_ready, "findings": listed}, _next(diagnosed, is_ready=is_ready))
    else:
        rows = [_row(subject, finding) for subject, finding in diagnosed]
        click.echo(printable("\n".join(aligned(rows, to_the_left=True))))
    raise SystemExit(0 if is_ready else 1)


def _content(subject: str, finding: Diagnosis) -> dict[str, str]:
    return {"check": subject, "mark": finding.mark, "what": finding.what, "fix": finding.fix}


def _row(subject: str, finding: Diagnosis) -> tuple[str, str, str]:
    words = f"{finding.what}; {finding.fix}" if finding.fix else finding.what
    return MARKS[finding.mark], subject, words


def _next(diagnosed: Sequence[tuple[str, Diagnosis]], *, is_ready: bool) -> Iterator[str]:
    """Yield commands: those that mend problems, then the run if it is possible, then those for doubts."""
    helpful = [finding for _, finding in diagnosed if finding.command]
    yield from (finding.command for finding in helpful if finding.mark == "problem")
    if is_ready:
        yield "rageval run"
    yield from (finding.command for finding in helpful)


def _diagnosed(*, is_judge_tried: bool) -> Iterator[tuple[str, Diagnosis]]:
    try:
        project = find_project()
    except SettingsError as error:
        yield from (("configuration", Diagnosis("problem", problem)) for problem in error.problems)
        return
    yield from diagnoses(CHECKS, project)
    if is_judge_tried:
        yield from (("judge check", finding) for finding in _judge_check(project))


def _judge_check(project: Project) -> Iterator[Diagnosis]:
    try:
        tried = try_judge(project, lambda cost: click.echo(printable(cost), err=True))
    except SettingsError as error:
        yield from (Diagnosis("problem", problem) for problem in error.problems)
        return
    if tried.note is not None:
        yield Diagnosis("warning", tried.note)
    for conclusion in tried.conclusions():
        if conclusion.is_trusted:
            yield Diagnosis("ok", conclusion.line)
        else:
            yield Diagnosis("warning", conclusion.line, "rageval judge-check shows each canary")
    if not tried.is_sound:
        yield Diagnosis("warning", "no score of such a rubric should gate", "take a larger or newer model")
