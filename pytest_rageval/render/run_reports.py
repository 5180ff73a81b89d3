"""The reports in the folder of every run: summary.md and report.html for people, report.json for programs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pytest_rageval.comparison.compared_sides import Cases, compare_with_previous
from pytest_rageval.export.report_json import write_report_json
from pytest_rageval.io.atomic import write_text
from pytest_rageval.render.html.report_file import EndReport
from pytest_rageval.render.markdown.summary_markdown import summary_markdown
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.views.run_digest import run_digest

MOST_OF_A_PAGE = 100_000
"""Cases of an HTML report: with more it exceeds 10 MB, and takes 4 kB of memory for each while it is made."""


class RunReports(NamedTuple):
    """The results of writing a run's reports. `notes`: a line for each but the page that is not written."""

    notes: tuple[str, ...]
    page: EndReport | None
    """None if the settings turn it off."""

    @property
    def problems(self) -> list[str]:
        """Return a line for each report that could not be written."""
        if self.page is None or not self.page.problem:
            return list(self.notes)
        return [*self.notes, self.page.problem]


def write_all_reports(run: StoredRun, plan: Plan, cases: Cases, baseline: Path, *, exit_status: int) -> RunReports:
    """Write all reports of a run that just ended outside pytest.

    Raise OSError if the summary cannot be written, after writing all others.
    """
    page = None
    left_out: tuple[str, ...] = ()
    if plan.settings.report and len(cases) > MOST_OF_A_PAGE:
        note = (
            f"report.html is left out, which lists every case: these are {len(cases):,}, more than {MOST_OF_A_PAGE:,}; "
            f"`rageval report {run.run_id}` writes it all the same"
        )
        left_out = (note,)
    elif plan.settings.report:
        # Imported here, because templates are a fifth of a short run.
        from pytest_rageval.render.html.report_writer import end_report

        scores = cases if isinstance(cases, CaseColumns) else None
        page = end_report(run, plan.settings, baseline, exit_status=exit_status, scores=scores)
    # Last, since it raises: the page is written by then.
    problems = write_reports(run, plan, cases, baseline)
    return RunReports((*problems, *left_out), page)


def write_reports(run: StoredRun, plan: Plan, cases: Cases, baseline: Path) -> tuple[str, ...]:
    """Write the reports of a finished run from its cases; return a line for each that could not be written."""
    previous = compare_with_previous(run, cases, plan)
    scores = cases if isinstance(cases, CaseColumns) else None
    digest = run_digest(run, run.finished_metrics, baseline, previous=previous, scores=scores)
    write_text(run.path / "summary.md", summary_markdown(digest, run.config, previous, has_page=plan.settings.report))
    problem = write_report_json(run, cases) if plan.settings.report_json else None
    return (problem,) if problem is not None else ()
