"""`rageval run`: ask, judge, score and gate cases outside pytest, with its records, reports and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from pytest_rageval.cases.discovery import unread_note
from pytest_rageval.cli.case_files import BrokenCaseFiles, CaseChoice, select_cases
from pytest_rageval.cli.options import (
    BROKEN_CASES,
    CODES_OF_PYTEST,
    INTERRUPTED,
    NO_CASES,
    PLACE,
    USAGE,
    echo_json,
    exit_codes,
    run_options,
    settings_given,
    with_present_names,
)
from pytest_rageval.cli.pipeline import CommandRun, Workers, prepare_unjudged
from pytest_rageval.cli.screen import Screen
from pytest_rageval.config.options import kind_of
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import JudgeUnavailable, RagevalError, SettingsError, without_pytest
from pytest_rageval.io.environment_secrets import secrets_of_environment
from pytest_rageval.io.masking import Mask
from pytest_rageval.providers import BATCHED
from pytest_rageval.run.prepare import (
    NO_TARGET,
    Preparation,
    check_can_answer,
    check_gate_conditions,
    make_target,
    prepare,
)
from pytest_rageval.scale.local_crew import LocalCrew
from pytest_rageval.scale.ray_cluster import RayCluster
from pytest_rageval.text import counted

SKIPPED_LAYERS = ("retrieval", "abstention")
NAMES = {"--eval-set": "PATHS", "--api-url": "--target", "--judge-model": "--judge", "--output-dir": "--reports",
         "--use-judge": None}  # fmt: skip


class WrongUsage(click.UsageError):
    """Wrong usage with pytest's exit code for it: 2 would mean that a run was interrupted."""

    exit_code = USAGE


class WithCodesOfPytest(click.Command):
    """A command whose wrong usage ends with pytest's exit code."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, with_present_names(args, NAMES), parent, **extra)
        except click.UsageError as error:
            raise WrongUsage(error.format_message(), error.ctx) from None


@click.command(cls=WithCodesOfPytest)
@click.argument("paths", nargs=-1, type=PLACE)
@run_options()
@click.option("--skip-judges", is_flag=True, help="Judge nothing now; `rageval judge RUN --judge SPEC` does it later.")
@click.option(
    "--judge-batch",
    is_flag=True,
    help="Submit the judging as a batch, at half price; `rageval judge RUN --collect` finishes the run.",
)
@click.option("--skip-retrieval-metrics", is_flag=True, help="Leave the metrics of retrieval out.")
@click.option("--skip-abstention-metrics", is_flag=True, help="Leave the metrics of abstention out.")
@click.option("--skip-description-prompt", is_flag=True, help="Ask for no description (asked on a terminal only).")
@click.option("--only", metavar="FILTER", help="Cases of an earlier run, in the words of its report: 'changed:worse'.")
@click.option("--from", "from_run", metavar="RUN", help="The run that --only looks at (default: latest).")
@click.option(
    "--engine",
    type=click.Choice(["process", "ray"]),
    default="process",
    show_default=True,
    help="What evaluates the cases: this machine, or workers on a Ray cluster.",
)
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="Head of the Ray cluster; auto: the one that runs here (default: RAY_ADDRESS, else one is started).",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Evaluate the cases in N processes (default: this one; on Ray one a CPU).",
)
@click.option("--json", "as_json", is_flag=True, help="Write the outcome as one JSON object on the last line.")
@exit_codes(CODES_OF_PYTEST, is_all=True)
def run(
    paths: tuple[Path, ...],
    *,
    only: str | None,
    from_run: str | None,
    engine: str,
    address: str | None,
    workers: int | None,
    **parameters: Any,
) -> None:
    """Ask, judge, score and gate the cases of PATHS (files or folders; default: those of the project).

    Does what pytest does, without test items: the same records, reports and gates. Fixtures and hooks of a conftest.py
    work in pytest only. A failing step is reported, and the others continue.
    """
    if engine != "ray" and address is not None:
        raise WrongUsage("--address is for --engine ray; write that too, or leave --address out")
    if from_run is not None and only is None:
        raise WrongUsage("--from names the run that --only looks at; write that too, as in --only changed:worse")
    given = settings_given(parameters)
    skipped = [layer for layer in SKIPPED_LAYERS if parameters[f"skip_{layer}_metrics"]]
    if skipped and given.get("skipped"):
        skipped.append(given["skipped"])
    if skipped:
        given["skipped"] = ",".join(skipped)
    if parameters["skip_judges"]:
        given["judge"] = "none"
    code = _run(
        partial(_project, given, is_prompted=not parameters["skip_description_prompt"]),
        CaseChoice(paths, only, from_run or "latest"),
        _workers(engine, address, workers),
        as_json=parameters["as_json"],
        is_batched=parameters["judge_batch"],
    )
    sys.exit(code)


def run_in(root: Path, wanted: CaseChoice) -> int:
    """Run the cases of the project in this folder, as configured; return the exit code."""
    return _run(lambda: Project(root, load_settings(root)), wanted)


def _run(
    project: Callable[[], Project],
    wanted: CaseChoice,
    crew: AbstractContextManager[Workers | None] = nullcontext(),  # noqa: B008 because it holds nothing
    *,
    as_json: bool = False,
    is_batched: bool = False,
) -> int:
    screen = Screen(Mask(secrets_of_environment(os.environ)))
    content: dict[str, Any]
    try:
        code, content = run_project(project(), wanted, screen, crew, is_batched=is_batched)
    except BrokenCaseFiles as error:
        code = BROKEN_CASES
        content = {"problems": screen.problems(*error.problems), "next": ["rageval cases validate"]}
    except RagevalError as error:
        code = USAGE
        content = {"problems": screen.problems(*error.problems), "next": ["rageval doctor"]}
    except (KeyboardInterrupt, click.Abort):
        code = INTERRUPTED
        content = {"problems": screen.problems("interrupted: nothing was asked"), "next": ["rageval run"]}
    if as_json:
        commands = content.get("next", ())
        echo_json({"exit_code": code, **content}, commands, indent=None)
    return code


def run_project(
    project: Project,
    wanted: CaseChoice,
    screen: Screen,
    crew: AbstractContextManager[Workers | None],
    *,
    is_batched: bool = False,
) -> tuple[int, dict[str, Any]]:
    """Run the cases of a project, here or by a crew; return the exit code and the other content of `--json`.

    Raise RagevalError for problems before the first question. `is_batched`: submit the judging as a batch at the end.
    """
    if project.settings.target is None:
        raise SettingsError(NO_TARGET)
    left_out_judge = None
    try:
        prepared = prepare(project, is_before_cases=True)
        if is_batched:
            if getattr(prepared.judge, "batch_wire", None) is None:
                raise SettingsError(f"--judge-batch: batches are for a judge {' or '.join(BATCHED)}")
            prepared = prepare_unjudged(project)
    except JudgeUnavailable as error:
        screen.step_failed("judging", "; ".join(error.problems))
        prepared = prepare_unjudged(project)
        left_out_judge = project.settings.judge
    screen.mask = prepared.mask
    cases = select_cases(prepared.project, wanted)
    check_gate_conditions(prepared, cases.files)
    if not cases.asked:
        problems = screen.problems(_why_no_case(prepared, wanted))
        commands = [] if cases.cases else ["rageval init --yes"]
        return NO_CASES, {"problems": problems, "next": commands}
    unread = unread_note(cases.paths, prepared.project.root)
    if unread is not None:
        screen.line(unread, colour="yellow")
    target = make_target(prepared.project)
    # A dry run asks nothing: it checks files of answers only.
    is_checkable_unasked = kind_of(prepared.settings.target or "").is_checkable
    if is_checkable_unasked or not prepared.settings.dry_run:
        check_can_answer(prepared, target, cases.cases)
    if prepared.settings.dry_run:
        number = counted(len(cases.asked), "case")
        screen.line(f"dry run: {number}; settings, cases and gates are fine, nothing was asked")
        return 0, {"cases": len(cases.asked), "next": ["rageval run"]}
    with crew as workers:
        ended = CommandRun(prepared, cases, target, screen, workers, left_out_judge)
        with without_pytest():
            ended.take_all_steps()
        code = ended.show()
        content = ended.outcome()
        if is_batched and ended.finished is not None and not ended.is_interrupted:
            _submit_judging(ended, project.settings, screen)
        return code, content


def _submit_judging(ended: CommandRun, settings: Settings, screen: Screen) -> None:
    from pytest_rageval.cli.judge_batch import submit_batch  # here, because few runs are judged so
    from pytest_rageval.cli.stored_run import open_run

    judging = {"judge": settings.judge, "judge_base_url": settings.judge_base_url, "retrieval_only": False}
    reports = str(ended.prepared.project.reports)
    at = open_run(ended.run_id, reports=reports, judge=settings.judge)
    submit_batch(at, judging, tell=screen.line)


@contextmanager
def _workers(engine: str, address: str | None, number: int | None) -> Iterator[Workers | None]:
    """Yield the workers, as long as the run needs their machines; None if this process asks."""
    if engine != "ray":
        yield Workers(LocalCrew, number) if number is not None else None
        return
    cluster = RayCluster(address)
    try:
        yield Workers(cluster.crew, number or cluster.cpus)
    finally:
        # That takes seconds. The run has ended and its verdict was shown: Ctrl-C only shortens the wait.
        with suppress(KeyboardInterrupt):
            cluster.close()


def _project(given: dict[str, Any], *, is_prompted: bool) -> Project:
    """Return the project of the current folder; prompt for a description at a terminal if none is given."""
    project = find_project(given)
    settings = project.settings
    is_person = sys.stdin.isatty() and sys.stdout.isatty()
    needs_none = settings.description or settings.dry_run or settings.resume
    if needs_none or not is_prompted or not is_person:
        return project
    text: str = click.prompt("Description of this run (Enter: none)", default="", show_default=False)
    described = settings.model_copy(update={"description": text.strip() or None})
    return project._replace(settings=described)


def _why_no_case(prepared: Preparation, wanted: CaseChoice) -> str:
    settings = prepared.settings
    if wanted.only is not None:
        return f"--only: no case of run {wanted.from_run} is {wanted.only!r}; leave a term out"
    if settings.shard is not None:
        return f"--shard: no case is in part {settings.shard}; take fewer parts"
    return f"no case files; looked for {', '.join(settings.cases)}; write evalcases/NAME.jsonl, or call rageval init"
