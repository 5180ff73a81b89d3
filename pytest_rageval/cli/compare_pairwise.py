"""`rageval compare A B --pairwise`: a judge compares the answers of two runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from pytest_rageval.check.pairwise import PairwiseTold, compare_pairwise, fails_gates, written_gates
from pytest_rageval.cli.options import STOPPED, with_next
from pytest_rageval.cli.output import Progress
from pytest_rageval.comparison.baseline import open_side
from pytest_rageval.config.options import OPTIONS
from pytest_rageval.config.project import find_project
from pytest_rageval.io.json_text import json_text
from pytest_rageval.render.markdown.view_markdown import view_markdown
from pytest_rageval.text import printable
from pytest_rageval.views.pairwise import PairwiseView, pairwise_view

F = TypeVar("F", bound=Callable[..., object])
CACHE_MODES = next(option.choices for option in OPTIONS if option.name == "judge-cache")
OF_JUDGES = ("judge", "judge_base_url", "judge_cache", "max_cost")
"""Settings that the options replace."""
MOST_NEXT = 3
"""Losses to name in `next`."""


def pairwise_options(command: F) -> F:
    """Add `--pairwise` and what goes with it."""
    about_judge = "With --pairwise: the model that judges (default: as configured)."
    about = "Let a model judge which run answers better, case by case; needs no gold."
    about_gate = "Gate on its result, as in 'run win_rate.low >= 0.45' (repeatable)."
    command = click.option("--gate", "gates", multiple=True, metavar="EXPR", help=about_gate)(command)
    about_cost = "US dollars after which no new judgement is asked for."
    about_cache = "How to use stored judgements."
    command = click.option("--max-cost", metavar="USD", help=about_cost)(command)
    command = click.option("--judge-cache", type=click.Choice(CACHE_MODES), help=about_cache)(command)
    command = click.option("--judge-base-url", metavar="URL", help="Its server, unless the judge names one.")(command)
    command = click.option("--judge", metavar="SPEC", help=about_judge)(command)
    return click.option("--pairwise", "is_pairwise", is_flag=True, help=about)(command)


def check_pairwise_options(options: Mapping[str, Any]) -> None:
    """Raise UsageError for options that go with `--pairwise` without it, and for those that do not go with it."""
    if options["is_pairwise"]:
        if options["ignore_invariants"]:
            raise click.UsageError(
                "--ignore-invariants is about scores, of which --pairwise compares none; leave it out"
            )
        return
    given = [name for name in OF_JUDGES if options[name] is not None]
    flags = [f"--{name.replace('_', '-')}" for name in given]
    if options["gates"]:
        flags.append("--gate")
    if flags:
        raise click.UsageError(f"{', '.join(flags)}: only with --pairwise")


def pairwise_text(
    before: str, after: str, form: str, options: dict[str, Any], terminal_text: Callable[[PairwiseView], str]
) -> tuple[str, int]:
    """Compare two runs; return the result in the form that was asked for, and the exit code.

    terminal_text  lays a view out for the terminal, or for a file
    """
    overriding = {name: options[name] for name in ("reports", *OF_JUDGES)}
    project = find_project(overriding)
    gates = written_gates(project, options["gates"])
    sides = [open_side(project.reports, project.baseline_file, run) for run in (before, after)]
    try:
        with Progress("judged") as watch:
            told = PairwiseTold(cost=_tell, note=_tell, watch=watch)
            content = compare_pairwise(sides[0], sides[1], project, gates, told)
    except KeyboardInterrupt:
        click.echo("interrupted; what was judged is in the judge cache: the same command goes on from there", err=True)
        sys.exit(STOPPED)
    code = 1 if fails_gates(content) and not options["exit_zero"] else 0
    if form == "json":
        return json_text(with_next(content, _next(content, [before, after])), sort_keys=True) + "\n", code
    if form == "html":
        from pytest_rageval.render.html.pairwise_page import pairwise_html  # here: templates take 100 ms

        return pairwise_html(content), code
    view = pairwise_view(content)
    return (view_markdown(view) if form == "markdown" else terminal_text(view)), code


def _tell(note: str) -> None:
    click.secho(printable(note), fg="yellow", err=True)


def _next(content: Mapping[str, Any], runs: Sequence[str]) -> Iterator[str]:
    for case in content["clearest_losses"][:MOST_NEXT]:
        yield f"rageval explain {shlex.join([runs[1], case['case_key']])}"
    yield f"rageval compare {shlex.join(runs)}"
