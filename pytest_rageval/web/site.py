"""What all pages share: the settings, the folders behind them, and the project's configuration as it is now."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request
from pydantic import Field

from pytest_rageval.config.project import Project
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.config.tables import Frozen
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.environment_secrets import WEB_TOKEN
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import printable
from pytest_rageval.web.security.session import Seal

HOST, PORT = "127.0.0.1", 8765
SHORTEST_TOKEN = 12
MEGABYTE = 1_000_000

Count = Annotated[int, Field(ge=1)]


class WebLimits(Frozen):
    """How much a request may hold, and how long it may take.

    form_bytes      a body that uploads no file
    upload_bytes    a body that uploads files, all parts together
    fields, files   parts of a form
    field_bytes     one field of a form
    upload_rows     rows of an uploaded data set or answers file
    field_characters  a text of an uploaded row
    head_seconds    until the head of a request is there
    body_seconds    between two pieces of a body
    unread_seconds  in which a client must take something of what waits for it
    waiting, waiting_bytes  uploads that wait to be confirmed, and all they hold
    connections     open at once
    patience_seconds  until a page that takes longer says that it is being made
    """

    form_bytes: Count = 4 * MEGABYTE
    upload_bytes: Count = 64 * MEGABYTE
    fields: Count = 2_000
    files: Count = 4
    field_bytes: Count = 2 * MEGABYTE
    upload_rows: Count = 100_000
    field_characters: Count = 20_000
    head_seconds: float = Field(10, gt=0)
    body_seconds: float = Field(20, gt=0)
    unread_seconds: float = Field(30, gt=0)
    waiting: Count = 50
    waiting_bytes: Count = 1_000 * MEGABYTE
    connections: Count = 200
    patience_seconds: float = Field(3, ge=0)


class WebSettings(Frozen):
    """Where the app listens and what it serves; `create_web_app` reads nothing else.

    root        folder of the project, whose configuration and case files are shown
    reports     folder of runs
    data        folder of what the app keeps: agents, datasets, jobs, uploads, index
    token       word that a browser or program must give; None: nobody is asked
    host_names  names by which the app may be called beside numbers, localhost and `host`
    proxies     addresses, or networks as 10.0.0.0/8, whose word counts on who asks and whether that was by HTTPS
    env_file    a `.env`, there or not, from which keys may be read, for runs and labels that begin here; None: none
    """

    root: Path
    reports: Path
    data: Path
    host: str = HOST
    port: int = Field(PORT, ge=0, le=65_535)
    token: str | None = Field(None, repr=False)
    host_names: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    env_file: Path | None = None
    limits: WebLimits = WebLimits()

    @property
    def is_loopback(self) -> bool:
        """Can only this machine reach it?"""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def check_reach(settings: WebSettings) -> None:
    """SettingsError where other machines could reach an app that asks nobody for a token, or a proxy is no address."""
    if settings.token is None and not settings.is_loopback:
        raise SettingsError(f"--host {settings.host}: other machines can reach this address; leave --no-token out")
    for proxy in settings.proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            raise SettingsError(f"--proxy {proxy}: no address; write 127.0.0.1, or a network as 10.0.0.0/8") from None
    if settings.token is not None and len(settings.token) < SHORTEST_TOKEN:
        raise SettingsError(
            f"{WEB_TOKEN}: {len(settings.token)} characters can be guessed; set {SHORTEST_TOKEN} or more"
        )


class UnknownPageError(SettingsError):
    """What an address names is not there: a run, a case, a version."""


@dataclass(frozen=True)
class Site:
    """The app's own folders and secrets; made once, by `create_web_app`."""

    settings: WebSettings
    seal: Seal

    @property
    def runs(self) -> Path:
        return self.settings.reports / "runs"

    def project(self) -> Project:
        """The project with its configuration as it is now; SettingsError where that cannot be read.

        Versions of a dataset are compared on the cases that they have in common, as runs that are started here are.
        """
        root = self.settings.root
        return Project(root, load_settings(root, {"reports": str(self.settings.reports)}))

    def stored_run(self, run_id: str) -> StoredRun:
        """The run of this id. The name is looked for among those of the folder: it is never a path.

        A name that cannot be shown as it is, is asked for as it is shown.
        """
        try:
            with os.scandir(self.runs) as entries:
                names = [
                    entry.name for entry in entries if run_id in (entry.name, printable(entry.name)) and entry.is_dir()
                ]
            name = run_id if run_id in names else next(iter(names), None)
        except OSError:
            name = None
        if name is None:
            raise UnknownPageError(f"there is no run {run_id!r} in {self.runs}")
        return StoredRun(self.runs / name)


def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


TheSite = Annotated[Site, Depends(site_of)]
"""A parameter of a route: the site."""
