"""The page of the commands: each with its options and exit codes, and what many share once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from click.testing import CliRunner
from reference_tables import verbs_at_a_glance

from pytest_rageval.cli.main import rageval
from pytest_rageval.cli.options import CODES_OF_PYTEST, USUAL, as_written_here
from pytest_rageval.config.options import OPTIONS, Option


def commands_page() -> str:
    """Return the page of the commands with their options and exit codes."""
    lines = [
        "# Commands",
        "",
        "This page lists every command of `rageval` with its options, and all exit codes. `rageval COMMAND --help`",
        "shows those of one command in full.",
        "",
        *verbs_at_a_glance(),
        "",
    ]
    described = json.loads(CliRunner().invoke(rageval, ["schema", "commands"]).stdout)
    shared = _shared_options(described.values())
    lines += _exit_code_lines(described)
    lines += ["## Options of many commands", "", *_option_table(shared.values())]
    for name, command in described.items():
        lines += _command_lines(name, command, shared)
    return "\n".join(lines)


def _exit_code_lines(described: dict[str, Any]) -> Iterator[str]:
    """Yield the one table of exit codes: those of pytest, of most commands, and of each command that has others."""
    yield "## Exit codes"
    yield ""
    yield "| command | code | meaning |"
    yield "| --- | --- | --- |"
    for code, meaning in CODES_OF_PYTEST.items():
        yield f"| `pytest`, `run`, `demo run` | {code} | {meaning} |"
    for code, meaning in USUAL.items():
        yield f"| any other | {code} | {meaning} |"
    commands: dict[tuple[str, str], list[str]] = {}
    for name, command in described.items():
        for number, meaning in command["exit_codes"].items():
            if int(number) > 0 and meaning not in COMMON_MEANINGS:
                commands.setdefault((number, meaning), []).append(f"`{name}`")
    for (number, meaning), names in sorted(commands.items(), key=lambda item: int(item[0][0])):
        yield f"| {', '.join(names)} | {number} | {meaning} |"
    yield ""
    yield from EXIT_CODES_AND_VERDICT
    yield ""


EXIT_CODES_AND_VERDICT = (
    "The exit code follows the verdict. A run whose last line begins with `Fails the build` ends with 1; so does one",
    "whose answers could not be judged at all. If the judge's server does not answer, `pytest` asks nothing and ends",
    "with 4. `rageval run` asks and scores without the judge, and ends with 1.",
)
COMMON_MEANINGS = {*CODES_OF_PYTEST.values(), *USUAL.values()}
MANY = 4
"""In so many commands an option of one meaning is listed once."""


def _shared_options(commands: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the options that many commands have with one meaning, by their names."""
    counted = Counter(_option_row_of(option) for command in commands for option in command["options"])
    shared = {}
    for command in commands:
        for option in command["options"]:
            row = _option_row_of(option)
            if counted[row] >= MANY:
                shared[row] = option
    return shared


def _option_table(options: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield "| option | meaning |"
    yield "| --- | --- |"
    yield from map(_option_row_of, options)
    yield ""


def _option_row_of(option: dict[str, Any]) -> str:
    return f"| {_names_of(option)} | {_option_text(option)} |"


def _names_of(option: dict[str, Any]) -> str:
    return ", ".join(f"`{one}`" for one in option["names"])


def _is_of_runs(option: dict[str, Any]) -> bool:
    """Return True for an option of pytest, which has its row in the page of options."""
    return any(f"--{known.name}" in option["names"] and _is_same(known, option) for known in OPTIONS)


def _is_same(known: Option, option: dict[str, Any]) -> bool:
    return as_written_here(known.help) == option["help"]


def _command_lines(name: str, command: dict[str, Any], shared: dict[str, dict[str, Any]]) -> Iterator[str]:
    arguments = [argument["name"].upper() + ("…" if argument["many"] else "") for argument in command["arguments"]]
    yield f"## rageval {name}"
    yield ""
    yield f"`{' '.join(['rageval', name, *arguments])}`"
    yield ""
    yield command["help"].partition("\n\nExit codes:")[0]
    yield ""
    of_runs = [option for option in command["options"] if _is_of_runs(option)]
    others = [option for option in command["options"] if option not in of_runs]
    of_many = [option for option in others if _option_row_of(option) in shared]
    own = [option for option in others if option not in of_many]
    if own:
        yield from _option_table(own)
    if of_many:
        yield f"As in [many commands](#options-of-many-commands): {', '.join(map(_names_of, of_many))}."
        yield ""
    if of_runs:
        names = "all" if len(of_runs) == len(OPTIONS) else ", ".join(map(_names_of, of_runs))
        yield f"Of the [options of pytest](options.md#options-of-pytest), written without `rageval-`: {names}."
        yield ""


def _option_text(option: dict[str, Any]) -> str:
    """Return the help of an option of a command, with its choices unless the help names them."""
    text = " ".join((option["help"] or "").split()).replace("|", "\\|")
    choices = option.get("choices", [])
    if not choices or all(choice in text for choice in choices):
        return text
    listed = ", ".join(f"`{choice}`" for choice in choices)
    return f"{text} One of {listed}.".strip()
