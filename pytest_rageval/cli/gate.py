"""`rageval gate RUN`: a stored run under other gates."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click

from pytest_rageval.cli.options import JSON, echo_json, exit_codes
from pytest_rageval.cli.stored_run import exit_code_of, open_run, run_argument, show_figures, show_verdict
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.render.gate_tests import gate_tests
from pytest_rageval.rescore.regate import plan_of_gates, regate
from pytest_rageval.run.finish import FinishedRun
from pytest_rageval.text import printable

SHOWN = 100
"""Failing cases to list."""
MOST_NEXT = 5
"""Failing cases to name in `next`."""
FAILING = ("failed", "error")
STYLES = {"failed": ("FAILED", "red"), "error": ("ERROR", "red"), "xfailed": ("XFAIL", "yellow")}


@click.command()
@run_argument
@click.option("--gate", "gates", multiple=True, metavar="EXPR", help="Gate, as in 'recall_any@5 >= 0.8' (repeatable).")
@click.option(
    "--regression",
    "regressions",
    multiple=True,
    metavar="EXPR",
    help="Tolerated change against the baseline, as in 'recall_any@k drop 0.05' (repeatable).",
)
@JSON
@exit_codes({0: "all gates hold", 1: "a case or a gate of the run fails"})
def gate(
    run: str,
    reports: str | None,
    baseline: str | None,
    gates: tuple[str, ...],
    regressions: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    """Apply the gates of the project, as they are now, to RUN (an id, `latest`, `latest~1` or a folder).

    Gates given here replace those on the same metric. The recorded scores count; nothing is written.
    """
    at = open_run(run, reports=reports, baseline=baseline, gate=gates or None, tolerated=regressions or None)
    plan = plan_of_gates(at.run, at.settings, at.root)
    finished = regate(at.run, plan, at.baseline)
    code = exit_code_of(finished, plan)
    if as_json:
        failed_gates = {test.name: test.message for test in gate_tests(finished, plan) if test.outcome == "failed"}
        content = {
            "exit_code": code,
            "run": at.run.run_id,
            "partial": finished.is_partial,
            "outcomes": finished.metrics["outcomes"],
            "failed_gates": failed_gates,
            "failing_cases": {row.key: row.message for row in finished.rows if row.outcome in FAILING},
        }
        echo_json(content, _next(finished, at.run.run_id))
    else:
        show_figures(finished, plan)
        _show_cases(finished)
        show_verdict(finished, at.project.baseline_file)
    raise SystemExit(code)


def _next(finished: FinishedRun, run_id: str) -> Iterator[str]:
    failing = [row.key for row in finished.rows if row.outcome in FAILING]
    yield from (f"rageval explain {shlex.join([run_id, key])}" for key in failing[:MOST_NEXT])
    if finished.metrics["comparison"] is not None:
        yield f"rageval compare baseline {shlex.quote(run_id)}"


def _show_cases(finished: FinishedRun) -> None:
    failing = [row for row in finished.rows if row.outcome in STYLES]
    for row in failing[:SHOWN]:
        word, colour = STYLES[row.outcome]
        click.secho(printable(f"{word} {row.key} - {row.message}"), fg=colour)
    if len(failing) > SHOWN:
        click.echo(and_more(len(failing) - SHOWN, "cases"))
