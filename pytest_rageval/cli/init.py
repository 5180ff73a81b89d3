"""`rageval init`: a project's first cases, configuration and CI, after three questions at most."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pytest_rageval.cases.project_cases import conversations_of, readable_cases
from pytest_rageval.cli.options import EXISTING_FILE, echo_json, exit_codes
from pytest_rageval.cli.server_contact import (
    ask_server,
    headers_in_file,
    problem_of_server,
    read_headers,
    read_sample,
    with_remedy_for_chunks,
)
from pytest_rageval.cli.terminal import clean
from pytest_rageval.config.files import has_table
from pytest_rageval.config.options import HTTP, is_target, kind_of
from pytest_rageval.config.project import find_project
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.make.ci_files import CI, CI_FILES, keys_of_ci, misplaced
from pytest_rageval.make.scaffold import Choice, ScaffoldFile, scaffold
from pytest_rageval.render.text.columns import aligned
from pytest_rageval.targets.first_contact import CONTACT_QUESTION, FirstContact
from pytest_rageval.targets.mapped_target import history_gap
from pytest_rageval.text import counted, printable

NEXT = (
    ("pytest", "run the cases"),
    ("rageval explain latest CASE", "one case in full: gold, retrieved chunks, every gate"),
    ("pytest --rageval-update-baseline", "accept a run; commit reports/baseline.json"),
)


@click.command()
@click.option("--target", metavar="SPEC", help="What answers: http://HOST, module:function, or demo.")
@click.option(
    "--notes",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Notes that it answers from: the first cases ask about their headings.",
)
@click.option(
    "--reply", metavar="FILE", type=EXISTING_FILE, help="A sample reply of the server in JSON, instead of asking it."
)
@click.option(
    "--question",
    metavar="TEXT",
    help=f"The question that the server is asked, one that it can answer (default: {CONTACT_QUESTION!r}).",
)
@click.option(
    "--header",
    "written_headers",
    metavar="NAME=env:VARIABLE",
    multiple=True,
    help="Header that the server wants, from an environment variable, as in X-Api-Key=env:BOT_KEY (repeatable).",
)
@click.option("--path", metavar="PATH", help="With --reply: where the server takes a question, as in /ask.")
@click.option("--ci", type=click.Choice(CI), help="CI system that runs the cases for each change.")
@click.option(
    "--start", metavar="COMMAND", help="With --ci: the command that starts the server there, before the cases."
)
@click.option("--yes", is_flag=True, help="Ask nothing; defaults are the demo, no notes and no CI.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object instead of text; asks nothing.")
@exit_codes({1: "the files are written, but no run can read the server's replies yet"})
def init(
    target: str | None,
    notes: Path | None,
    reply: Path | None,
    question: str | None,
    written_headers: tuple[str, ...],
    path: str | None,
    ci: Any,
    start: str | None,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Write first cases, a configuration and CI into this folder: evalcases/, rageval.toml, reports/.gitignore.

    Asks at most three questions, each of which is also an option. A URL (of a server, or of its OpenAPI description)
    is asked one question: the places of answer and chunks in its reply are shown, and written as `target.mapping`. No
    file of yours is overwritten: X.new is written next to an existing X. The files are also written if the server gives
    no readable reply; the next call then replaces those that nobody has edited. In a project with a configuration, --ci
    without --target writes the CI's file only.
    """
    is_asked = not (yes or as_json)
    headers = read_headers(written_headers)
    is_configured = has_table(Path.cwd()) and ci not in (None, "none")
    if is_configured and (target, notes, reply) == (None, None, None):
        choice = _configured_choice(ci)._replace(start=start)
    else:
        choice = _choice(target, notes, ci, is_asked=is_asked)._replace(start=start)
        in_file = headers_in_file(Path.cwd(), choice.target)
        # A key that somebody wrote into the file itself is sent, but not written once more.
        named = {name: value for name, value in in_file.items() if value.startswith("env:")}
        choice = choice._replace(headers={**named, **headers})
    _check_combination(choice, reply, path, question, has_headers=bool(headers))
    problem = None
    if kind_of(choice.target) is HTTP and not choice.is_ci_alone:
        contact = _contact(choice, reply, path, question or CONTACT_QUESTION, is_asked=is_asked)
        click.echo(clean("\n".join(contact.findings)) + "\n", err=as_json)
        choice = choice._replace(
            target=contact.url or choice.target, mapping=contact.mapping, is_sampled=reply is not None
        )
        problem = problem_of_server(contact, choice.target)
    written = scaffold(Path.cwd(), choice, is_unfinished=problem is not None)
    if as_json:
        _print_json(choice, written, problem)
    else:
        _print_text(choice, written, problem)
    if problem is not None:
        raise SystemExit(1)


def _check_combination(
    choice: Choice, reply: Path | None, path: str | None, question: str | None, *, has_headers: bool
) -> None:
    """Raise an error if options are given that do not go together."""
    if choice.start is not None:
        _check_start(choice)
    is_server = kind_of(choice.target) is HTTP
    if reply is not None and not is_server:
        raise SettingsError(f"--reply: a sample reply describes a server; {choice.target} is none")
    if path is not None and reply is None:
        raise click.UsageError("--path goes with --reply; without it, the server is asked in the usual places")
    if (has_headers or question is not None) and (not is_server or choice.is_ci_alone):
        raise click.UsageError("--header and --question go with a server as --target; nothing else is asked")
    if question is not None and (reply is not None or not question.strip()):
        raise click.UsageError("--question: expected a text that the server is asked; with --reply, nothing is asked")


def _print_json(choice: Choice, written: Sequence[ScaffoldFile], problem: str | None) -> None:
    """Write one JSON object with the files, the problem and what is still to do."""
    states = [{"path": file.path, "state": file.state} for file in written]
    content: dict[str, Any] = {"target": choice.target, "files": states}
    if problem is not None:
        content["problems"] = [problem]
    remarks = _remarks(choice)
    if remarks:
        content["notes"] = remarks
    echo_json(content, ["rageval doctor", "rageval run"])


def _print_text(choice: Choice, written: Sequence[ScaffoldFile], problem: str | None) -> None:
    """Write a line a file, what is still to do, and the problem to the error stream."""
    states = aligned([(file.path, file.state) for file in written], to_the_left=True)
    click.echo(printable("\n".join(states)))
    for remark in _remarks(choice):
        click.echo(f"\n{printable(remark)}")
    keys = keys_of_ci(choice.headers)
    if choice.ci != "none" and keys:
        click.echo(printable(f"\nKeys for CI, as secrets of the project there: {', '.join(keys)}"))
    if not choice.is_ci_alone:
        click.echo("\nNext:\n" + "\n".join(aligned(_next(), indent="  ", to_the_left=True)))
    if problem is not None:
        click.echo(f"ERROR: {problem}", err=True)


def _remarks(choice: Choice) -> list[str]:
    """Return what a person must still do for the written files to work."""
    return [*filter(None, (_history_gap(choice), misplaced(choice.ci, Path.cwd())))]


def _history_gap(choice: Choice) -> str:
    """Return that the mapping sends no history though the project has conversations; '' otherwise."""
    gap = history_gap(choice.mapping["request"]) if choice.mapping else ""
    if not gap:
        return ""
    conversations = conversations_of(readable_cases(find_project()))
    return f"{counted(conversations, 'conversation')}: {gap}" if conversations else ""


def _configured_choice(ci: Any) -> Choice:
    """Return the choices that the folder's own configuration has made; only the file for CI is missing."""
    settings = load_settings(Path.cwd(), {}, {})
    judge_headers = settings.judge_options.headers
    return Choice(settings.target or "", ci=ci, headers={**settings.headers, **judge_headers}, is_ci_alone=True)


def _contact(choice: Choice, reply: Path | None, path: str | None, question: str, *, is_asked: bool) -> FirstContact:
    """Return what a sample reply or the server itself shows."""
    is_person = is_asked and sys.stdin.isatty()
    if reply is not None:
        return read_sample(reply, choice.target, path, is_person=is_person)
    headers = {**headers_in_file(Path.cwd(), choice.target), **choice.headers}
    return with_remedy_for_chunks(ask_server(choice.target, question, headers, is_person=is_person))


def _check_start(choice: Choice) -> None:
    """Raise a usage error if the command that starts the server would be written nowhere, or break the file."""
    if choice.ci == "none" or kind_of(choice.target) is not HTTP:
        raise click.UsageError("--start goes with --ci and a server as --target; nothing else is started in CI")
    if not choice.start or not choice.start.isprintable() or "${{" in choice.start:
        raise click.UsageError("--start: expected one line, the command that starts the server, as in 'python -m bot'")


def _choice(target: str | None, notes: Path | None, ci: Any, *, is_asked: bool) -> Choice:
    """Return the given choices, and ask for the others at a terminal."""
    if is_asked and None in (target, ci) and not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask on; give --target and --ci, or --yes for the demo")
    if target is None:
        target = _asked_target() if is_asked else "demo"
    else:
        problem = _problem_of(target)
        if problem is not None:
            raise SettingsError(f"--target: {problem}")
    if notes is None and is_asked and target != "demo":
        notes = _asked_notes()
    if ci is None:
        ci = click.prompt("CI", type=click.Choice(CI), default=_usual_ci()) if is_asked else "none"
    return Choice(target, notes, ci)


def _asked_target() -> str:
    question = "What answers your questions? A URL, a Python function as module:function, or demo"
    while True:
        answer: str = click.prompt(question, default="demo").strip()
        problem = _problem_of(answer)
        if problem is None:
            return answer
        click.echo(problem, err=True)


def _asked_notes() -> Path | None:
    question = "Folder of the notes that it answers from, for the first cases (Enter: none)"
    while answer := click.prompt(question, default="", show_default=False).strip():
        if Path(answer).is_dir():
            return Path(answer)
        click.echo(printable(f"{answer!r} is not a folder"), err=True)
    return None


def _problem_of(target: str) -> str | None:
    """Return why this is no target, None if it is one."""
    if is_target(target):
        return None
    remedy = ", expected http://HOST, module:function or demo"
    is_like_host = re.fullmatch(r"[\w.-]+:\d+(/\S*)?", target)
    if is_like_host:
        remedy = f"; did you mean http://{target}?"
    return printable(f"{target!r} is no target{remedy}")


def _usual_ci() -> str:
    """Return the CI that this folder is already set up for."""
    if Path(".github").is_dir():
        return "github"
    return "gitlab" if Path(CI_FILES["gitlab"]).is_file() else "none"


def _next() -> list[tuple[str, str]]:
    """Return the three commands; give pytest its root if a folder above has settings of pytest."""
    settings = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
    here = Path.cwd()
    is_root = any((here / name).is_file() for name in settings)
    above = any((folder / name).is_file() for folder in here.parents for name in settings)
    # Without it, pytest would take the folder above for its root.
    root = " --rootdir ." if above and not is_root else ""
    return [(command.replace("pytest", f"pytest{root}", 1), what) for command, what in NEXT]
