"""The reports that every run leaves in its folder: summary.md for people, report.json for programs."""

from __future__ import annotations

from pathlib import Path

from pytest_rageval.compare.previous_run import Cases, compare_with_previous
from pytest_rageval.export.report_json import write_report_json
from pytest_rageval.io.atomic import write_text
from pytest_rageval.plan import Plan
from pytest_rageval.report.summary_markdown import summary_markdown
from pytest_rageval.runs.disk.reader import StoredRun


def write_reports(folder: Path, plan: Plan, cases: Cases) -> tuple[str, ...]:
    """Write them for a finished run, of whose cases outcomes and scores are at hand; a line for each that could not be
    written."""
    run = StoredRun(folder)
    previous = compare_with_previous(run, cases, plan)
    write_text(folder / "summary.md", summary_markdown(run.finished_metrics, run.config, plan.registry, previous))
    problem = write_report_json(run, cases) if plan.settings.report_json else None
    return (problem,) if problem is not None else ()
