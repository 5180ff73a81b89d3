"""`rageval sweep`: a grid over parameters of the system, scored with few questions, and the best point to paste."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import click

from pytest_rageval.cases.loading import shown_name
from pytest_rageval.cli.case_files import chosen_cases
from pytest_rageval.cli.options import (
    EXISTING,
    STOPPED,
    as_arguments,
    echo_json,
    exit_codes,
    run_options,
    settings_given,
)
from pytest_rageval.cli.output import Progress, columns
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.render.html.sweep_page import SWEEP_PAGE, write_sweep_page
from pytest_rageval.render.run_reports import write_all_reports
from pytest_rageval.render.text.view_text import view_lines
from pytest_rageval.run.finish import FinishedRun
from pytest_rageval.run.prepare import Preparation
from pytest_rageval.text import counted, printable
from pytest_rageval.tune.sweep.grid import FULL, INDEXING, QUICK, parse_grid
from pytest_rageval.tune.sweep.outcome import Sweep
from pytest_rageval.tune.sweep.ranking import parse_weights, sampled
from pytest_rageval.tune.sweep.results_file import SweepFile, SweepRequest, sweep_head
from pytest_rageval.tune.sweep.sweep import SweepRunner
from pytest_rageval.views.sweep import caveats, difference_sentence, sweep_view

OF_A_NEW_SWEEP = {"grids": "--grid", "is_quick": "--quick", "index_params": "--index-param", "sample": "--sample",
                  "seed": "--seed", "is_confirmed": "--confirm", "weights": "--weights", "cases": "CASES"}  # fmt: skip


@click.command()
@click.argument("cases", nargs=-1, type=EXISTING)
@click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="NAME=V1,V2,…",
    help="Values of one parameter (repeatable): k, min_score, or whatever the target takes.",
)
@click.option(
    "--quick", "is_quick", is_flag=True, help="6 points: min_score .2 .3 .4, k 5 10, at 400 tokens, overlap 50."
)
@click.option(
    "--index-param",
    "index_params",
    multiple=True,
    metavar="NAME",
    help="A further parameter that makes the target index again, like chunk_max_tokens (repeatable).",
)
@click.option("--sample", type=click.IntRange(min=2), metavar="N", help="Ask only N cases, chosen by --seed.")
@click.option("--seed", type=int, metavar="N", help="Seed of the sample (default: 0).")
@click.option("--confirm", "is_confirmed", is_flag=True, help="Choose on half of the cases, compare on the rest.")
@click.option("--weights", metavar="PART=X,…", help="Of the score (default: recall=0.5,negative_accuracy=0.3,mrr=0.2).")
@click.option("--resume", metavar="SWEEP", help="Finish a sweep that was interrupted: its id, or latest.")
@click.option("--json", "as_json", is_flag=True, help="Write eval_results.json to standard output instead of text.")
@run_options("target", "k", "folder-mode", "param", "timeout", "concurrency", "reports")
@exit_codes({STOPPED: "interrupted; what was asked is kept, and --resume goes on"})
def sweep(*, as_json: bool, resume: str | None, **options: Any) -> None:
    """Find the best values of retrieval parameters, on CASES (default: those of the project).

    Without --grid and --quick, the full grid has 189 points: min_score .15 to .5, k 5 10 15, chunks of 200 400 600
    tokens, overlap 0 50 100. Points that differ only in k and min_score are derived from one pass over the cases, if a
    probe of each case shows that this is exact. The best point and the project as configured are always asked, and
    kept as runs. Nothing is judged.
    """
    given = settings_given(options)
    project = find_project(given)
    file, request = _request(project, resume, options)
    cases, files = chosen_cases(project, [project.root / path for path in request.paths], least=2)
    chosen = sampled(cases, request.sample, request.seed)
    head = sweep_head(request, project, chosen)
    if file is not None:
        file.resume(head)
    with (
        Progress("asked") as progress,
        SweepRunner(project, given, chosen, files, request, progress, _write_run_reports) as runner,
    ):
        runner.check()
        if file is None:
            file = SweepFile.new(project.reports, head)
        try:
            swept = runner.run(file)
        except KeyboardInterrupt:
            click.echo(f"interrupted; rageval sweep --resume {file.sweep_id} goes on", err=True)
            raise SystemExit(STOPPED) from None
    content = file.finish(swept)
    write_sweep_page(swept, file.folder, difference_sentence(swept), caveats(swept))
    if as_json:
        echo_json(content, _next(swept), indent=None)
    else:
        click.echo(_text(swept, file, len(cases), len(chosen)))


def _write_run_reports(finished: FinishedRun, prepared: Preparation) -> None:
    """Write the usual reports of a run. A report that cannot be written costs no point of the sweep."""
    baseline = prepared.project.baseline_file
    reports = write_all_reports(finished.stored, prepared.plan, finished.cases, baseline, exit_status=0)
    for problem in reports.problems:
        click.echo(printable(problem), err=True)


def _request(project: Project, resume: str | None, options: Mapping[str, Any]) -> tuple[SweepFile | None, SweepRequest]:
    if resume is not None:
        given = [OF_A_NEW_SWEEP[name] for name, value in options.items() if value not in (None, (), False)]
        if given:
            raise click.UsageError(f"--resume goes on as the sweep was begun; leave {', '.join(given)} out")
        file = SweepFile.find(project.reports, resume)
        return file, file.request()
    if options["is_quick"] and options["grids"]:
        raise click.UsageError("--quick is a grid of its own; leave it or --grid out")
    grid = parse_grid(options["grids"], options["index_params"])
    if grid.values:
        values = grid.values
        indexing = grid.indexing
    else:
        values = QUICK if options["is_quick"] else FULL
        indexing = (*INDEXING, *options["index_params"])
    weights = parse_weights(options["weights"])
    paths = tuple(shown_name(path.resolve(), project.root) for path in options["cases"])
    seed = options["seed"] or 0
    request = SweepRequest(values, indexing, weights, paths, options["sample"], seed, options["is_confirmed"])
    return None, request


def _next(swept: Sweep) -> Iterator[str]:
    """Yield commands: the whole project at the best point, if better; the comparison of the two measured points."""
    if swept.is_better:
        yield f"rageval run {shlex.join(as_arguments(swept.best.point.options()))}"
    if swept.default.run is not None and swept.best.run is not None:
        yield f"rageval compare {swept.default.run} {swept.best.run}"


def _text(swept: Sweep, file: SweepFile, cases: int, chosen: int) -> str:
    lines = [line.text for line in view_lines(sweep_view(swept), columns())]
    if chosen < cases:
        lines.append(f"on a sample of {chosen} of {counted(cases, 'case')}")
    lines += [f"results: {file.path}", f"page:    {file.folder / SWEEP_PAGE}", ""]
    name = swept.configured_in
    first_line = swept.toml.partition("\n")[0].strip()
    if first_line and not first_line.startswith("["):  # below a table they would be its keys
        name += ", above its first [table]"
    lines.append(f"paste into {name}:" if swept.is_better else f"to try it all the same, in {name}:")
    lines += swept.toml.splitlines()
    return printable("\n".join(lines))
