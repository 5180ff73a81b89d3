"""What do the verbs need that decide a stored run again? The run, the project's settings and its baseline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from pytest_rageval.compare.baseline import Baseline, baseline_file, read_baseline
from pytest_rageval.config.settings import Settings, load_settings
from pytest_rageval.runs.reader import StoredRun, open_run

F = TypeVar("F", bound=Callable[..., object])


class Opened(NamedTuple):
    """A stored run, and the project as it is now."""

    root: Path
    settings: Settings
    reports: Path
    run: StoredRun
    baseline: Baseline | None


def opened(wanted: str, **options: Any) -> Opened:
    """The run of this id in the project of the current folder; `options` are settings, None where not given."""
    root = Path.cwd()
    settings = load_settings(root, options)
    reports = root / settings.reports
    baseline = read_baseline(baseline_file(settings, root), is_required=settings.baseline is not None)
    return Opened(root, settings, reports, open_run(reports, wanted), baseline)


def run_argument(command: F) -> F:
    """`RUN`, `--reports` and `--baseline`."""
    command = click.option("--baseline", metavar="PATH", help="Baseline (default: REPORTS/baseline.json).")(command)
    command = click.option("--reports", metavar="DIR", help="Folder of runs (default: as configured).")(command)
    return click.argument("run")(command)


def names_of(written: str | None) -> tuple[str, ...]:
    """Names that commas separate."""
    return tuple(name.strip() for name in (written or "").split(",") if name.strip())
