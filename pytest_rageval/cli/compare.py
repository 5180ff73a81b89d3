"""`rageval compare A B`: two runs side by side."""

from __future__ import annotations

import gc
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from pytest_rageval.cli.compare_pairwise import check_pairwise_options, pairwise_options, pairwise_text
from pytest_rageval.cli.options import FORM_JSON, REPORTS, STOPPED, exit_codes, output_option, wants_colour, with_next
from pytest_rageval.cli.output import columns, styled, write_output
from pytest_rageval.comparison.baseline import Side, open_side
from pytest_rageval.comparison.pairing import ComparisonReport, build_comparison
from pytest_rageval.config.project import find_project
from pytest_rageval.config.settings import Settings
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.output_encoding import json_for
from pytest_rageval.render.markdown.view_markdown import view_markdown
from pytest_rageval.render.text.view_text import view_lines
from pytest_rageval.text import printable
from pytest_rageval.views.comparison import comparison_view

FORMATS = ("terminal", "markdown", "html", "json")
MOST_NEXT = 5
"""Newly failing cases to name in `next`."""
WIDTH = 100
"""Columns of the terminal's format in a file."""


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--format", "form", type=click.Choice(FORMATS), default="terminal", help="Default: terminal.")
@FORM_JSON
@output_option("Write there, not to the terminal.")
@click.option("--ignore-invariants", is_flag=True, help="Compare scores of another judge, too.")
@click.option("--exit-zero", is_flag=True, help="End with 0 for any verdict.")
@pairwise_options
@REPORTS
@exit_codes(
    {
        0: "run B passes, or --exit-zero",
        1: "run B fails the build; with --pairwise, a gate fails",
        STOPPED: "interrupted while judging",
    }
)
def compare(before: str, after: str, form: str, output: Path | None, **options: Any) -> None:
    """Compare run A (before) with run B (after): ids, `latest`, `latest~1`, `baseline`, folders or metrics files.

    With --pairwise, a model judges which of two answers to each question is better, in both orders, and no metric is
    compared.
    """
    # A run of 100,000 cases is a million small objects without cycles, and the process ends soon.
    gc.disable()
    check_pairwise_options(options)
    if options["is_pairwise"]:
        layout = partial(_terminal_text, is_file=output is not None)
        text, code = pairwise_text(before, after, form, options, layout)
        _write(text, form, output)
        sys.exit(code)
    project = find_project({"reports": options["reports"]})
    sides = [open_side(project.reports, project.baseline_file, run) for run in (before, after)]
    ignores = options["ignore_invariants"] or project.settings.ignore_invariants
    comparison = build_comparison(sides[0], sides[1], project.settings, ignore_invariants=ignores)
    if form == "html":
        text = _page(sides, comparison, project.settings)
    elif form == "json":
        text = json_text(with_next(comparison.content, _next(comparison, sides[1])), sort_keys=True) + "\n"
    elif form == "markdown":
        text = view_markdown(comparison_view(comparison.content))
    else:
        text = _terminal_text(comparison_view(comparison.content), is_file=output is not None)
    _write(text, form, output)
    is_failing = comparison.verdict.fails_build
    if is_failing and not comparison.is_compared:
        _tell_mismatches(comparison)
    sys.exit(1 if is_failing and not options["exit_zero"] else 0)


def _write(text: str, form: str, output: Path | None) -> None:
    """Write the text to the file that was named, or to standard output."""
    if output is not None:
        write_output(output, text)
    elif form == "html":  # a page says of itself that it is in UTF-8
        click.echo(text.encode("utf-8", "backslashreplace"), nl=False)
    elif form == "json":
        click.echo(json_for(sys.stdout, text), nl=False)
    else:
        click.echo(text, nl=False)


def _tell_mismatches(comparison: ComparisonReport) -> None:
    """Say on standard error why the runs are not compared."""
    for problem in comparison.mismatches:
        what = " ".join(printable(str(problem)).split())
        remedy = ""
        if problem.is_ignorable:
            remedy = "; --ignore-invariants compares all the same"
        click.echo(f"ERROR: not comparable: {what}{remedy}", err=True)


def _terminal_text(view: Any, *, is_file: bool) -> str:
    is_coloured = wants_colour() and not is_file
    width = WIDTH if is_file else columns(WIDTH)
    lines = view_lines(view, width)
    texts = [styled(line) if is_coloured else line.text for line in lines]
    return "".join(f"{text}\n" for text in texts)


def _next(comparison: ComparisonReport, after: Side) -> Iterator[str]:
    if after.run is None:
        return
    flipped: Sequence[Mapping[str, Any]] = comparison.content.get("flipped_to_fail", ())
    for case in flipped[:MOST_NEXT]:
        yield f"rageval explain {shlex.join([after.name, case['case_key']])}"


def _page(sides: Sequence[Side], comparison: ComparisonReport, settings: Settings) -> str:
    """Render the report of B, compared with A: the same page as `rageval report B --compare A` writes."""
    from pytest_rageval.render.html.page_run import page_of
    from pytest_rageval.render.html.report_page import report_html

    return report_html(page_of(sides[1], sides[0], comparison, settings, is_chosen=True))
