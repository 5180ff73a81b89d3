"""What all pages share: the settings, the folders behind them, and the project's configuration as it is now."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from pytest_rageval.config.project import Project
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.disk.reader import StoredRun
from pytest_rageval.text import printable
from pytest_rageval.web.security.seal import Seal
from pytest_rageval.web.settings import WebSettings


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
