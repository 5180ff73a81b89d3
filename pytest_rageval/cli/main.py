"""The `rageval` command: one module a verb, imported only when that verb is called."""

from __future__ import annotations

import importlib
import sys

import click

from pytest_rageval.errors import RagevalError
from pytest_rageval.text import printable

VERBS = {
    "calibrate": "a judge against people's labels",
    "compare": "two runs side by side: what moved, for which questions, and why",
    "abstention": "a stored run's abstentions scored again",
    "cases": "check, count and describe case files",
    "explain": "one case of a run, everything",
    "export": "a run as CSV, JSON, SQLite or Parquet",
    "gate": "other gates on a stored run",
    "history": "the metrics of all runs in time",
    "demo": "the embedded demo system",
    "judge": "a stored run's answers judged again, or a spot check of its judge",
    "judge-cache": "count, export, import and prune stored judgements",
    "judge-check": "whether a judge can be trusted at all",
    "merge": "one run from the runs of its shards",
    "metrics": "every metric with its definition",
    "score": "a stored run scored again, with other labels or metrics",
    "runs": "list, show and remove kept runs",
}


class Verbs(click.Group):
    """A group whose commands are attributes named like their modules in `pytest_rageval.cli`, with `-` for `_`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 because click calls it so
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 as above
        if cmd_name not in VERBS:
            return None
        name = cmd_name.replace("-", "_")
        found: click.Command = getattr(importlib.import_module(f"pytest_rageval.cli.{name}"), name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 as above
        with formatter.section("Commands"):
            formatter.write_dl(sorted(VERBS.items()))


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pytest-rageval", prog_name="rageval")
def rageval() -> None:
    """Around the tests: check cases, look at metrics, serve the demo. Running the cases is `pytest`."""


def main() -> None:
    """Entry point: exit code 0 fine, 1 a check failed, 2 wrong usage."""
    try:
        rageval()
    except RagevalError as error:
        for problem in error.problems:
            click.echo(printable(f"ERROR: {problem}"), err=True)
        sys.exit(2)
    except OSError as error:  # a folder that cannot be written, a disk that is full
        click.echo(printable(f"ERROR: {error.filename or 'a file'}: {error.strerror or error}"), err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
