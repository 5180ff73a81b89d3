"""A project: its root directory, its settings, and the places of runs, baseline and judgements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.config.files import has_table
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import SettingsError


class Project(NamedTuple):
    """The root, the settings, and the paths derived from them."""

    root: Path
    settings: Settings

    @property
    def reports(self) -> Path:
        return self.root / self.settings.reports

    @property
    def notes(self) -> Path | None:
        """Return the folder of notes; raise SettingsError if the configured one does not exist."""
        if self.settings.notes is None:
            return None
        folder = self.root / self.settings.notes
        if not folder.is_dir():
            raise SettingsError(f"notes: {folder} is no folder; name the folder of the notes, or leave it out")
        return folder

    @property
    def baseline_file(self) -> Path:
        """Return the configured path, or the default among the reports."""
        written = self.settings.baseline
        return self.root / written if written is not None else self.reports / "baseline.json"

    @property
    def judge_cache_file(self) -> Path:
        return self.reports / "cache" / "judge_cache.sqlite"

    @property
    def judge_checks_file(self) -> Path:
        """Return the file of results of `rageval judge-check`, by judge."""
        return self.judge_cache_file.with_name("judge_checks.json")


def find_project(options: Mapping[str, Any] | None = None) -> Project:
    """Return the project of the current folder; `options` are settings by name, None if not given.

    Raise SettingsError with every problem of the settings, one line each.
    """
    root = find_root(Path.cwd())
    return Project(root, load_settings(root, options))


def find_root(folder: Path) -> Path:
    """Return the nearest folder with a configuration table, upwards from here as in pytest; else this one."""
    for place in (folder, *folder.parents):
        if has_table(place):
            return place
    return folder
