"""Writer of report.html: at the end of a run, or again on request, within a size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from pytest_rageval.comparison.baseline import Side, side_of_run
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_parts
from pytest_rageval.io.collector import no_collection
from pytest_rageval.render.html.environment import policy, rendered, style
from pytest_rageval.render.html.page_run import PageRun, compared_side, read_page
from pytest_rageval.render.html.report_file import FILES, REPORT, EndReport
from pytest_rageval.render.html.report_page import BUDGET, report_parts
from pytest_rageval.render.html.variables import variables
from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.runs.reader import StoredRun


def write_report(
    run: StoredRun,
    settings: Settings,
    baseline: Path,
    *,
    exit_status: int = 0,
    other: Side | None = None,
    budget: int | None = BUDGET,
    most_bytes: int | None = None,
    path: Path | None = None,
    scores: CaseColumns | None = None,
) -> Path:
    """Write the page of a run against its recorded baseline, or against another run.

    A run that has not ended, or has a broken file, gets a page that says so. `scores`: those of the run if they are in
    memory; else they are read.
    """
    path = path or run.path / REPORT
    with no_collection():
        try:
            side = side_of_run(run, cases=scores)
            before = other or compared_side(run, run.path.parent.parent, baseline)
            page = read_page(side, before, settings, is_chosen=other is not None, exit_status=exit_status)
        except SettingsError as error:
            parts: Sequence[str] = [unreadable_html(run, str(error))]
        else:
            parts = sized_parts(page, budget, most_bytes)
        write_parts(path, parts)
    return path


def end_report(
    run: StoredRun, settings: Settings, baseline: Path, *, exit_status: int, scores: CaseColumns | None = None
) -> EndReport:
    """Write the page of a run that just ended, with its `scores`; a failure costs the page, never the run."""
    try:
        return EndReport(write_report(run, settings, baseline, exit_status=exit_status, scores=scores))
    except Exception as error:  # noqa: BLE001 results are on disk: a page must not end their run in an internal error
        remedy = f"`rageval report {run.run_id}` tries again"
        return EndReport(run.path / REPORT, f"report: not written: {type(error).__name__}: {error}; {remedy}")


def sized_parts(page: PageRun, budget: int | None = BUDGET, most_bytes: int | None = None) -> Sequence[str]:
    """Return the HTML report in parts; if it exceeds `most_bytes`, only the worst cases keep their pages."""
    parts = report_parts(page, budget=budget)
    if most_bytes is None:
        return parts
    # At 0 no case has a page: nothing more can be left out.
    while budget != 0:
        size = sum(len(part.encode()) for part in parts)
        if size <= most_bytes:
            break
        cases = len(page.cases) if budget is None else min(budget, len(page.cases))
        budget = 0
        if cases > 1:
            # A tenth less than in proportion, since the list of cases stays; at least one less, so that it ends.
            budget = min(int(cases * 0.9 * most_bytes / size), cases - 1)
        parts = report_parts(page, budget=budget)
    return parts


@dataclass(frozen=True, kw_only=True)
class UnreadableContext:
    """What the page of a run without aggregates gets."""

    run_id: str
    """The id of the run."""
    state: str
    """interrupted, being written, or another state of a run."""
    problem: str
    """Why it cannot be read."""
    files: Sequence[tuple[str, bool, str]]
    """The files of a run: the name, whether it is there, what it holds."""
    policy: str
    """The content security policy."""
    style: Markup
    """The style sheet."""


def unreadable_html(run: StoredRun, problem: str) -> str:
    """Return the page of a run without aggregates: what is there, what is missing, what to do."""
    files = [(name, (run.path / name).is_file(), what) for name, what in FILES.items()]
    context = UnreadableContext(
        run_id=run.run_id,
        problem=problem,
        files=files,
        policy=policy(),
        style=style(),
        state=run.state,
    )
    return rendered("unreadable.html", **variables(context))
