"""The `rageval` command: one module a verb, imported only when that verb is called."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from pytest_rageval.cli.options import as_taken_by, echo_json, is_json_wanted, wants_colour
from pytest_rageval.cli.terminal import CommandTexts
from pytest_rageval.errors import RagevalError
from pytest_rageval.io.output_encoding import take_any_text

VERBS = {
    "start": {
        "init": "write first cases, a configuration and a CI workflow",
        "doctor": "check whether this project is ready to run",
        "demo": "run the cases of the demo system, or serve it",
        "help": "show a page of the documentation, without a network",
        "schema": "describe commands, settings, records and gates for programs, as JSON",
        "completion": "complete verbs and options in bash, zsh and fish",
    },
    "run": {
        "run": "run the cases without pytest",
    },
    "look": {
        "comment": "show a run as a comment on a pull request",
        "compare": "compare two runs: what moved, for which questions, and why",
        "explain": "explain one case of a run, with all its arithmetic",
        "history": "show the metrics of all runs in time",
        "metrics": "list all metrics, or define one",
        "report": "write the HTML report of a run",
        "web": "serve runs, agents and datasets in a browser",
    },
    "cases": {
        "answers": "write files of answers from tables and traces",
        "cases": "check, count, describe, convert and audit case files",
        "generate": "draft cases from a folder of notes, or from scenarios",
        "label": "mark golds, compare second opinions, accept drafts",
    },
    "tune": {
        "repl": "send questions to the system, line by line",
        "sweep": "find better retrieval parameters with few questions",
    },
    "judge": {
        "calibrate": "compare a judge with people's labels",
        "judge": "judge a stored run again, or spot-check its judge",
        "judge-cache": "count, export, import and prune stored judgements",
        "judge-check": "test whether a judge can be trusted at all",
    },
    "keep": {
        "abstention": "score the abstentions of a stored run again",
        "export": "export a run as CSV, JSON, SQLite or Parquet",
        "gate": "apply other gates to a stored run",
        "merge": "join the runs of shards into one",
        "runs": "list, show and remove stored runs",
        "score": "score a stored run again, with other labels or metrics",
    },
}
"""The verbs and what they do, by group."""
MODULE_OF = {"abstention": "score"}
"""Modules of verbs that share one."""
GROUP_OF = {verb: group for group, verbs in VERBS.items() for verb in verbs}
"""The group of each verb."""


class Verbs(click.Group):
    """A group whose commands are attributes named like their modules, with `-` for `_`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 because click calls it so
        return sorted(GROUP_OF)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 as above
        if cmd_name not in GROUP_OF:
            return None
        name = cmd_name.replace("-", "_")
        module = importlib.import_module(f"pytest_rageval.cli.{MODULE_OF.get(name, name)}")
        command: click.Command = getattr(module, name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        verb = args[0]
        is_unknown = verb not in GROUP_OF and not verb.startswith("-")
        if is_unknown and not ctx.resilient_parsing:
            from pytest_rageval.io.suggestions import did_you_mean  # here: an existing verb needs none

            raise click.UsageError(f"No such command {verb!r}{did_you_mean(verb, GROUP_OF)}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete verbs from this file's table: no module is imported for a key press."""
        items = []
        for group in VERBS.values():
            for verb, about in group.items():
                if verb.startswith(incomplete):
                    items.append(CompletionItem(verb, help=about))
        return items or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 as above
        for group, verbs in VERBS.items():
            with formatter.section(group.capitalize()):
                formatter.write_dl(list(verbs.items()))


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pytest-rageval", prog_name="rageval")
def rageval() -> None:
    """Evaluate RAG chatbots: commands around `pytest`, and the same run without it.

    Begin with `rageval init`, or look at `rageval demo run`. `rageval VERB --help` lists the options of a verb,
    `rageval help TOPIC` shows a page of the documentation.

    \b
    Exit codes: 0 fine; 1 a case, a gate, a check or a comparison failed; 2 wrong usage, or interrupted.
    `rageval run` has the exit codes of pytest.
    """
    click.get_current_context().color = wants_colour()


def main() -> None:
    """Entry point: 0 fine, 1 a check failed, 2 wrong usage."""
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        take_any_text(stream, is_for_click=True)
    texts = CommandTexts()
    with texts.routed():
        try:
            rageval()
        except RagevalError as error:
            _end_with(texts, *error.problems)
        except OSError as error:  # a folder that cannot be written, a disk that is full
            _end_with(texts, f"{error.filename or 'a file'}: {error.strerror or error}")


def _open_missing_streams() -> None:
    """Give the process the streams that it was started without, as by `<&-` or `>&-`."""
    null = Path(os.devnull)
    if sys.stdin is None:
        sys.stdin = null.open(encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = null.open("w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = null.open("w", encoding="utf-8")


def _end_with(texts: CommandTexts, *problems: str) -> NoReturn:
    """Report problems with the verb's options, to people and to the program that asked for JSON."""
    verb = rageval.get_command(click.Context(rageval), "".join(sys.argv[1:2]))
    lines = [as_taken_by(verb, texts.clean(problem)) for problem in problems]
    click.echo("\n".join(f"ERROR: {line}" for line in lines), err=True)
    if is_json_wanted():
        echo_json({"exit_code": 2, "problems": lines}, ["rageval doctor"])
    sys.exit(2)


if __name__ == "__main__":
    main()
