"""`rageval web`: runs, agents and datasets in a browser."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pytest_rageval.cli.options import PLACE, REPORTS
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.environment_secrets import WEB_TOKEN
from pytest_rageval.text import printable

NEEDED = ("fastapi", "python_multipart", "itsdangerous")


@click.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen; beyond this machine with a token."
)
@click.option("--port", type=click.IntRange(0, 65_535), default=8765, show_default=True, help="0: a free one.")
@click.option("--data", metavar="DIR", type=PLACE, help="Agents, datasets, jobs (default: data).")
@REPORTS
@click.option(
    "--token",
    metavar="WORD",
    envvar=WEB_TOKEN,
    help=f"What a browser must give first (default: a random one); better set as {WEB_TOKEN}.",
)
@click.option("--no-token", is_flag=True, help="No token: any program on this machine can use the app.")
@click.option("--host-name", "host_names", metavar="NAME", multiple=True, help="A name by which browsers may call it.")
@click.option(
    "--proxy",
    "proxies",
    metavar="ADDRESS",
    multiple=True,
    help="A proxy in front, whose X-Forwarded-For and X-Forwarded-Proto count; from others they do not.",
)
@click.option("--upload-rows", type=click.IntRange(1), help="Most rows of an uploaded file (default: 100,000).")
@click.option("--field-characters", type=click.IntRange(1), help="Longest text of an uploaded row (default: 20,000).")
@click.option("--open", "is_opened", is_flag=True, help="Open it in a browser.")
def web(data: Path | None, reports: str | None, token: str | None, *, no_token: bool, **given: Any) -> None:
    """Serve the project of the current folder to a browser: runs, cases, comparisons, agents, datasets, new runs.

    Only this machine can reach it, unless --host names another address. Stop it with Ctrl-C; its runs continue.
    """
    if no_token:
        _warn("--no-token: every user and program of this machine can use the app and start runs as you")
    elif click.get_current_context().get_parameter_source("token") is ParameterSource.COMMANDLINE:
        _warn(f"--token: other users of this machine see it in the list of processes; set {WEB_TOKEN}")
    limits = {}
    for name in ("upload_rows", "field_characters"):
        most = given.pop(name)
        if most is not None:
            limits[name] = most
    project = find_project({"reports": reports})
    folder = Path.cwd() / data if data else project.root / "data"
    if no_token:
        token = None
    elif token is None:
        token = ""
    _serve(project, token=token, data=folder, limits=limits, **given)


def serve_label_page(project: Project, file: Path, case_id: str | None) -> None:
    """Serve the project to this machine, on a free port, and open the page that labels this file."""
    _check_extra()
    from pytest_rageval.web.label_desk import label_files  # here, because the extra may be missing
    from pytest_rageval.web.rendering import path_to

    resolved = file.resolve()
    names = [name for name, path in label_files(project).items() if path.resolve() == resolved]
    if not names:
        raise SettingsError(f"{file}: is no case file of the project, so that no page shows it; leave --web out")
    page = path_to("label", "cases", file=names[0], case=case_id)
    token = os.environ.get(WEB_TOKEN, "")
    _serve(project, is_opened=True, page=page, token=token, port=0, data=project.root / "data")


def _check_extra() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise SettingsError(f"{', '.join(missing)}: not installed; pip install 'pytest-rageval[web]'")


def _serve(
    project: Project,
    *,
    is_opened: bool,
    token: str | None,
    data: Path,
    limits: Mapping[str, int] | None = None,
    page: str = "/",
    **where: Any,
) -> None:
    """Serve until Ctrl-C.

    token  None: nobody is asked; blank: a random one is made
    where  what WebSettings say of the place to listen at
    """
    _check_extra()
    from pytest_rageval.web.app import create_web_app  # here, because the extra may be missing
    from pytest_rageval.web.server import serve_web
    from pytest_rageval.web.sessions import new_token
    from pytest_rageval.web.site import WebLimits, WebSettings

    is_token_made = token == ""
    settings = WebSettings(
        root=project.root.resolve(),
        reports=project.reports.resolve(),
        data=data.resolve(),
        token=new_token() if is_token_made else token,
        env_file=project.root / ".env",
        limits=WebLimits(**(limits or {})),
        **where,
    )
    app = create_web_app(settings)
    serve_web(app, settings, _tell, is_opened=is_opened, is_token_shown=is_token_made, page=page)


def _tell(line: str) -> None:
    click.echo(printable(line))


def _warn(what: str) -> None:
    click.secho(f"WARNING: {what}", fg="yellow", err=True)
