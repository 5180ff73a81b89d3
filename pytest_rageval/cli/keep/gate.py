"""`rageval gate RUN`: a stored run under other gates."""

from __future__ import annotations

import click

from pytest_rageval.cli.end_of_run import show
from pytest_rageval.cli.stored_run import opened, run_argument
from pytest_rageval.finish import Finished
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.rescore.regate import plan_of_gates, regate
from pytest_rageval.text import printable

SHOWN = 100
STYLES = {"failed": ("FAILED", "red"), "error": ("ERROR", "red"), "xfailed": ("XFAIL", "yellow")}


@click.command()
@run_argument
@click.option("--gate", "gates", multiple=True, metavar="EXPR", help="Gate, as in 'recall_any@5 >= 0.8' (repeatable).")
@click.option(
    "--regression", "regressions", multiple=True, metavar="EXPR",
    help="Tolerated change against the baseline, as in 'recall_any@k drop 0.05' (repeatable).",
)  # fmt: skip
def gate(
    run: str, reports: str | None, baseline: str | None, gates: tuple[str, ...], regressions: tuple[str, ...]
) -> None:
    """Put RUN (an id, `latest`, `latest~1` or a folder) under the gates that the project has now, those given here
    in the place of the project's on the same metric. The recorded scores count; nothing is written. Exit code 1: a
    case or a gate of the run fails."""
    at = opened(run, reports=reports, baseline=baseline, gate=gates or None, tolerated=regressions or None)
    plan = plan_of_gates(at.run, at.settings, at.root)
    finished = regate(at.run, plan, at.baseline)
    code = show(finished, plan)
    _show_cases(finished)
    raise SystemExit(code)


def _show_cases(finished: Finished) -> None:
    """The cases that fail, with the gates that they fail by; known failures too, as such."""
    failing = [row for row in finished.rows if row.outcome in STYLES]
    for row in failing[:SHOWN]:
        word, colour = STYLES[row.outcome]
        click.secho(printable(f"{word} {row.key} - {row.message}"), fg=colour)
    if len(failing) > SHOWN:
        click.echo(and_more(len(failing) - SHOWN, "cases"))
