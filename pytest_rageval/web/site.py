"""The settings of the app, its limits, the project behind it, and what of its code the browser may name."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import Field

from pytest_rageval.config.options import kind_of
from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.config.tables import Frozen
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.environment_secrets import WEB_TOKEN
from pytest_rageval.io.masking import public_target
from pytest_rageval.io.messages import shown_value
from pytest_rageval.judges.judge_spec import KINDS
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import printable

HOST = "127.0.0.1"
PORT = 8765
SHORTEST_TOKEN = 12
MEGABYTE = 1_000_000

Count = Annotated[int, Field(ge=1)]


class WebLimits(Frozen):
    """The maximum sizes and durations of requests.

    form_bytes      of a body without files
    upload_bytes    of a body with files, all parts together
    fields, files   number of parts of a form
    field_bytes     of one field of a form
    upload_rows     of an uploaded dataset or answers file
    field_characters  of a text in an uploaded row
    body_seconds    between two pieces of a body
    connections     open at once
    """

    form_bytes: Count = 4 * MEGABYTE
    upload_bytes: Count = 64 * MEGABYTE
    fields: Count = 2_000
    files: Count = 4
    field_bytes: Count = 2 * MEGABYTE
    upload_rows: Count = 100_000
    field_characters: Count = 20_000
    body_seconds: float = Field(20, gt=0)
    connections: Count = 200


class WebSettings(Frozen):
    """The settings of the app; `create_web_app` reads nothing else.

    root        folder of the project, with its configuration and case files
    reports     folder of runs
    data        folder of agents, datasets, jobs and uploads
    token       secret that a browser or program must give; None requires no token
    host_names  allowed Host names besides IP addresses, localhost and `host`
    proxies     addresses or networks such as 10.0.0.0/8 whose forwarded client address and scheme are trusted
    env_file    a `.env`, which may be missing, with keys for runs and labelling from here; None for none
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
        """Return True if only this machine can reach the app."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def check_reach(settings: WebSettings) -> None:
    """Raise SettingsError if other machines could reach an app without a token, or a proxy is no address."""
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
    """An address names a missing run, case or version."""


@dataclass(frozen=True)
class Site:
    """The project that the app serves, created once by `create_web_app`."""

    settings: WebSettings

    @property
    def runs(self) -> Path:
        return self.settings.reports / "runs"

    def project(self) -> Project:
        """Return the project with its current configuration, or raise SettingsError if it is unreadable.

        Dataset versions are compared on their common cases, as runs started here are.
        """
        root = self.settings.root
        return Project(root, load_settings(root, {"reports": str(self.settings.reports)}))

    def stored_run(self, run_id: str) -> StoredRun:
        """Return the run of this id. Look the name up in the folder: it never becomes a path.

        A name with unprintable characters is found by its printable form.
        """
        try:
            with os.scandir(self.runs) as entries:
                folders = [entry.name for entry in entries if entry.is_dir()]
        except OSError:
            folders = []
        if run_id in folders:
            return StoredRun(self.runs / run_id)
        for name in folders:
            # Pages show a folder's name without control characters, and link to it so.
            if printable(name) == run_id:
                return StoredRun(self.runs / name)
        raise UnknownPageError(f"there is no run {run_id!r} in {self.runs}")


def of_app(name: str) -> Any:
    """Return a route parameter: what `create_web_app` keeps under this name."""

    def kept(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(kept)


TheSite = Annotated[Site, of_app("site")]
"""A route parameter: the site."""


SETTING = "web_allows"
OPEN_JUDGES = frozenset(name for name, kind in KINDS.items() if not kind.opens_files)
"""Kinds that import no name and open no path. All others may, including plug-ins and future kinds."""


def check_listed(settings: Settings, root: Path, *, is_asked: bool = True) -> None:
    """Check settings that the browser chose; SettingsError names each target or judge that the project does not list.

    root      the project: the target and judge of its own configuration are listed
    is_asked  False if the answers are uploaded, so that the target is never imported
    """
    specs = list(_specs_to_list(settings, is_asked=is_asked))
    if not specs:
        return
    own = load_settings(root)
    # What the project itself names runs in the terminal anyway.
    listed = {*own.web_allows, own.target, own.judge}
    problems = [_problem(name, spec) for name, spec in specs if not _is_listed(spec, listed)]
    if problems:
        raise SettingsError(*problems)


def _specs_to_list(settings: Settings, *, is_asked: bool) -> Iterator[tuple[str, str]]:
    target = settings.target or "demo"
    judge = settings.judge.strip()
    if is_asked and not kind_of(target).is_open:
        yield "target", target
    if ":" in judge and judge.partition(":")[0] not in OPEN_JUDGES:
        yield "judge", judge


def _is_listed(spec: str, listed: Collection[str | None]) -> bool:
    """Return True if the spec or its module is listed. Names with a dot, as in `shop.bot:os.system`, are foreign."""
    module, _, name = spec.removeprefix("asgi:").partition(":")
    return spec in listed or (module in listed and "." not in name)


def _problem(name: str, spec: str) -> str:
    shown = shown_value(public_target(spec), 200)
    return (
        f"{name} is {shown}, which runs code or reads files of this machine; if the browser may name it, add "
        f'{SETTING} = ["{shown[1:-1]}"] to the project\'s configuration'
    )
