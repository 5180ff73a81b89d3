"""Options, exit codes and JSON output that verbs share."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import click

from pytest_rageval.config.options import OPTIONS, Option
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.output_encoding import json_for

F = TypeVar("F", bound=Callable[..., Any])
FLAG = "--json"
JSON = click.option(FLAG, "as_json", is_flag=True, help="Write one JSON object instead of text.")
FORM_JSON = click.option(FLAG, "form", flag_value="json", help="The same as --format json.")
REPORTS = click.option("--reports", metavar="DIR", help="Folder of runs (default: as configured).")
BASELINE = click.option("--baseline", metavar="PATH", help="Baseline (default: REPORTS/baseline.json).")
PLACE = click.Path(path_type=Path)
EXISTING = click.Path(exists=True, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FORCE = click.option("--force", is_flag=True, help="Replace existing files.")


def output_option(about: str, *, metavar: str = "FILE", **form: Any) -> Callable[[F], F]:
    """Add `-o/--output`, a path."""
    return click.option("-o", "--output", metavar=metavar, help=about, **{"type": PLACE, **form})


# ── the plugin's options ──────────────────────────────────────────────────────────────────────────────────────

PREFIX = "--rageval-"


def run_options(*names: str) -> Callable[[F], F]:
    """Add options of the plugin, without its prefix, as parameters for `settings_given`; all of them without names."""

    def add(command: F) -> F:
        for option in reversed(OPTIONS):
            if not names or option.name in names:
                command = _click_option(option)(command)
        return command

    return add


def settings_given(parameters: dict[str, Any]) -> dict[str, Any]:
    """Take the plugin's options out of a command's parameters; return the given ones by their setting."""
    given = {option.field: parameters.pop(option.dest, None) for option in OPTIONS}
    return {name: value for name, value in given.items() if value not in (None, ())}


def as_arguments(given: Mapping[str, Any]) -> list[str]:
    """Return settings, by field, as the words of a command line."""
    names = {option.field: f"--{option.name}" for option in OPTIONS}
    words = []
    for field, value in given.items():
        items = value if isinstance(value, list | tuple) else [value]
        for item in items:
            words += [names[field], str(item)]
    return words


def as_written_here(text: str) -> str:
    """Return a message of the settings with the options' names in the command."""
    return text.replace(PREFIX, "--")


def as_taken_by(verb: click.Command | None, text: str) -> str:
    """Return a message of the settings with the names of those options that the verb has."""
    parameters = verb.params if verb else ()
    words = chain.from_iterable(parameter.opts for parameter in parameters)
    named = "|".join(word.removeprefix("--") for word in words if word.startswith("--"))
    return re.sub(rf"{PREFIX}(?=(?:{named})(?![\w-]))", "--", text)


def _click_option(option: Option) -> Callable[[F], F]:
    form: dict[str, Any] = {}
    if option.kind == "flag":
        form = {"is_flag": True, "default": None}
    elif option.kind == "many":
        form = {"multiple": True}
    elif option.choices:
        form = {"type": click.Choice(option.choices)}
    if option.metavar:
        form["metavar"] = option.metavar
    return click.option(f"--{option.name}", option.dest, help=as_written_here(option.help), **form)


# ── options by the names that evaluation scripts usually have ─────────────────────────────────────────────────

NAMES_ON_RUN = {"--run-id": "RUN", "--eval-set": "--cases", "--judge-model": "--judge",
                "--output-dir": "--reports", "--use-judge": None}  # fmt: skip


def with_present_names(words: Sequence[str], names: Mapping[str, str | None]) -> list[str]:
    """Return the words of a command line with today's options, and name these for each replaced one.

    `names` has today's name by the earlier one: an option, an argument in capitals (its value stands alone), or None
    for a flag that nothing needs any more.
    """
    present: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if name not in names:
            present.append(word)
            continue
        today = names[name]
        click.echo(f"{name} is {today or 'not needed'} here", err=True)
        if today is None:
            continue
        if today.startswith("-"):
            present.append(today)
        if equals:
            present.append(value)
    return present


class CommandOnRun(click.Command):
    """A command on a stored run, which scripts name by `--run-id`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_present_names(args, NAMES_ON_RUN))


# ── exit codes ────────────────────────────────────────────────────────────────────────────────────────────────

USUAL: Mapping[int, str] = {0: "done", 2: "wrong usage, wrong settings, or a file that cannot be read or written"}
INTERRUPTED = 2
BROKEN_CASES = 2
INTERNAL = 3
USAGE = 4
NO_CASES = 5
NOT_READY = 3
"""A batch at a provider has not ended."""
STOPPED = 130
"""The exit code after Ctrl-C, as in shells; verbs that act like pytest have pytest's."""
CODES_OF_PYTEST: Mapping[int, str] = {
    0: "all cases ran, and all gates hold",
    1: "a case, a gate or a step failed",
    INTERRUPTED: "interrupted, or a broken case file",
    INTERNAL: "the run's files could not be written",
    USAGE: "wrong settings or wrong usage",
    NO_CASES: "there are no cases",
}
_DECLARED: dict[Callable[..., Any], Mapping[int, str]] = {}


def exit_codes(codes: Mapping[int, str], *, is_all: bool = False) -> Callable[[F], F]:
    """Declare the exit codes of a verb beside the usual ones, and append them to its help.

    Write it below the decorators of click. `is_all`: there are no codes but these.
    """

    def declared(callback: F) -> F:
        meanings = codes if is_all else {**USUAL, **codes}
        meanings = dict(sorted(meanings.items()))
        _DECLARED[callback] = meanings
        lines = "\n".join(f"  {code}  {meaning}" for code, meaning in meanings.items())
        about = inspect.cleandoc(callback.__doc__ or "")
        # click wraps no paragraph that begins with \b.
        callback.__doc__ = f"{about}\n\n\b\nExit codes:\n{lines}"
        return callback

    return declared


def exit_codes_of(command: click.Command) -> Mapping[int, str]:
    """Return the meanings of a verb's exit codes."""
    if command.callback is None:
        return USUAL
    return _DECLARED.get(command.callback, USUAL)


# ── output ────────────────────────────────────────────────────────────────────────────────────────────────────


def with_next(content: Mapping[str, Any], commands: Iterable[str] = ()) -> dict[str, Any]:
    """Return the content and, below `next`, the commands that help now; each runs as it stands, the best one first."""
    return {**content, "next": list(dict.fromkeys(commands))}


def echo_json(
    content: Mapping[str, Any], commands: Iterable[str] = (), *, indent: int | None = 2, default: Any = None
) -> None:
    """Write the content with its `next` to standard output."""
    click.echo(json_for(sys.stdout, json_text(with_next(content, commands), indent, default=default)))


def is_json_wanted() -> bool:
    """Return True if the verb was called with `--json`; for errors raised before its options are read."""
    return FLAG in sys.argv[1:]


def wants_colour() -> bool:
    """Return True to print colours: on a terminal unless NO_COLOR is set, elsewhere only if FORCE_COLOR is.

    Empty variables count as unset; NO_COLOR is the stronger one.
    """
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()
