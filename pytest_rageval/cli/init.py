"""`rageval init`: a project's first cases, configuration and CI, after three questions at most."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from pytest_rageval.cli.options import EXISTING_FILE, echo_json, exit_codes
from pytest_rageval.cli.terminal import clean
from pytest_rageval.config.options import HTTP, is_target, kind_of
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.masking import public_target
from pytest_rageval.make.ci_files import CI, CI_FILES
from pytest_rageval.make.scaffold import Choice, scaffold
from pytest_rageval.render.text.columns import aligned
from pytest_rageval.targets.first_contact import (
    CONTACT_QUESTION,
    CONTACT_S,
    FirstContact,
    contact_of_sample,
    first_contact,
)
from pytest_rageval.targets.target import Connection
from pytest_rageval.text import printable

TOKEN = "RAGEVAL_TARGET_TOKEN"  # noqa: S105 because it is the name of a variable
NEXT = (
    ("pytest", "run the cases"),
    ("rageval explain latest CASE", "one case in full: gold, what came, every gate"),
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
    file is overwritten: X.new is written next to an existing X. The files are also written if the server gives no
    readable reply.
    """
    is_asked = not (yes or as_json)
    choice = _choice(target, notes, ci, is_asked=is_asked)._replace(start=start)
    if start is not None:
        _check_start(choice)
    if reply is not None and kind_of(choice.target) is not HTTP:
        raise SettingsError(f"--reply: a sample reply describes a server; {choice.target} is none")
    if path is not None and reply is None:
        raise click.UsageError("--path goes with --reply; without it, the server is asked in the usual places")
    problem = None
    if kind_of(choice.target) is HTTP:
        is_person = is_asked and sys.stdin.isatty()
        if reply is not None:
            contact = _sampled(reply, choice.target, path, is_person=is_person)
        else:
            contact = _first_contact(choice.target, is_person=is_person)
        choice = choice._replace(target=contact.url or choice.target, mapping=contact.mapping)
        click.echo(clean("\n".join(contact.said)) + "\n", err=as_json)
        problem = _problem_of_server(contact, choice.target)
    done = scaffold(Path.cwd(), choice)
    if as_json:
        content: dict[str, Any] = {"target": choice.target, "files": [file._asdict() for file in done]}
        if problem is not None:
            content["problems"] = [problem]
        echo_json(content, ["rageval doctor", "rageval run"])
        raise SystemExit(0 if problem is None else 1)
    written = aligned([(file.path, file.state) for file in done], to_the_left=True)
    click.echo(printable("\n".join(written)))
    click.echo("\nNext:\n" + "\n".join(aligned(_next(), indent="  ", to_the_left=True)))
    if problem is not None:
        click.echo(f"ERROR: {problem}", err=True)
        raise SystemExit(1)


def _check_start(choice: Choice) -> None:
    """Raise a usage error if the command that starts the server would be written nowhere, or break the file."""
    if choice.ci == "none" or kind_of(choice.target) is not HTTP:
        raise click.UsageError("--start goes with --ci and a server as --target; nothing else is started in CI")
    if not choice.start or not choice.start.isprintable() or "${{" in choice.start:
        raise click.UsageError("--start: expected one line, the command that starts the server, as in 'python -m bot'")


def _problem_of_server(contact: FirstContact, url: str) -> str | None:
    """Return why no run can ask the server yet, None if one can."""
    server = clean(public_target(url))
    if not contact.is_usable:
        return f"{server}: no readable reply, so no run can ask it yet; mend that, and call rageval init again"
    if contact.is_path_missing:
        return f"{server}: it is not known where it takes a question; name the path with --path, as in --path /ask"
    return None


def _sampled(reply: Path, url: str, path: str | None, *, is_person: bool) -> FirstContact:
    """Read a sample reply; ask for the path of the server, which no reply tells, if its URL has none."""
    contact = contact_of_sample(reply.read_bytes(), reply.name)
    if contact.mapping is None:
        return contact
    has_path = urlsplit(url).path not in ("", "/")
    if path is None and has_path:
        return contact
    if path is None and is_person:
        path = click.prompt("Path where the server takes a question, as in /ask", default="/").strip()
    if path is None:
        said = (*contact.said, "missing: the path of the server; --path names it, as in /ask")
        return contact._replace(said=said, is_path_missing=True)
    return contact._replace(mapping={"path": f"/{path.lstrip('/')}", **contact.mapping})


def _first_contact(url: str, *, is_person: bool) -> FirstContact:
    """Ask a server one question, with the token of the environment; where it wants a key, ask a person for one."""
    contact = _asked(url, os.environ.get(TOKEN, ""))
    if not contact.is_refused:
        return contact
    if is_person:
        click.echo(clean("\n".join(contact.said)))
        token = click.prompt("It wants a key (not stored, not shown)", hide_input=True, default="", show_default=False)
        os.environ[TOKEN] = token  # of this process alone: what is shown loses it
        contact = _asked(url, token)
    if contact.is_answered and not is_person:
        return contact
    remedy = f"it wants a key: set {TOKEN}, which is sent as `Authorization: Bearer …`, or headers in the table"
    return contact._replace(said=(*contact.said, remedy))


def _asked(url: str, token: str) -> FirstContact:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return asyncio.run(first_contact(url, CONTACT_QUESTION, Connection(timeout=CONTACT_S, headers=headers)))


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
