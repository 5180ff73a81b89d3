"""What verbs need that decide a stored run again: the run, the project and its baseline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from pytest_rageval.comparison.baseline import Baseline, project_baseline
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.config.settings import Settings
from pytest_rageval.runs.disk.reader import StoredRun, open_stored_run

F = TypeVar("F", bound=Callable[..., object])


class Opened(NamedTuple):
    """A stored run, and the project as it is now."""

    project: Project
    run: StoredRun
    baseline: Baseline | None

    @property
    def root(self) -> Path:
        return self.project.root

    @property
    def settings(self) -> Settings:
        return self.project.settings


def opened(run_name: str, **options: Any) -> Opened:
    """The run of this id in the project of the current folder; `options` are settings, None where not given."""
    project = find_project(options)
    baseline = project_baseline(project)
    return Opened(project, open_stored_run(project.reports, run_name, project.baseline_file), baseline)


def run_argument(command: F) -> F:
    """`RUN`, `--reports` and `--baseline`."""
    command = click.option("--baseline", metavar="PATH", help="Baseline (default: REPORTS/baseline.json).")(command)
    command = click.option("--reports", metavar="DIR", help="Folder of runs (default: as configured).")(command)
    return click.argument("run")(command)
